import pickle

import pytest

from calculator.catalog import find_model
from calculator.errors import InputError, unknown_name
from calculator.estimate import estimate
from calculator.laws import RefusedError
from calculator.plan import DataParallel, Optimizer, Plan


def test_a_refusal_keeps_its_reason_on_the_way_from_another_process() -> None:
    plan = Plan(optimizer=Optimizer.LION, gpus=2, data_parallel=DataParallel.FSDP)
    with pytest.raises(RefusedError) as caught:
        estimate(find_model("gpt2-s"), plan)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy)) == (RefusedError, str(caught.value))
    assert vars(copy) == vars(caught.value)


@pytest.mark.parametrize("typed", ["gpt2l", "GPT2-L", "gpt2_l", "pgt2-l"])
def test_a_name_with_a_slip_gets_the_one_that_was_meant(typed: str) -> None:
    error = unknown_name("model", typed, ["bert-base", "gpt2-l"])
    assert error.rule == "did you mean 'gpt2-l'? must be one of: bert-base, gpt2-l"
    assert error.value == typed


DEEP: list[object] = []
for _ in range(500):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value", ["a" * 10_000, "two\nlines\r\x1b[31m", "\ud800", DEEP, ["a" * 999] * 999, {"a": DEEP}]
)
def test_a_message_is_one_printable_line_of_bounded_length(value: object) -> None:
    for error in (
        InputError("model", value, "must be short"),
        InputError(str(value)[:2000], "short", f"must not be {str(value)[:2000]}"),
        unknown_name("model", value, ["gpt2-l"]),
    ):
        assert str(error).isprintable()
        assert len(str(error)) < 1500
        assert len(error.value) <= 80
