from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.catalog import MODELS
from calculator.parameters import count_parameters
from calculator.plan import Plan
from calculator.resolution import resolve
from tests.calculator.plans import architectures, examples

# the sizes of the catalog in transformers 5.23's BertForMaskedLM, T5ForConditionalGeneration,
# GPT2LMHeadModel and GPTJForCausalLM: sum(p.numel() for p in model.parameters())
HUGGING_FACE = {
    "bert-base": 109_514_298, "bert-large": 335_174_458, "t5-small": 60_506_624,
    "t5-base": 222_903_552, "t5-large": 737_668_096, "t5-3b": 2_851_598_336,
    "t5-11b": 11_307_321_344, "gpt2-s": 124_439_808, "gpt2-m": 354_823_168, "gpt2-l": 774_030_080,
    "gpt2-xl": 1_557_611_200, "gpt3-s": 125_226_240, "gpt3-m": 355_871_744,
    "gpt3-3b": 2_651_553_280, "gpt3-7b": 6_658_404_352, "gpt3-175b": 174_604_259_328,
    "gpt-j-6b": 6_050_882_784,
}  # fmt: skip


def count(model: str, **options: Any) -> int:
    architecture = MODELS[model]
    return count_parameters(architecture, resolve(architecture, Plan(**options)))


@pytest.mark.parametrize(("model", "parameters"), HUGGING_FACE.items())
def test_the_count_is_that_of_the_real_class(model: str, parameters: int) -> None:
    assert count(model) == parameters


def test_sharing_makes_the_text_to_image_model_almost_nine_times_smaller() -> None:
    # counted from the shapes of the published checkpoint; the paper says about 8 times
    assert count("dalle-together") == 125_894_244
    assert count("dalle-together", sharing_groups=64) == 1_116_354_148


@pytest.mark.parametrize("groups", [1, 3, 11, 12])
def test_a_shared_layer_counts_once(groups: int) -> None:
    # a layer of GPT-2 Small has 12 d^2 + 13 d numbers
    layer = 12 * 768**2 + 13 * 768
    assert count("gpt2-s", sharing_groups=groups) == 124_439_808 - (12 - groups) * layer


@given(architectures(), st.data())
@examples(60)
def test_fewer_groups_never_count_more(model: Any, data: st.DataObject) -> None:
    groups = data.draw(st.integers(2, model.layers))
    fewer, more = (
        count_parameters(model, resolve(model, Plan(sharing_groups=number)))
        for number in (groups - 1, groups)
    )
    assert fewer <= more
