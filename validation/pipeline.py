"""One GPU of a pipeline: PyTorch's own stages and schedule, of which nobody else is there.

What a stage receives are buffers that it allocates itself, one for each micro-batch, in the first
step; the process group leaves them as they are, and notes what is sent. As the works of NCCL and
gloo do, those of what is sent hold its tensor. A stage runs the class's own base model with its
layers only: the first has the embeddings, and the last is the class itself, with the final norm and
the output layer, before the loss. Each of several stages on one GPU has its own base model, with
its own tables of positions.

Autocast is around a stage's forward pass and around the loss, so that each micro-batch has 16-bit
copies of its own.
"""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining

from calculator.plan import PipelineSchedule, Plan, Precision
from calculator.techniques.pipeline import layers_of, stages_on
from validation.context import beside_parts
from validation.mesh import PIPELINE, Mesh
from validation.models import OnLogits, Task, half_type, watch
from validation.ranks import own
from validation.storage import Phase

SCHEDULES: Final[dict[PipelineSchedule, Any]] = {
    PipelineSchedule.GPIPE: pipelining.ScheduleGPipe,
    PipelineSchedule.ONE_FORWARD_ONE_BACKWARD: pipelining.Schedule1F1B,
    PipelineSchedule.INTERLEAVED: pipelining.ScheduleInterleaved1F1B,
}
WIDE_STREAMS: Final = (Precision.FP32, Precision.AMP)
SLIDING: Final = "sliding_attention"
# parts that OPT lists before its layers and runs after them
LISTED_EARLY: Final = ("project_out", "final_layer_norm")


class Part(nn.Module):
    """The layers of one stage, and what stands before the first or after the last."""

    def __init__(self, model: Any, place: int, stages: int) -> None:
        super().__init__()
        self.is_first, self.is_last = place == 0, place == stages - 1
        self.place = place
        causal, base = _copies(model)
        names = [name for name, _ in base.named_children()]
        layers = next(n for n in names if isinstance(getattr(base, n), nn.ModuleList))
        before = [n for n in names[: names.index(layers)] if n not in LISTED_EARLY]
        after = [n for n in names if n not in (*before, layers)]
        self.tokens = next(n for n in before if isinstance(getattr(base, n), nn.Embedding))
        whole = getattr(base, layers)
        own = layers_of(len(whole), stages, place)
        setattr(base, layers, whole[own.start : own.stop])
        _tell_kinds(base, own)
        if not self.is_first:
            _take_as_it_is(base, self.tokens, before)
        if not self.is_last:
            for name in after:
                if name in LISTED_EARLY or "norm" in name or name.startswith("ln_"):
                    setattr(base, name, nn.Identity())
        self.base = base
        self.causal = causal if self.is_last else None
        self.autocast: Callable[[], Any] = nullcontext
        self.beside: dict[str, torch.Tensor] = {}  # a mask and places of divided sequences

    @property
    def head(self) -> nn.Module | None:
        """The output layer."""
        return None if self.causal is None else self.causal.get_output_embeddings()

    @property
    def table(self) -> torch.Tensor | None:
        """The weights of the token embeddings or of the output layer, as they are now."""
        ends: tuple[Any, ...] = (getattr(self.base, self.tokens), self.head)
        return next((end.weight for end in ends if end is not None), None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Token ids or hidden states -> hidden states or logits."""
        given = {"input_ids" if self.is_first else "inputs_embeds": x, **self.beside}
        with self.autocast():
            if self.causal is None:
                return self.base(**given, use_cache=False).last_hidden_state  # type: ignore[no-any-return]
            return self.causal(**given, use_cache=False).logits  # type: ignore[no-any-return]


def _copies(model: Any) -> tuple[Any, Any]:
    """A causal model and its base model, whose parts can go without the original's."""
    causal = base = _copy(model)
    for name in (model.base_model_prefix, "decoder"):
        if hasattr(base, name):
            inner = _copy(getattr(base, name))
            setattr(base, name, inner)
            base = inner
    return causal, base


class _Zero(nn.Module):
    """A zero in the place of learned positions, which the first stage has added."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, positions: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """(1, tokens) -> ()."""
        return torch.zeros((), dtype=self.dtype, device=positions.device)


def _take_as_it_is(base: Any, tokens: str, before: list[str]) -> None:
    """Let a later stage's base model give its first layer what it receives."""
    for name in before:
        module = getattr(base, name)
        if name == tokens:
            setattr(base, name, None)
        elif isinstance(module, nn.Embedding):
            setattr(base, name, _Zero(module.weight.dtype))
        elif not name.startswith("rotary"):
            setattr(base, name, nn.Identity())
    if hasattr(base, "embedding_multiplier"):  # Granite's
        base.embedding_multiplier = 1.0


def _copy(model: Any) -> Any:
    """The same model with tables of positions of its own, of which others' parts can go."""
    made = copy.copy(model)
    made._modules = dict(model._modules)
    made.config = copy.copy(model.config)
    if hasattr(model, "rotary_emb"):
        made.rotary_emb = copy.copy(model.rotary_emb)
        made.rotary_emb._buffers = {
            name: table.clone() for name, table in model.rotary_emb.named_buffers(recurse=False)
        }
    return made


def _tell_kinds(base: Any, own: range) -> None:
    """Name the kinds of its own layers to a class that looks for each layer's by its number."""
    kinds = getattr(base.config, "layer_types", None)
    if kinds:
        base.config.layer_types = kinds[own.start : own.stop]
        base.has_sliding_layers = SLIDING in base.config.layer_types


@dataclass(frozen=True, slots=True)
class PipelineTask(Task):
    """A GPU's stages and their schedule; `inputs` gain their buffers with the first step."""

    stages: tuple[Any, ...] = ()
    parts: tuple[Part, ...] = ()
    schedule: Any = None
    ends: Any = None
    hooks: dict[str, Any] = field(default_factory=dict)

    def run(self, autocast: Any, watcher: Any) -> None:
        """All micro-batches forward and backward."""
        for part in self.parts:
            part.autocast = autocast
        self.hooks.update(watcher=watcher, autocast=autocast)
        words = {name: self.inputs[name] for name in ("target",) if name in self.inputs}
        ids = (self.inputs["input_ids"],) if "input_ids" in self.inputs else ()
        with patch("torch.random.fork_rng", lambda **_: nullcontext()):
            self.schedule.step(*ids, **words, return_outputs=False)
        self._sum_tied_gradients()
        for stage in self.stages:
            for info in chain(*stage.args_recv_info.values(), *stage.grad_recv_info.values()):
                if info.buffer is not None:
                    self.inputs[f"buffer {id(info)}"] = info.buffer

    def _sum_tied_gradients(self) -> None:
        """Add up the gradients that the first and the last stage have for one table."""
        for part in self.parts if self.ends is not None else ():
            table = part.table
            if table is not None and table.requires_grad:
                assert table.grad is not None
                dist.all_reduce(own(table.grad), group=self.ends)


def pipelined(
    task: Task, plan: Plan, mesh: Mesh, replicated: Callable[[nn.Module], nn.Module]
) -> PipelineTask:
    """The task of one GPU of a plan's pipeline, whose parts are `replicated`."""
    model: Any = task.model.get_base_model() if plan.lora else task.model  # type: ignore[operator]
    config, count = model.config, plan.accumulation
    loss = partial(model.loss_function, vocab_size=config.vocab_size)
    places = stages_on(plan, mesh.places[PIPELINE])
    parts = [Part(model, place, plan.all_stages) for place in places]
    hooks: dict[str, Any] = {}
    ids = task.inputs["input_ids"].repeat(count, 1)
    inputs = {"input_ids": ids} if parts[0].is_first else {}
    if parts[-1].is_last:
        inputs["target"] = ids
    if plan.context_parallel > 1:
        beside = beside_parts(task.inputs["input_ids"])
        inputs |= beside
        for part in parts:
            part.beside = beside

    def loss_of(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        shifted = {"shift_labels": labels} if plan.context_parallel > 1 else {}
        with hooks["autocast"]():
            found: torch.Tensor = loss(logits=logits, labels=labels, **shifted)
        hooks["watcher"].keep()
        return found

    stages = tuple(
        _Watched(
            replicated(part),
            part.place,
            plan.all_stages,
            torch.device(mesh.device),
            *_examples(plan, config, part),
            group=mesh[PIPELINE].get_group(),
        )
        for part in parts
    )
    for stage in stages:
        stage.hooks = hooks
    several = plan.pipeline_schedule is PipelineSchedule.INTERLEAVED
    # without a loss there is no backward pass
    schedule = SCHEDULES[plan.pipeline_schedule](
        [*stages] if several else stages[0], count, loss_fn=loss_of
    )
    head = parts[-1].head
    watcher = _unwatched if head is None else partial(watch, head)
    ends = None
    if plan.tied_embeddings:  # the first and the last GPU have a table each
        last = plan.pipeline_parallel - 1
        ends = dist.new_group(mesh.ranks_along(PIPELINE, range(0, last + 1, last)))
    modules = nn.ModuleList(parts)
    return PipelineTask(
        modules,
        watcher,
        inputs,
        stages=stages,
        parts=(*parts,),
        schedule=schedule,
        ends=ends,
        hooks=hooks,
    )


def _examples(plan: Plan, config: Any, part: Part) -> tuple[torch.Tensor, torch.Tensor]:
    """Examples of what a stage receives and makes, without bytes."""
    size = (plan.batch_size, plan.sequence_length // plan.context_parallel)
    wide = torch.float32 if plan.precision in WIDE_STREAMS else half_type(plan)
    narrow = torch.float32 if plan.precision is Precision.FP32 else half_type(plan)

    def made(last: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty((*size, last), dtype=dtype, device="meta", requires_grad=True)

    stream = made(config.hidden_size, wide)
    words = torch.empty(size, dtype=torch.int64, device="meta")
    logits = made(config.vocab_size, narrow)
    return words if part.is_first else stream, logits if part.is_last else stream


class _Watched(pipelining.PipelineStage):
    """A stage that reports the phases of its micro-batches."""

    hooks: dict[str, Any]

    def forward_one_chunk(self, *given: Any, **more: Any) -> Any:
        """A micro-batch goes forward."""
        self.hooks["watcher"].start_micro_step()
        found = super().forward_one_chunk(*given, **more)
        if not self.is_last:
            self.hooks["watcher"].keep()
        return found

    def backward_one_chunk(self, *given: Any, **more: Any) -> Any:
        """A micro-batch goes backward; in the last stage that begins with the loss."""
        self.hooks["watcher"].start_phase(Phase.LOSS if self.is_last else Phase.BACKWARD)
        return super().backward_one_chunk(*given, **more)


def _unwatched(_on_logits: OnLogits) -> AbstractContextManager[None]:
    return nullcontext()
