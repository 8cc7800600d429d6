import math
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.architecture import Architecture
from calculator.catalog import MODELS
from calculator.errors import InputError
from calculator.plan import Attention, Plan, Precision, techniques
from calculator.resolution import plain_value, resolve, without_techniques
from tests.calculator.plans import Case, attention_kernels, cases, examples

EACH_MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def options_in(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in Plan.options()}


NOT_WHOLE = ["0", "-1", 0, -1, 1.5, "1.5", "one", "nan", "inf", "-inf", math.nan, math.inf, True]
NOT_A_PROBABILITY = ["-0.1", -0.1, 1, "1", 2, "half", "nan", "inf", math.nan, math.inf]
NOT_A_CHOICE = ["", " ", "none of these", 0, -1, math.nan]
OPTIONS = Plan.options()
BAD = [
    *(
        (name, value)
        for name, o in OPTIONS.items()
        if o.kind == "integer"
        for value in NOT_WHOLE
        if o.minimum or value not in ("0", 0)
    ),
    *(("lora_targets", value) for value in (" ", "q_proj;v_proj", "a..b", "1st")),
    *(("dropout", value) for value in NOT_A_PROBABILITY),
    *((name, value) for name, o in OPTIONS.items() if o.kind == "flag" for value in (2, "maybe")),
    *((name, value) for name, o in OPTIONS.items() if o.kind == "choice" for value in NOT_A_CHOICE),
]


def test_a_bad_value_is_refused_with_field_value_and_rule() -> None:
    for field, value in BAD:
        with pytest.raises(InputError) as caught:
            Plan(**{field: value})
        error = caught.value
        assert (error.field, error.value.strip()) == (field, str(value).strip())
        assert error.rule.startswith(("must be", "did you mean")), error


@pytest.mark.parametrize("typed", ["fp16", "bf16", "FP16", "float16", "bfloat16", "16"])
def test_16_bits_get_the_four_precisions_and_which_of_them_people_mean(typed: str) -> None:
    # transformers' TrainingArguments(fp16=True) runs under torch.autocast
    with pytest.raises(InputError, match=r"fp16=True or bf16=True is amp") as caught:
        Plan.parse({"precision": typed})
    for words in dict(OPTIONS["precision"].choices).values():
        assert words in caught.value.rule
    assert "did you mean" not in caught.value.rule


def test_texts_and_values_make_the_same_plan() -> None:
    texts = {"batch_size": " 4 ", "optimizer_bits": "8", "reversible": "on", "dropout": "0.5"}
    values = {"batch_size": 4, "optimizer_bits": 8, "reversible": True, "dropout": 0.5}
    assert Plan.parse(texts) == Plan.parse(values) == Plan(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("absent", [None, ""])
def test_an_option_that_is_left_empty_has_its_default(absent: object) -> None:
    for field in OPTIONS:
        assert Plan.parse({field: absent}) == Plan(), field


@EACH_MODEL
def test_a_kernel_that_a_model_has_no_code_for_is_refused(model: Architecture) -> None:
    for precision, kernel in product(Precision, Attention):
        plan = Plan(precision=precision, attention=kernel)
        if kernel in attention_kernels(model, precision):
            assert resolve(model, plan).attention is kernel
        else:
            with pytest.raises(
                InputError, match=rf"^attention = '{kernel}'.*{model.name}.*has code"
            ):
                resolve(model, plan)


@given(cases(catalog_only=True))
@examples(60)
def test_without_techniques_nothing_is_saved_and_all_else_is_the_same(case: Case) -> None:
    plain = without_techniques(case.architecture, case.plan)
    saved_nothing = {
        option.field: plain_value(case.architecture, option.field) for option in techniques()
    }
    assert options_in(plain) == options_in(case.plan) | saved_nothing
    resolved = resolve(case.architecture, plain)
    assert resolved.sharing_groups == case.architecture.shared_layers
    assert not resolved.reversible


@pytest.mark.parametrize(("encoder", "decoder"), [(6, 12), (12, 6), (6, 6)])
def test_without_techniques_neither_stack_of_a_t5_shares_weights(
    encoder: int, decoder: int
) -> None:
    model = replace(MODELS["t5-small"], layers=encoder, decoder_layers=decoder)
    plain = without_techniques(model, Plan(sharing_groups=2))
    assert resolve(model, plain) == resolve(model, Plan(reversible=False))
    assert resolve(model, plain).sharing_groups == max(encoder, decoder)


@given(st.text(max_size=12))
def test_any_text_gives_a_value_or_the_error_of_bad_input(text: str) -> None:
    for option in Plan.options().values():
        with suppress(InputError):
            value = option.parse(text)
            assert Plan.parse({option.field: value}) == Plan.parse({option.field: text or None})


@given(cases(), cases())
@examples(100)
def test_a_plan_is_made_again_of_its_texts_its_changes_and_all_its_values(
    case: Case, other: Case
) -> None:
    values, changes = options_in(other.plan), other.plan.changed()
    texts = {name: str(value) for name, value in values.items() if value is not None}
    assert Plan.parse(texts) == Plan.parse(changes) == other.plan
    assert case.plan.but(**changes) == replace(case.plan, **changes)
    assert case.plan.but(**values) == other.plan
    assert hash(case.plan.but(**values)) == hash(other.plan)
    assert type(case.resolved) is Plan
    assert Case(case.architecture, case.resolved).resolved == case.resolved
