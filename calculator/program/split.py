"""The part of a program that gives each of several GPUs its share of every layer."""

from collections.abc import Iterator, Sequence
from typing import Final

from calculator.architecture import Architecture
from calculator.compose import changed_model
from calculator.layers.basic import Projection, Split
from calculator.layers.layer import Layer
from calculator.plan import Plan
from calculator.program.text import TORCH, Import, Piece, call, indented, quoted
from calculator.techniques.lora import projections
from calculator.techniques.tensor_parallel import side_of

STYLES: Final = "torch.distributed.tensor.parallel"
LAYOUTS: Final = "torch.distributed.tensor"
DATA: Final = "data"  # the axis of a mesh on which GPUs read other sequences
TENSOR: Final[Import] = (LAYOUTS, "DTensor")
PARTS: Final[Import] = ("torch.distributed.optim", "ZeroRedundancyOptimizer")
# each module's style where every GPU has a part of the tokens, and the style's arguments
BETWEEN: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "model.embed_tokens": (
        "PrepareModuleOutput",
        (
            *("output_layouts=Replicate()", "desired_output_layouts=Shard(1)"),
            "use_local_output=False",
        ),
    ),
    "model.layers.*.input_layernorm": ("SequenceParallel", ()),
    "model.layers.*.self_attn": (
        "PrepareModuleInput",
        (
            'input_kwarg_layouts={"hidden_states": Shard(1)}',
            'desired_input_kwarg_layouts={"hidden_states": Replicate()}',
        ),
    ),
    "model.layers.*.post_attention_layernorm": ("SequenceParallel", ()),
    "model.layers.*.mlp": (
        "PrepareModuleInput",
        ("input_layouts=Shard(1)", "desired_input_layouts=Replicate()"),
    ),
    "model.norm": ("SequenceParallel", ()),
    "lm_head": (
        "PrepareModuleInput",
        (
            *("input_layouts=Shard(1)", "desired_input_layouts=Replicate()"),
            "use_local_output=True",
        ),
    ),
}


def split_layers(architecture: Architecture, plan: Plan) -> Piece:
    """PyTorch's styles for the projections of each layer; what is left goes to the GPU whole."""
    model = changed_model(architecture, plan)
    parts = "output_layouts=Shard(1), use_local_output=False" if plan.sequence_parallel else ""
    between = BETWEEN if plan.sequence_parallel else {}
    styles = [
        line
        for path, (style, arguments) in between.items()
        for line in indented(call(f"{quoted(path)}: {style}", arguments, ","))
    ]
    lines = (
        *_tuple("columns", model, Split.COLUMNS),
        *_tuple("rows", model, Split.ROWS),
        *(["shares = {", *styles, "}"] if styles else ["shares = {}"]),
        "for name, _ in model.named_modules():",
        "    if name.endswith(columns):",
        "        shares[name] = ColwiseParallel()",
        "    elif name.endswith(rows):",
        f"        shares[name] = RowwiseParallel({parts})",
        *_mesh(plan),
        "parallelize_module(model, mesh, shares)",
        *(EXPERTS if architecture.has("experts") else ()),
        'model.to("cuda")',
    )
    always = {"ColwiseParallel", "RowwiseParallel", "parallelize_module"}
    names = sorted(always | {style for style, _ in between.values()})
    layouts = ("Replicate", "Shard") if plan.sequence_parallel else ()
    return Piece(
        lines,
        (
            *(("torch.distributed.device_mesh", "init_device_mesh"), TORCH),
            *((STYLES, name) for name in names),
            *((LAYOUTS, name) for name in layouts),
            *((SHARES,) if architecture.has("experts") else ()),
        ),
    )


SHARES: Final[Import] = ("transformers.distributed", "tensor_parallel")
EXPERTS: Final = (
    "for experts in model.modules():  # each GPU has a share of the width of every expert",
    '    if hasattr(experts, "gate_up_proj"):',
    "        style = tensor_parallel.PackedColwiseParallel()",
    '        style.shard_param(experts, "gate_up_proj", mesh)',
    '        tensor_parallel.RowwiseParallel().shard_param(experts, "down_proj", mesh)',
    "        tensor_parallel.MoeExpertsParallel().install_forward(experts, mesh)",
)


def _mesh(plan: Plan) -> list[str]:
    """The GPUs that share layers, of all those where others have other shards of them."""
    gpus = plan.tensor_parallel
    if plan.replicas == 1:
        return call("mesh = init_device_mesh", ['"cuda"', f"({gpus},)"])
    names = f'mesh_dim_names=("{DATA}", "layers")'
    made = call("gpus = init_device_mesh", ['"cuda"', f"({plan.replicas}, {gpus})", names])
    return [*made, 'mesh = gpus["layers"]']


def _tuple(name: str, model: Layer, side: Split) -> list[str]:
    """The ends of the paths of products that are divided on a side."""
    divided = (each for each in projections(model) if side_of(each) is side)
    ends = sorted({f".{end}" for each in divided for end in _ends(each, side)})
    words = [quoted(end) for end in ends]
    return call(f"{name} = ", [f"{words[0]},"] if len(words) == 1 else words)


def _ends(each: Projection, side: Split) -> Iterator[str]:
    """The projection's name; with an adapter, that of peft's base layer and of one product."""
    if each.adapter is None:
        yield each.name
        return
    yield f"{each.name}.base_layer"
    yield f"{each.name}.lora_{'A' if side is Split.ROWS else 'B'}.default"


def divide_experts(plan: Plan) -> Piece:
    """transformers' division of the experts; no other rule of the class divides anything."""
    gpus = plan.expert_parallel
    lines = (
        *call(
            "divided = DistributedConfig",
            [
                *(f"tp_size={gpus}", f"ep_size={gpus}"),
                'tp_plan=dict.fromkeys(model.tp_plan, "replicate")',
            ],
        ),
        "divided, _, meshes = model.prepare_distribute_model(divided)",
        "model.maybe_distribute_model(model, divided, meshes)",
        'model.to("cuda")',
    )
    return Piece(lines, (("transformers.distributed", "DistributedConfig"),))


def one_of(name: str, kind: str, weights: str, options: Sequence[str], plan: Plan) -> Piece:
    """An optimizer of a class; under ZeRO's first stage, of this process's part of the weights."""
    if not plan.shares_states:
        return Piece(tuple(call(f"{name} = {kind}", [weights, *options])))
    group = ['process_group=gpus["data"].get_group()'] if plan.pipeline_parallel > 1 else []
    arguments = [weights, f"optimizer_class={kind}", *group, *options]
    return Piece(tuple(call(f"{name} = {PARTS[1]}", arguments)), (PARTS,))


def group_weights(weights: str, plan: Plan) -> Piece:
    """The optimizer's groups: PyTorch updates tensors of one mesh together, or plain ones."""
    inside, beside = "isinstance(weight, DTensor)", "not isinstance(weight, DTensor)"
    if plan.is_sharded:
        inside, beside = "weight.device_mesh.ndim > 1", "weight.device_mesh.ndim == 1"
    lines = (
        f"split = [weight for weight in {weights} if {inside}]",
        f"whole = [weight for weight in {weights} if {beside}]",
        'groups = [{"params": split}, {"params": whole}]',
    )
    return Piece(lines, () if plan.is_sharded else (TENSOR,))
