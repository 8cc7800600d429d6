"""The part of a program that gives each of several GPUs its share of every layer."""

from collections.abc import Iterator
from typing import Final

from calculator.plan import Plan
from calculator.program.text import TORCH, Import, Piece, call, indented, quoted
from calculator.techniques.tensor_parallel import COLUMNS

STYLES: Final = "torch.distributed.tensor.parallel"
LAYOUTS: Final = "torch.distributed.tensor"
PATHS: Final = (
    *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    *("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
)
TENSOR: Final[Import] = (LAYOUTS, "DTensor")
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


def split_layers(plan: Plan) -> Piece:
    """PyTorch's styles for the projections of each layer; what is left goes to the GPU whole."""
    styles = dict(_styles(plan))
    entries = (
        line
        for path, (style, arguments) in styles.items()
        for line in indented(call(f"{quoted(path)}: {style}", arguments, ","))
    )
    lines = (
        "shares = {",
        *entries,
        "}",
        *call("mesh = init_device_mesh", ['"cuda"', f"({plan.tensor_parallel},)"]),
        "parallelize_module(model, mesh, shares)",
        'model.to("cuda")',
    )
    names = sorted({"parallelize_module", *(style for style, _ in styles.values())})
    layouts = ("Replicate", "Shard") if plan.sequence_parallel else ()
    return Piece(
        lines,
        (
            *(("torch.distributed.device_mesh", "init_device_mesh"), TORCH),
            *((STYLES, name) for name in names),
            *((LAYOUTS, name) for name in layouts),
        ),
    )


def _styles(plan: Plan) -> Iterator[tuple[str, tuple[str, tuple[str, ...]]]]:
    """The style of each module, and its arguments."""
    scattered = ("output_layouts=Shard(1)", "use_local_output=False")
    for path in PATHS:
        columns = path.rpartition(".")[2] in COLUMNS
        style = "ColwiseParallel" if columns else "RowwiseParallel"
        arguments = scattered if plan.sequence_parallel and not columns else ()
        yield f"model.layers.*.{path}", (style, arguments)
    if plan.sequence_parallel:
        yield from BETWEEN.items()


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


def group_weights(weights: str) -> Piece:
    """The optimizer's groups: PyTorch updates no DTensors together with plain tensors."""
    inside = "isinstance(weight, DTensor)"
    lines = (
        f"split = [weight for weight in {weights} if {inside}]",
        f"whole = [weight for weight in {weights} if not {inside}]",
        'groups = [{"params": split}, {"params": whole}]',
    )
    return Piece(lines, (TENSOR,))
