import pytest

from calculator.errors import InputError, unknown_name


def test_the_message_names_field_value_and_rule() -> None:
    error = InputError("batch_size", -3, "must be at least 1")
    assert str(error) == "batch_size = '-3': must be at least 1"
    assert (error.field, error.value, error.rule) == ("batch_size", "-3", "must be at least 1")


def test_it_is_a_value_error() -> None:
    assert issubclass(InputError, ValueError)


@pytest.mark.parametrize("typed", ["gpt2l", "GPT2-L", "gpt2_l", "pgt2-l"])
def test_a_name_with_a_slip_gets_the_one_that_was_meant(typed: str) -> None:
    error = unknown_name("model", typed, ["bert-base", "gpt2-l"])
    assert error.rule == "did you mean 'gpt2-l'? must be one of: bert-base, gpt2-l"
    assert error.value == typed


def test_a_name_like_no_other_gets_the_list_alone() -> None:
    assert unknown_name("model", "llama", ["bert-base"]).rule == "must be one of: bert-base"


def test_names_may_be_read_only_once() -> None:
    assert unknown_name("model", "x", iter(["one", "two"])).rule == "must be one of: one, two"
