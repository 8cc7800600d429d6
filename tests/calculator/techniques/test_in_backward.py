"""The update inside the backward pass; measured rows hold whole steps."""

from dataclasses import replace
from typing import Any

import pytest

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.plan import Checkpointing, Optimizer, Plan, Precision, Update
from calculator.report import Phase
from calculator.resolution import resolve
from calculator.techniques.in_backward import temporaries

PLAN = Plan(sequence_length=64, update_in_backward=True)


@pytest.mark.parametrize("model", ["gpt2-s", "t5-small", "Qwen/Qwen3-0.6B"])
@pytest.mark.parametrize("update", list(Update))
def test_no_gradient_is_left_for_the_update(model: str, update: Update) -> None:
    report = estimate(find_model(model), replace(PLAN, update=update))
    last = report.phases[Phase.UPDATE]
    assert (last.gradients, last.temporaries) == (0, 0)
    assert last.optimizer > 2 * last.weights - 1_000_000  # buffers are no weights


def test_a_step_is_smaller_by_most_of_its_gradients() -> None:
    model = find_model("gpt2-l")
    plan = replace(PLAN, precision=Precision.FP32, checkpointing=Checkpointing.FULL)
    inside, after = estimate(model, plan), estimate(model, replace(plan, update_in_backward=False))
    # 774,030,080 weights of 4 bytes have gradients, and foreach makes as many square roots; the
    # largest weight, 50,257 by 1,280, still has both at its update
    table = 4 * 50_257 * 1280
    saved = 2 * 4 * 774_030_080 - 2 * table
    assert after.gpu.total - inside.gpu.total == pytest.approx(saved, rel=0.05)


def test_temporaries_are_those_of_one_weight() -> None:
    def of(**options: Any) -> int:
        return temporaries(resolve(find_model("gpt2-s"), replace(PLAN, **options)))

    assert [of(update=update) for update in (Update.FOREACH, Update.LOOP, Update.FUSED)] == [
        1,
        2,
        0,
    ]
    assert of(optimizer_bits=8) == of(optimizer=Optimizer.SGD) == of(optimizer=Optimizer.LION) == 0
