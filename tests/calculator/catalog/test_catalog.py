from collections.abc import Callable

import pytest

from calculator.architecture import Architecture
from calculator.catalog import GPUS, MODELS, SOURCES, find_model
from calculator.errors import InputError

NAMES = [
    *("bert-base", "bert-large"),
    *("t5-small", "t5-base", "t5-large", "t5-3b", "t5-11b"),
    *("gpt2-s", "gpt2-m", "gpt2-l", "gpt2-xl"),
    *("gpt3-s", "gpt3-m", "gpt3-l", "gpt3-xl", "gpt3-3b", "gpt3-7b", "gpt3-13b", "gpt3-175b"),
    *("gpt-j-6b", "dalle-12b", "dalle-together"),
]

EACH_MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)


def test_every_promised_model_is_there() -> None:
    assert list(MODELS) == NAMES


def test_every_family_has_a_model() -> None:
    assert {model.family for model in MODELS.values()} == {"bert", "t5", "gpt2", "gptj", "dalle"}


@EACH_MODEL
def test_a_model_is_found_by_its_own_name(model: Architecture) -> None:
    assert find_model(model.name) is model


@EACH_MODEL
def test_a_model_has_a_title_and_a_known_source(model: Architecture) -> None:
    assert model.title
    assert model.source in SOURCES


@EACH_MODEL
def test_heads_fill_the_width_except_in_t5(model: Architecture) -> None:
    if model.family == "t5":
        assert model.target_length is not None
        assert model.decoder_layers == model.layers
    else:
        assert model.attention_size == model.hidden_size
        assert model.decoder_layers == 0


@EACH_MODEL
def test_a_sequence_fits_the_learned_positions(model: Architecture) -> None:
    assert model.positions in (0, model.sequence_length)


def test_titles_are_told_apart() -> None:
    for entries in (MODELS, GPUS):
        titles = [entry.title for entry in entries.values()]
        assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("name", ["gpt3-xl", "gpt3-13b"])
def test_where_the_paper_contradicts_itself_a_note_says_what_is_counted(name: str) -> None:
    # Brown et al., 2020, table 2.1: 24 heads of 128 at 2,048; 40 heads of 128 at 5,140
    model = MODELS[name]
    assert model.heads * model.head_size == model.hidden_size
    assert "paper" in model.note
    assert f"{model.heads} " in model.note


def test_our_text_to_image_model_is_that_of_the_run() -> None:
    # Borzunov et al., 2022, section 3.1, and the run's published code
    model = MODELS["dalle-together"]
    assert (model.layers, model.hidden_size, model.heads, model.head_size) == (64, 1024, 16, 64)
    assert (model.sharing_groups, model.own_last_layer, model.reversible) == (4, True, True)
    assert model.sequence_length == model.text_length + model.image_side**2 == 1280
    assert (model.vocabulary_size, model.image_vocabulary_size) == (32_100, 8192)


def test_a_free_gpu_of_notebooks_is_among_them() -> None:
    assert "free" in GPUS["t4"].note


def test_a_source_has_a_title_and_a_secure_address() -> None:
    for source in SOURCES.values():
        assert source.title
        assert source.address.startswith("https://"), source


@pytest.mark.parametrize(
    ("find", "field", "typed", "meant"),
    [
        (find_model, "model", "gpt3-3b-v2", "gpt3-3b"),
        (find_model, "model", "distilbert", "distilbert/distilbert-base-uncased"),
        (find_model, "model", "Llama-3.2-8B", "meta-llama/Llama-3.1-8B"),
    ],
)
def test_an_unknown_name_gets_the_closest_known_one(
    find: Callable[[str], object], field: str, typed: str, meant: str
) -> None:
    with pytest.raises(InputError) as caught:
        find(typed)
    assert (caught.value.field, caught.value.value) == (field, typed)
    assert caught.value.rule.startswith(f"did you mean '{meant}'?")
