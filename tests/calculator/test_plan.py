import math
from contextlib import suppress
from dataclasses import fields, replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.architecture import Architecture
from calculator.catalog import MODELS
from calculator.errors import InputError
from calculator.peaks.prepare import mode_of
from calculator.plan import Attention, Plan, Precision, techniques
from calculator.resolution import plain_value, resolve, without_techniques
from tests.calculator.plans import Case, attention_kernels, cases, examples

EACH_MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def options_in(plan: Plan) -> dict[str, Any]:
    """All options of a plan with their values."""
    return {name: getattr(plan, name) for name in Plan.options()}


def test_every_field_of_a_plan_but_its_card_is_an_option_and_the_other_way_round() -> None:
    assert [item.name for item in fields(Plan)] == [*Plan.options(), "card"]


@given(cases())
@examples(60)
def test_a_resolved_plan_stays_what_it_is(case: Case) -> None:
    resolved = resolve(case.architecture, case.plan)
    assert type(resolved) is Plan
    assert resolve(case.architecture, resolved) == resolved


def test_an_option_has_words_for_people() -> None:
    for option in OPTIONS.values():
        assert option.label, option
        assert option.help.endswith("."), option
        assert option.flag == "--" + option.field.replace("_", "-")


def test_the_defaults_are_those_of_the_design() -> None:
    default = Plan()
    assert (default.batch_size, default.accumulation) == (1, 1)
    assert (default.precision, default.optimizer, default.update) == ("amp", "adam", "foreach")
    assert (default.attention, default.checkpointing, default.offload) == ("sdpa", "none", "none")
    assert default.changed() == {}


@pytest.mark.parametrize(
    ("precision", "bits"), [("fp32", 32), ("amp", 32), ("mixed", 32), ("half", 16)]
)
def test_states_have_the_bits_of_the_weights_that_are_updated(precision: str, bits: int) -> None:
    resolved = resolve(MODELS["gpt2-s"], Plan(precision=precision))  # type: ignore[arg-type]
    assert resolved.optimizer_bits == bits


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


@pytest.mark.parametrize(
    ("field", "limit"),
    [
        ("batch_size", 65_536),
        ("sequence_length", 16_777_216),
        ("target_length", 16_777_216),
        ("sharing_groups", 1_000_000),
        ("accumulation", 65_536),
    ],
)
def test_a_number_may_be_as_large_as_its_rule_says_and_no_larger(field: str, limit: int) -> None:
    assert getattr(Plan(**{field: limit}), field) == limit
    with pytest.raises(InputError, match=rf"{field}.*{limit:,}"):
        Plan(**{field: limit + 1})


@pytest.mark.parametrize(
    ("field", "typed", "meant"),
    [
        ("precision", "apm", "amp"),
        ("optimizer", "adams", "adam"),
        ("attention", "flsh", "flash"),
        ("checkpointing", "ful", "full"),
        ("update", "for-each", "foreach"),
        ("offload", "optimiser", "optimizer"),
    ],
)
def test_a_choice_with_a_slip_gets_the_one_that_was_meant(
    field: str, typed: str, meant: str
) -> None:
    with pytest.raises(InputError, match=rf"did you mean '{meant}'\?"):
        Plan.parse({field: typed})


@pytest.mark.parametrize("typed", ["fp16", "bf16", "FP16", "float16", "bfloat16", "16"])
def test_16_bits_get_the_four_precisions_and_which_of_them_people_mean(typed: str) -> None:
    # transformers' TrainingArguments(fp16=True) runs under torch.autocast
    with pytest.raises(InputError, match=r"fp16=True or bf16=True is amp") as caught:
        Plan.parse({"precision": typed})
    for words in dict(OPTIONS["precision"].choices).values():
        assert words in caught.value.rule
    assert "did you mean" not in caught.value.rule


def test_an_option_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(InputError) as caught:
        Plan.parse({"batchsize": 2})
    assert caught.value.value == "batchsize"
    assert "did you mean 'batch_size'?" in caught.value.rule


def test_texts_and_values_make_the_same_plan() -> None:
    texts = {"batch_size": " 4 ", "optimizer_bits": "8", "reversible": "on", "dropout": "0.5"}
    values = {"batch_size": 4, "optimizer_bits": 8, "reversible": True, "dropout": 0.5}
    assert Plan.parse(texts) == Plan.parse(values) == Plan(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("absent", [None, ""])
def test_an_option_that_is_left_empty_has_its_default(absent: object) -> None:
    for field in OPTIONS:
        assert Plan.parse({field: absent}) == Plan(), field


@given(cases())
@examples(100)
def test_a_plan_is_parsed_back_from_its_texts(case: Case) -> None:
    texts = {name: str(value) for name, value in options_in(case.plan).items() if value is not None}
    assert Plan.parse(texts) == case.plan


@given(cases())
@examples(100)
def test_what_differs_from_the_defaults_makes_the_plan_again(case: Case) -> None:
    assert Plan.parse(case.plan.changed()) == case.plan


@given(cases())
@examples(100)
def test_a_resolved_plan_has_nothing_open_but_what_the_model_lacks(case: Case) -> None:
    resolved = resolve(case.architecture, case.plan)
    open_fields = {name for name, value in options_in(resolved).items() if value is None}
    own = set() if case.architecture.family == "t5" else {"target_length"}
    assert open_fields == own | {
        "lora_targets",
        "lora_dropout",
        "lora_modules",
        "freeze",
    }  # of adapters that it lacks too
    for name, value in case.plan.changed().items():
        if name != "sharing_groups":  # a last layer of its own is left alone
            assert getattr(resolved, name) == value


@pytest.mark.parametrize("model", [m for m in MODELS.values() if m.family != "t5"])
def test_only_t5_has_a_target_length(model: Architecture) -> None:
    with pytest.raises(InputError, match=r"target_length = '8'.*only T5"):
        resolve(model, Plan(target_length=8))


@pytest.mark.parametrize("model", ["dalle-12b", "dalle-together"])
def test_the_text_to_image_model_has_one_length(model: str) -> None:
    with pytest.raises(InputError, match="256 text tokens and 1,024 image codes"):
        resolve(MODELS[model], Plan(sequence_length=1024))
    assert resolve(MODELS[model], Plan(sequence_length=1280)).sequence_length == 1280


@pytest.mark.parametrize("model", ["dalle-12b", "dalle-together"])
@pytest.mark.parametrize(("field", "value"), [("dropout", 0.1), ("tied_embeddings", False)])
def test_the_text_to_image_model_refuses_what_its_class_lacks(
    model: str, field: str, value: Any
) -> None:
    with pytest.raises(InputError) as caught:
        resolve(MODELS[model], Plan(**{field: value}))
    assert caught.value.field == field
    assert model in caught.value.rule


@EACH_MODEL
def test_a_kernel_that_a_model_has_no_code_for_is_refused(model: Architecture) -> None:
    for precision, kernel in product(Precision, Attention):
        plan = Plan(precision=precision, attention=kernel)
        if kernel in attention_kernels(model, precision):
            assert resolve(model, plan).attention is kernel
        else:
            refused = rf"attention = '{kernel}'.*{model.name}.*has code"
            with pytest.raises(InputError, match=refused):
                resolve(model, plan)


@pytest.mark.parametrize(
    ("model", "precision", "refused"),
    [
        ("gpt-j-6b", "amp", {"flash", "efficient", "math"}),  # transformers: eager only
        ("t5-small", "amp", {"flash"}),  # the position bias is a mask
        ("dalle-together", "amp", {"flash"}),  # so are its patterns
        ("gpt2-s", "fp32", {"flash"}),  # flash attention computes in 16 bits
        ("gpt2-s", "half", set()),
        ("bert-base", "mixed", set()),
    ],
)
def test_which_kernels_a_model_has(model: str, precision: str, refused: set[str]) -> None:
    assert set(Attention) - set(attention_kernels(MODELS[model], Precision(precision))) == refused


@EACH_MODEL
def test_there_are_no_more_groups_than_layers(model: Architecture) -> None:
    assert resolve(model, Plan(sharing_groups=model.layers)).sharing_groups == model.shared_layers
    with pytest.raises(InputError) as caught:
        resolve(model, Plan(sharing_groups=model.layers + 1))
    assert (caught.value.field, caught.value.value) == ("sharing_groups", str(model.layers + 1))
    assert model.name in caught.value.rule


def test_adafactor_has_no_8_bit_states_and_no_fused_update() -> None:
    with pytest.raises(InputError, match=r"optimizer_bits = '8'.*32 or 16"):
        resolve(MODELS["gpt2-s"], Plan(optimizer="adafactor", optimizer_bits=8))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"update = 'fused'.*foreach and loop"):
        resolve(MODELS["gpt2-s"], Plan(optimizer="adafactor", update="fused"))  # type: ignore[arg-type]


@given(cases(catalog_only=True))
@examples(60)
def test_without_techniques_nothing_is_saved_and_all_else_is_the_same(case: Case) -> None:
    plain = without_techniques(case.architecture, case.plan)
    named = {option.field for option in techniques()}
    assert named == {
        "optimizer_bits",
        "checkpointing",
        "offload",
        "sharing_groups",
        "reversible",
        "lora",
        "quantization",
        "activation_offload",
        "chunked_loss",
        "update_in_backward",
        "paged_optimizer",
        "data_parallel",
        "cpu_offload",
        "tensor_parallel",
        "sequence_parallel",
        "expert_parallel",
        "context_parallel",
        "pipeline_parallel",
    }
    for name, value in options_in(plain).items():
        expected = (
            plain_value(case.architecture, name) if name in named else options_in(case.plan)[name]
        )
        assert value == expected
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


def test_numbers_of_bytes_follow_the_precision() -> None:
    # Micikevicius et al., 2017: 16-bit weights and gradients beside fp32 masters
    sizes = {}
    for precision in Precision:
        resolved = resolve(MODELS["gpt2-s"], replace(Plan(), precision=precision))
        sizes[str(precision)] = (
            resolved.weight_bytes,
            mode_of(resolved).arithmetic.width,
            resolved.has_master_weights,
        )
    assert sizes == {
        "fp32": (4, 4, False),
        "amp": (4, 2, False),
        "mixed": (2, 2, True),
        "half": (2, 2, False),
    }


@given(cases(), cases())
@examples(40)
def test_a_plan_with_other_values_is_the_one_that_is_made_of_all_values(
    case: Case, other: Case
) -> None:
    values = other.plan.changed()
    assert case.plan.but(**values) == replace(case.plan, **values)  # type: ignore[arg-type]
    assert case.plan.but(**options_in(other.plan)) == other.plan
    assert hash(case.plan.but(**options_in(other.plan))) == hash(other.plan)


def test_another_value_is_read_and_refused_as_any_is() -> None:
    assert Plan().but(precision="half", batch_size="2") == Plan(2, precision=Precision.HALF)
    with pytest.raises(InputError, match="batch_size = '0'"):
        Plan().but(batch_size=0)
