"""The part of a program that gives each of several GPUs its layers, and passes tokens through."""

from collections.abc import Iterable
from typing import Final

from calculator.architecture import Architecture
from calculator.models.decoder import SLIDING
from calculator.models.model import CausalModel
from calculator.models.registry import type_of
from calculator.plan import DataParallel, PipelineSchedule, Plan, Precision
from calculator.program.divide import MESHES, SHIFTED, rotate
from calculator.program.model import half_type, shard, weight_type
from calculator.program.text import INDENT, TORCH, Import, Piece, call, indented, joined

PIPELINING: Final = "torch.distributed.pipelining"
LOSS: Final = "loss_function, classes = model.loss_function, model.config.vocab_size"
SCHEDULES: Final = {
    PipelineSchedule.GPIPE: "ScheduleGPipe",
    PipelineSchedule.ONE_FORWARD_ONE_BACKWARD: "Schedule1F1B",
    PipelineSchedule.INTERLEAVED: "ScheduleInterleaved1F1B",
}


def cut_model(architecture: Architecture, plan: Plan) -> Piece:
    """The process has one stage or several, its micro-batches and the schedule."""
    return joined(
        [
            _places(plan),
            Piece((*_no_positions(architecture, plan), *_stage(architecture, plan), "", "")),
            Piece((LOSS, "", "")),
            Piece((*_loss(plan), "", "")),
            _own_stages(plan),
            shard(architecture, plan) if plan.is_sharded else Piece(),
            Piece(tuple(_tied_ends(architecture, plan))),
            Piece(tuple(_tokens(architecture, plan)), (TORCH,)),
            _divided(plan),
            _scheduled(architecture, plan),
        ]
    )


def _places(plan: Plan) -> Piece:
    """The place of this process among the stages, and the processes that have the same ones."""
    if plan.replicas == 1:
        return Piece(("rank = torch.distributed.get_rank()", "", ""))
    stages, replicas = plan.pipeline_parallel, plan.replicas
    names = 'mesh_dim_names=("stages", "data")'
    lines = [
        *call("gpus = init_device_mesh", ['"cuda"', f"({stages}, {replicas})", names]),
        'rank = gpus["stages"].get_local_rank()',
    ]
    parts = plan.context_parallel
    if parts > 1:
        shape = f"({stages}, {replicas // parts}, {parts})"
        names = 'mesh_dim_names=("stages", "data", "context")'
        lines += call("mesh = init_device_mesh", ['"cuda"', shape, names])
    return Piece((*lines, "", ""), (MESHES,))


def _own_stages(plan: Plan) -> Piece:
    """The stages of this process as its model."""
    base = ("model = model.get_base_model()  # with the adapters in it",) if plan.lora else ()
    if plan.pipeline_stages == 1:
        return Piece((*base, 'model = Stage(model, rank).to("cuda")'))
    several = f"range(rank, {plan.all_stages}, {plan.pipeline_parallel})"
    lines = (
        *base,
        f"stages = [Stage(copy.deepcopy(model), place) for place in {several}]",
        'model = torch.nn.ModuleList(stages).to("cuda")',
    )
    return Piece(lines, (("copy", ""),))


def has_tied_ends(plan: Plan) -> bool:
    """True if two processes have a table each whose gradients are to be summed."""
    return plan.pipeline_parallel > 1 and bool(plan.tied_embeddings) and not plan.lora


def sum_tied(plan: Plan) -> Iterable[str]:
    """Lines that sum the gradients of a tied table."""
    gradient = "table.grad.to_local()" if plan.is_sharded else "table.grad"
    if has_tied_ends(plan):
        yield "if table is not None:"
        yield f"{INDENT}torch.distributed.all_reduce({gradient}, group=ends)"


def _tied_ends(architecture: Architecture, plan: Plan) -> Iterable[str]:
    """The two processes that have the tied table, and the table in each."""
    if not has_tied_ends(plan):
        return
    last = plan.pipeline_parallel - 1
    first_stage, last_stage = (
        ("model",) * 2 if plan.pipeline_stages == 1 else ("model[0]", "model[-1]")
    )
    _, tokens, _, _ = _kind(architecture).names_inside
    yield "# The first and the last process have the tied table each, and sum its gradients."
    if plan.replicas == 1:
        yield f"ends, table = torch.distributed.new_group([0, {last}]), None"
    else:
        pairs = f"[[place, {last * plan.replicas} + place] for place in range({plan.replicas})]"
        yield from call("ends, _ = torch.distributed.new_subgroups_by_enumeration", [pairs])
        yield "table = None"
    yield "if rank == 0:"
    yield f"{INDENT}table = {first_stage}.base.{tokens}.weight"
    yield f"if rank == {last}:"
    yield f"{INDENT}table = {last_stage}.head.weight"


def _kind(architecture: Architecture) -> type[CausalModel]:
    kind = type_of(architecture)
    assert issubclass(kind, CausalModel)
    return kind


def _done_before(architecture: Architecture) -> Iterable[str]:
    """Leave out what a later stage's base model would do again to what it receives."""
    kind = _kind(architecture)
    if kind.positions_inside:
        yield f"base.{kind.positions_inside} = NoPositions()"
    for name in kind.once:
        yield f"base.{name} = torch.nn.Identity()"
    if kind.has_multipliers:
        yield "base.embedding_multiplier = 1.0"


def _no_positions(architecture: Architecture, plan: Plan) -> Iterable[str]:
    """A module in the place of learned positions, which the first stage adds."""
    if not _kind(architecture).positions_inside:
        return ()
    zero = f"torch.zeros((), dtype={weight_type(plan)}, device=positions.device)"
    methods = ("def forward(self, positions, *_, **__):", f"{INDENT}return {zero}")
    return ("class NoPositions(torch.nn.Module):", *indented(methods), "", "")


def _layers(architecture: Architecture, plan: Plan) -> Iterable[str]:
    """The numbers of a stage's layers."""
    each, more = divmod(architecture.layers, plan.all_stages)
    if not more:
        yield f"start, end = {each} * place, {each} * place + {each}"
        return
    yield f"start = {each} * place + min(place, {more})  # the first {more} have one layer more"
    yield f"end = start + {each} + (place < {more})"


def _stage(architecture: Architecture, plan: Plan) -> Iterable[str]:
    kinds: tuple[str, ...] = ()
    if len(architecture.pattern) > 1 and any(SLIDING in kind for kind in architecture.pattern):
        kinds = (
            "kinds = base.config.layer_types[start:end]",
            "base.config.layer_types = kinds",
            'base.has_sliding_layers = "sliding_attention" in kinds',
        )
    kind = _kind(architecture)
    inner, tokens, layers, norm = kind.names_inside
    logits, numbers = _logits(architecture)
    made = (
        "super().__init__()",
        "self.place = place",
        f"self.is_first, self.is_last = place == 0, place == {plan.all_stages - 1}",
        *_layers(architecture, plan),
        f"base = model.{inner}",
        f"base.{layers} = base.{layers}[start:end]",
        *kinds,
        "if not self.is_first:",
        f"{INDENT}base.{tokens} = None",
        *indented(_done_before(architecture)),
        "if not self.is_last:",
        *(f"{INDENT}base.{name} = torch.nn.Identity()" for name in (norm, *kind.last)),
        "self.base = base",
        "self.head = model.get_output_embeddings() if self.is_last else None",
        *(f"self.{name} = model.config.{key}" for name, key in numbers),
    )
    divided = ("given |= beside",) if plan.context_parallel > 1 else ()
    run = (
        'given = {"input_ids": x} if self.is_first else {"inputs_embeds": x}',
        *divided,
        *_autocast(
            plan,
            (
                "hidden = self.base(**given).last_hidden_state",
                f"return {logits} if self.is_last else hidden",
            ),
        ),
    )
    methods = (
        "def __init__(self, model, place):",
        *indented(made),
        "",
        "def forward(self, x):",
        *indented(run),
    )
    return ("class Stage(torch.nn.Module):", *indented(methods))


def _logits(architecture: Architecture) -> tuple[str, list[tuple[str, str]]]:
    """The last stage's logits, and what they take from the model's config: name and key."""
    kind, logits, numbers = _kind(architecture), "self.head(hidden)", []
    if kind.has_multipliers:
        logits, numbers = f"{logits} / self.scaling", [("scaling", "logits_scaling")]
    elif kind.scales_logits:
        logits, numbers = f"{logits} * self.scale", [("scale", "logit_scale")]
    if architecture.has("final"):
        logits = f"torch.tanh({logits} / self.cap) * self.cap"
        numbers.append(("cap", "final_logit_softcapping"))
    return logits, numbers


def _loss(plan: Plan) -> Iterable[str]:
    more = ", shift_labels=labels" if plan.context_parallel > 1 else ""
    body = (f"return loss_function(logits, labels, vocab_size=classes{more})",)
    return ("def compute_loss(logits, labels):", *indented(_autocast(plan, body)))


def _autocast(plan: Plan, lines: Iterable[str]) -> Iterable[str]:
    if plan.precision is not Precision.AMP:
        return lines
    return (f'with torch.autocast("cuda", {half_type(plan)}):', *indented(lines))


def _tokens(architecture: Architecture, plan: Plan) -> Iterable[str]:
    """Token ids of all micro-batches for the first stage, and labels for the last."""
    size = f"({plan.batch_size * plan.accumulation}, {plan.sequence_length})"
    random = f'torch.randint({architecture.vocabulary_size}, {size}, device="cuda")'
    parts = plan.context_parallel
    alike = (
        "# GPUs that divide sequences read the same batch.",
        f'torch.manual_seed(gpus["data"].get_local_rank() // {parts})',
    )
    return (
        *(alike if parts > 1 else ()),
        "# Random tokens: replace them with your data.",
        "given, words = [], {}",
        "if rank == 0:",
        *indented(call("given.append", [random])),
        f"if rank == {plan.pipeline_parallel - 1}:",
        f'{INDENT}words["target"] = {random}',
    )


def _divided(plan: Plan) -> Piece:
    """The token after each, a mask and the places, which have to be known before a cut."""
    if plan.context_parallel == 1:
        return Piece()
    size = f"({plan.batch_size}, {plan.sequence_length})"
    lines = (
        SHIFTED,
        'if "target" in words:',
        f'{INDENT}words["target"] = words["target"].roll(-1, dims=1)',
        f'{INDENT}words["target"][:, -1] = -100',
        "beside = {  # each stage's model reads them",
        f'{INDENT}"attention_mask": torch.ones({size}, dtype=torch.int64, device="cuda"),',
        f'{INDENT}"position_ids": torch.arange({plan.sequence_length}, device="cuda")[None],',
        "}",
        "buffers = [*given, *words.values(), *beside.values()]",
    )
    return Piece(lines, (TORCH,)) + rotate(plan)


def _scheduled(architecture: Architecture, plan: Plan) -> Piece:
    """The stage with the shapes of what it receives and makes, and the schedule."""
    wide = weight_type(plan)
    narrow = "torch.float32" if plan.precision is Precision.FP32 else half_type(plan)
    shape = f"{plan.batch_size}, {plan.sequence_length // plan.context_parallel}"
    on_meta = ('device="meta"', "requires_grad=True")

    def example(name: str, last: int, dtype: str) -> list[str]:
        return call(f"{name} = torch.empty", [f"({shape}, {last})", f"dtype={dtype}", *on_meta])

    kind = SCHEDULES[plan.pipeline_schedule]
    lines = (
        "# Examples of what a stage receives and makes, so that none has to try.",
        f'tokens = torch.empty(({shape}), dtype=torch.int64, device="meta")',
        *example("stream", architecture.hidden_size, wide),
        *example("logits", architecture.vocabulary_size, narrow),
        *_made_stages(plan),
        f"schedule = {kind}({_given(plan)}, {plan.accumulation}, compute_loss)",
    )
    imports: tuple[Import, ...] = ((PIPELINING, "PipelineStage"), (PIPELINING, kind))
    if _copies(plan):
        imports += (("torch.nn.parallel", "DistributedDataParallel"),)
    return Piece(lines, imports)


def _copies(plan: Plan) -> bool:
    """True if other processes have the same stages whole."""
    return plan.replicas > 1 and not plan.is_sharded


def _given(plan: Plan) -> str:
    """The name of the stage, or of the stages, that a schedule takes."""
    return "stage" if plan.pipeline_stages == 1 else "stages"


def _made_stages(plan: Plan) -> Iterable[str]:
    """PyTorch's stages around this process's own."""
    several = plan.pipeline_stages > 1
    own = "part" if several else "model"
    run = own
    if _copies(plan):
        view = ["gradient_as_bucket_view=True"] * (plan.data_parallel is DataParallel.DDP_VIEW)
        words = ", ".join((own, 'process_group=gpus["data"].get_group()', *view))
        run = f"DistributedDataParallel({words})"
    arguments = (
        *(run, f"{own}.place", str(plan.all_stages), 'torch.device("cuda")'),
        f"tokens if {own}.is_first else stream",
        f"logits if {own}.is_last else stream",
        *(['group=gpus["stages"].get_group()'] if plan.replicas > 1 else []),
    )
    if not several:
        return call("stage = PipelineStage", arguments)
    made = indented(call("PipelineStage", arguments))
    return ("stages = [", *made, f"{INDENT}for part in model", "]")
