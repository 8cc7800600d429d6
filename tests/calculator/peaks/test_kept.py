from dataclasses import replace

import pytest

from calculator.catalog import MODELS
from calculator.errors import InputError
from calculator.peaks.kept import kept_by_layer
from calculator.plan import Plan


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_model_without_a_layer_in_the_middle_is_refused(layers: int) -> None:
    small = replace(MODELS["bert-base"], layers=layers)
    with pytest.raises(InputError, match=r"layers = .*at least 4 equal ones"):
        kept_by_layer(small, Plan())


def test_sharing_that_leaves_no_layer_in_the_middle_is_refused() -> None:
    with pytest.raises(InputError, match="at least 4 equal ones"):
        kept_by_layer(replace(MODELS["bert-base"], layers=6), Plan(sharing_groups=3))


@pytest.mark.parametrize("layers", [4, 5, 12])
def test_what_a_layer_keeps_does_not_depend_on_how_many_there_are(layers: int) -> None:
    model, plan = MODELS["bert-base"], Plan()
    assert kept_by_layer(replace(model, layers=layers), plan) == kept_by_layer(model, plan)
