"""Expert parallelism: several GPUs divide the experts of every layer among them.

Counted is transformers' own code: `DistributedConfig` with `ep_size` and `tp_size` as large as the
number of GPUs, every rule of the class's `tp_plan` overruled with `replicate`, and the
`ep_implementation` that it takes for training, `all_to_all`. All GPUs read one micro-batch, and
each holds whole experts, and a copy of everything else. In a layer each takes its share of the
tokens, sends a row for every pair of a token and an expert to that expert's GPU, gets the outputs
back, and all gather the sums; in the backward pass gradients take the same ways.

How many rows a GPU gets depends on the routing. Counted is an even one, under which each gets as
many; a note says what a GPU would need that got all that can come to one. Its experts hide the rows
of other GPUs' experts, of which there are none here: that is a copy after each product.

Experts are DTensors, which PyTorch's foreach and fused updates take beside no plain tensors: the
optimizer has a group for each.

Source: expert_parallel, transformers (distributed/expert_parallel.py, distributed/mixin.py)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from calculator.architecture import Architecture
from calculator.layers.experts import Experts
from calculator.layers.layer import Layer
from calculator.layers.routes import own_experts, routed
from calculator.plan import Plan
from calculator.techniques.effect import Answer, Effect
from calculator.techniques.tensor_parallel import summed
from calculator.units import format_bytes

RECEIVED: Final = "rows_received"


@dataclass(frozen=True, slots=True)
class ExpertParallel:
    """Experts of which each GPU has a share."""

    def rewrite(self, layer: Layer) -> None:
        """Leave a share of the experts, to which all tokens are sent."""
        if isinstance(layer, Experts):
            layer.divide(own_experts(layer.choice.experts), routed)


def rows_received(architecture: Architecture, plan: Plan) -> int:
    """Pairs of a token and an expert that come to a GPU: as many to each, if nothing else is said.

    >>> from calculator.catalog import find_model
    >>> mixtral = find_model("mistralai/Mixtral-8x7B-v0.1")  # 2 of 8 experts for each token
    >>> rows_received(mixtral, Plan(sequence_length=1024, expert_parallel=4))
    512
    """
    numbers = architecture.numbers
    if RECEIVED in numbers:
        return numbers[RECEIVED]
    return _tokens(plan) * numbers.get("active_experts", 0) // plan.expert_parallel


def with_most_rows(architecture: Architecture, plan: Plan) -> Architecture:
    """The same, where all pairs come to one GPU that can: no token has two of the same expert."""
    numbers = architecture.numbers
    chosen = min(numbers["active_experts"], numbers["experts"] // plan.expert_parallel)
    return replace(architecture, more=(*architecture.more, (RECEIVED, _tokens(plan) * chosen)))


def divided_among(architecture: Architecture, plan: Plan) -> dict[str, int]:
    """Numbers that the GPUs divide, by their words."""
    return {
        "experts of a layer": architecture.numbers["experts"],
        "tokens of a micro-batch": _tokens(plan),
    }


def _tokens(plan: Plan) -> int:
    return plan.batch_size * (plan.sequence_length or 0) // plan.context_parallel


def _notes(answer: Answer) -> Iterator[str]:
    """A note on what each GPU has, and on the routing."""
    architecture, plan = answer.architecture, answer.plan
    gpus, numbers = plan.expert_parallel, architecture.numbers
    rows = rows_received(with_most_rows(architecture, plan), plan)
    yield (
        f"Each of {gpus:,} GPUs reads the same micro-batch and has {numbers['experts'] // gpus:,} "
        f"of the {numbers['experts']:,} experts of a layer; all else is whole on each. In a layer "
        f"each sends {_tokens(plan) // gpus:,} of the {_tokens(plan):,} tokens to their experts, "
        f"and counted is an even routing: each gets {rows_received(architecture, plan):,} rows, "
        "one for a token and one of its experts. A GPU that gets all that can come to one, "
        f"{rows:,} rows, needs {format_bytes(answer.most)} at its peak; one that gets fewer needs "
        "less."
    )


EFFECT: Final = Effect(
    used=lambda plan: plan.expert_parallel > 1,
    layers=lambda _architecture, _plan: (ExpertParallel(),),
    exchanges=summed,
    notes=_notes,
)
