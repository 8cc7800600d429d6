"""Words of other libraries, as their documentation has them."""

import json

import pytest

from calculator.elsewhere import FLAGS, OTHERS, VALUES, flags_of, in_our_words
from calculator.optimizers.registry import names_elsewhere
from calculator.plan import Plan
from tests.calculator.answers import answered, refused

WORDS = {**VALUES, "optimizer": names_elsewhere()}


@pytest.mark.parametrize(
    ("field", "typed", "meant"),
    [
        # transformers, `OptimizerNames`: what each is in bitsandbytes or PyTorch
        ("optimizer", "adamw_torch", {}),
        ("optimizer", "adamw_torch_fused", {"update": "fused"}),
        ("optimizer", "adamw_8bit", {"optimizer_bits": 8}),
        ("optimizer", "adamw_bnb_8bit", {"optimizer_bits": 8}),
        ("optimizer", "paged_adamw_32bit", {"paged_optimizer": True}),
        ("optimizer", "paged_adamw_8bit", {"optimizer_bits": 8, "paged_optimizer": True}),
        ("optimizer", "lion_8bit", {"optimizer": "lion", "optimizer_bits": 8}),
        ("attention", "flash_attention_2", {"attention": "flash"}),
        ("data_parallel", "fsdp2", {"data_parallel": "fsdp"}),
        ("checkpointing", "True", {"checkpointing": "full"}),
        ("checkpointing", False, {"checkpointing": "none"}),
    ],
)
def test_a_value_of_another_library_is_ours(
    field: str, typed: object, meant: dict[str, object]
) -> None:
    assert Plan.parse({field: typed}) == Plan.parse(meant)


@pytest.mark.parametrize(
    ("field", "typed", "words"),
    [
        ("optimizer", "lomo", "choose sgd, and update in backward"),
        ("optimizer", "galore_adamw", "is not counted"),
        ("checkpointing", "unsloth", "choose full, and activation offload"),
        ("data_parallel", "zero3", "holds more beside it"),
        ("attention", "flash_attention_3", "not counted"),
    ],
)
def test_what_nothing_here_stands_for_is_said_with_the_way_out(
    field: str, typed: str, words: str
) -> None:
    with refused(f"{field} = '{typed}'", words):
        Plan.parse({field: typed})


@pytest.mark.parametrize(
    ("field", "typed"), [(field, typed) for field, words in WORDS.items() for typed in words]
)
def test_every_word_makes_a_plan(field: str, typed: str) -> None:
    assert typed == typed.lower()
    assert typed not in OTHERS.get(field, {})
    assert Plan.parse({field: typed}) == Plan.parse(WORDS[field][typed])
    assert in_our_words({field: typed}).keys() <= Plan.options().keys()


def test_the_flags_of_other_libraries_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "estimate gpt2-s --per_device_train_batch_size 4 --max-seq-length 512 --lora-r 8 "
        "--gradient-accumulation-steps 2 --optim paged_adamw_8bit --target_modules all-linear "
        "--attn_implementation flash_attention_2 --json"
    )
    plan = json.loads(answered(words, capsys))["plan"]
    expected = {"batch_size": 4, "sequence_length": 512, "lora": 8, "accumulation": 2}
    expected |= {"optimizer": "adam", "optimizer_bits": 8, "paged_optimizer": True}
    expected |= {"attention": "flash", "lora_targets": "all-linear"}
    assert {name: plan[name] for name in expected} == expected


def test_no_flag_of_another_library_is_an_option_of_ours() -> None:
    own = {option.flag for option in Plan.options().values()}
    others = [flag for field in FLAGS for flag in flags_of(field)]
    assert FLAGS.keys() <= Plan.options().keys()
    assert not own & set(others)
    assert len(others) == len(set(others))
