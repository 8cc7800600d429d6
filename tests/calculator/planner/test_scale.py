"""Every figure here was published by others; the comments say where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.planner.scale import (
    BESIROGLU,
    HOFFMANN,
    LossSurface,
    cerebras_loss,
    compute_optimal,
)

budgets = st.floats(1e17, 1e26)


def test_the_replication_finds_about_twenty_tokens_per_parameter_for_chinchilla() -> None:
    # Hoffmann et al., 2022: Gopher's budget, 5.76e23 FLOPs, trained 70B on 1.4T tokens;
    # Besiroglu et al., 2024, section 4: their fit agrees with that ratio
    size = BESIROGLU.optimum(5.76e23)
    assert 15 < size.tokens_per_parameter < 26
    assert size.parameters == pytest.approx(70e9, rel=0.1)


@pytest.mark.parametrize("fit", [HOFFMANN, BESIROGLU], ids=lambda fit: fit.source)
@given(flops=budgets, other=st.floats(0.2, 5))
def test_no_other_size_has_a_lower_loss_at_the_same_budget(
    fit: LossSurface, flops: float, other: float
) -> None:
    best = fit.optimum(flops)
    moved = fit.loss(best.parameters * other, best.tokens / other)
    assert fit.loss(best.parameters, best.tokens) <= moved + 1e-12


@given(budgets, st.floats(1.01, 1000))
def test_every_advice_spends_the_budget_and_a_larger_one_never_has_a_higher_loss(
    flops: float, more: float
) -> None:
    advice = compute_optimal(flops)
    for size in (advice.by_ratio, *advice.by_fit.values()):
        assert size.flops == pytest.approx(flops)
        assert advice.parameters[0] <= size.parameters <= advice.parameters[1]
    assert cerebras_loss(flops * more) < cerebras_loss(flops)
