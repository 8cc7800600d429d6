import pytest

from calculator.architecture import Architecture
from calculator.catalog import GPUS, MODELS, SOURCES

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


def test_a_source_has_a_title_and_a_secure_address() -> None:
    for source in SOURCES.values():
        assert source.title
        assert source.address.startswith("https://"), source
