"""Causal language models of transformers as recipes."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from calculator.errors import InputError
from tests.training.shapes.sentences import first_sentence, is_sentence
from training.data import streaming
from training.data.texts import write_sentences
from training.model import build, checkpoint, language
from training.optimizer.lamb import parameter_groups
from training.run.live import LiveFolder
from training.run.recipes import LANGUAGE, Recipe, derive

CPU = torch.device("cpu")
STEPS = 160
SIZES = {"vocab_size": 40, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {**SIZES, **HEADS, "tie_word_embeddings": False},
    "qwen3": {**SIZES, **HEADS, "tie_word_embeddings": True},
    "gpt2": {"vocab_size": 40, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32},
}


def recipe_of(kind: str) -> Recipe:
    """The language recipe with another model."""
    changes = {"model": {"config": {"model_type": kind, **CONFIGS[kind]}}}
    return derive("language", changes)


@pytest.mark.parametrize("kind", CONFIGS)
def test_first_weights_are_alike_and_survive_a_checkpoint(kind: str, tmp_path: Path) -> None:
    recipe = recipe_of(kind)
    model, twin = build.build_model(recipe), build.build_model(recipe)
    checkpoint.publish(LiveFolder(tmp_path), model, 7, 1.0, "now")
    step, read = checkpoint.fetch(str(tmp_path), config=build.config_of(recipe))
    own_shape = checkpoint.fetch(str(tmp_path))[1]
    assert step == 7
    batch = build.example(recipe)
    for other in (twin, read, own_shape):
        assert other.config.recipe == "language"
        assert torch.equal(model.eval()(**batch).loss, other.eval()(**batch).loss)


@pytest.mark.parametrize("kind", CONFIGS)
def test_one_layer_is_enough_to_warm_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_model = Mock(wraps=build.make_model)
    monkeypatch.setattr(build, "make_model", make_model)
    build.warm_up(recipe_of(kind), CPU)
    assert [call.args[0].num_hidden_layers for call in make_model.call_args_list] == [1]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"model_type": "t5"}, "model_type"),
        ({"model_type": ["llama"]}, "model_type"),
        ({}, "model_type"),
        ({"model_type": "llama", "vocab_size": 0}, "vocab_size"),
        ({"model_type": "llama", "vocab_size": 2**40}, "vocab_size"),
        ({"model_type": "llama", "hidden_size": "wide"}, "config"),
    ],
)
def test_configurations_of_other_models_are_refused(values: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        language.make_config(values)
    assert caught.value.field == field


def test_code_that_a_configuration_names_is_not_looked_at() -> None:
    values = {"model_type": "llama", **CONFIGS["llama"], "auto_map": {"AutoConfig": "evil.Config"}}
    config = language.make_config(values)
    assert not hasattr(config, "auto_map")
    assert type(language.make_model(config)).__module__.startswith("transformers.models.llama.")


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sentences")
    write_sentences(folder, "text", 4000)
    return folder


def test_texts_become_sentences_of_the_grammar(sentences: Path) -> None:
    torch.set_num_threads(1)
    stream = streaming.stream(LANGUAGE, b"peer", sentences, 32)
    model = build.open_model(LANGUAGE, CPU)
    before = share_of_sentences(model)
    optimizer = torch.optim.AdamW(parameter_groups(model, LANGUAGE))
    losses = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = 1.5e-2 * (1 - step / STEPS)
        loss = model(**next(stream)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[0] > 3.5  # ln 40 = 3.69, for 40 words of which none is likelier
    assert losses[-1] < 1.8
    assert before < 0.1
    assert share_of_sentences(model) > 0.7


def share_of_sentences(model: Any) -> float:
    """Fraction of the texts that the model writes whose first sentence is one of the grammar."""
    settings = replace(LANGUAGE.generation, images_per_prompt=16)
    rows = language.continue_texts(model, LANGUAGE, LANGUAGE.generation.prompts, settings)
    texts = [text for row in rows for text in row]
    assert len(texts) == 48
    return sum(is_sentence(first_sentence(text)) for text in texts) / len(texts)
