"""Sequences divided among several GPUs by PyTorch's own `context_parallel`, seen from one of them.

The batch is divided before the first step and not put together again: `context_parallel` makes
each tensor smaller in place, so its bytes stay those of the whole, and holds the parts as it cut
them until its end. The model reads places and
labels of its own tokens, and a mask of ones, without which transformers takes the jump between its
two chunks for the border of two texts. As the works of NCCL and gloo do, those of keys and values
hold what is sent until somebody waits for them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
import torch.distributed as dist

from calculator.plan import Plan
from validation.mesh import REPLICAS, Mesh
from validation.ranks import Ranks

PREFIX: Final = "context_"
DIVIDED: Final = ("input_ids", "labels", "target", "attention_mask", "position_ids")


@contextmanager
def divided(
    whole: dict[str, torch.Tensor], plan: Plan, axes: Mesh
) -> Iterator[tuple[dict[str, torch.Tensor], list[torch.Tensor]]]:
    """One GPU's part of each sequence of a task's inputs, and what is held beside it."""
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor.experimental import _attention, context_parallel

    first = axes.places[REPLICAS] // plan.context_parallel * plan.context_parallel
    together = range(first, first + plan.context_parallel)
    around = dist.new_group(axes.ranks_along(REPLICAS, together))
    assert isinstance(around, Ranks)
    around.prefix = PREFIX
    mesh = DeviceMesh.from_group(around, axes.device)
    inputs = whole if plan.pipeline_parallel > 1 else inputs_of(whole)
    buffers = [inputs[name] for name in DIVIDED if name in inputs]
    before = _attention._cp_options.rotate_method
    _attention.set_rotate_method(str(plan.context_rotation))
    context: Any = context_parallel(
        mesh,
        buffers=buffers,
        buffer_seq_dims=[1] * len(buffers),
        no_restore_buffers=set(buffers),
    )
    try:
        with context:
            inner = context.gen.gi_frame.f_locals["gen"]  # no_grad is around it
            held = inner.gi_frame.f_locals
            yield inputs, [*held["shards"], held["shard"]]
    finally:
        _attention._cp_options.rotate_method = before


def inputs_of(whole: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Whole sequences with labels that are shifted already, a mask and places."""
    ids, labels = whole["input_ids"], whole["labels"]
    return {"input_ids": ids, "labels": labels, "shift_labels": labels, **beside_parts(ids)}


def beside_parts(ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """A mask of ones and the places of whole sequences."""
    places = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
    return {"attention_mask": torch.ones_like(ids), "position_ids": places}
