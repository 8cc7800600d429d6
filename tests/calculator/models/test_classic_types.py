"""Types whose configurations stand in `validation/configs`: read, refused, and built in time."""

import pytest

from calculator.autograd.mode import Mode
from calculator.autograd.sizes import elements_of, number_of
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.models.registry import build
from calculator.parameters import count_parameters
from calculator.peaks.prepare import numbers_of
from calculator.plan import Plan, Precision
from calculator.resolution import resolve
from tests.calculator.answers import refused
from tests.calculator.plans import attention_kernels
from tests.calculator.real import small_config


@pytest.mark.parametrize(
    ("kind", "length", "precision", "refused"),
    [
        # torch's sdp_utils.cpp: flash takes no mask, and the efficient kernel as many heads of keys
        ("falcon", 100, "amp", {"flash", "efficient"}),
        ("falcon-grouped", 100, "amp", {"flash"}),
        # half of the window of 180, to each side
        ("modernbert", 89, "amp", set()),
        ("modernbert", 90, "amp", set()),
        ("modernbert", 89, "fp32", {"flash"}),
        ("bart", 100, "half", set()),
        ("m2m_100", 100, "half", set()),
        ("vit", 101, "amp", set()),
        ("whisper", 100, "amp", set()),
    ],
)
def test_the_kernels_are_those_that_take_the_masks_of_the_class(
    kind: str, length: int, precision: str, refused: set[str]
) -> None:
    model = from_config(small_config(kind), "here")
    every = {"eager", "sdpa", "flash", "efficient", "math"}
    assert {*map(str, attention_kernels(model, Precision(precision), length))} == every - refused


def test_a_model_that_may_leave_layers_out_is_counted_with_all_and_says_so() -> None:
    config = small_config("m2m_100")
    every, some = (from_config({**config, "encoder_layerdrop": p}, "x") for p in (0, 0.1))
    assert count_parameters(every, resolve(every, Plan())) == count_parameters(
        some, resolve(some, Plan())
    )
    assert some.note.startswith("All layers are counted")


def test_a_whole_number_is_a_fraction_but_no_flag() -> None:
    bart = small_config("bart")
    from_config({**bart, "encoder_layerdrop": 0}, "x")
    for key, value in (("encoder_layerdrop", False), ("is_decoder", 0)):
        with pytest.raises(InputError, match=key):
            from_config({**bart, key: value}, "x")


def test_the_function_between_two_products_is_the_configs() -> None:
    mbart = small_config("mbart")
    peaks = {
        name: estimate(from_config({**mbart, "activation_function": name}, "x"), Plan())
        for name in ("gelu", "relu")
    }
    # relu keeps its result, which the next product keeps too
    assert peaks["relu"].allocated < peaks["gelu"].allocated


def test_a_vision_model_reads_as_many_tokens_as_an_image_has_patches_and_one() -> None:
    shape = from_config({"model_type": "vit", "image_size": 384, "patch_size": 32}, "here")
    assert resolve(shape, Plan()).sequence_length == 12 * 12 + 1
    with refused("sequence_length = '128': must be 145"):
        resolve(shape, Plan(sequence_length=128))


def test_a_model_of_speech_reads_two_frames_a_place_and_any_target() -> None:
    shape = from_config({"model_type": "whisper"}, "here")
    plan = resolve(shape, Plan(target_length=100))
    assert (plan.sequence_length, plan.target_length) == (1500, 100)
    numbers = {**numbers_of(shape, plan), "batch": 1}
    assert number_of(elements_of(build(shape, True).inputs(Mode())[0]), numbers) == 80 * 3000
