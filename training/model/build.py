"""A recipe's model, of either kind: the paper's transformer, or a causal language model."""

import json
from dataclasses import asdict
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from calculator.errors import InputError
from training.model import configuration, language
from training.model.configuration import TextToImageConfig
from training.model.transformer import TextToImageTransformer
from training.run.recipes import LanguageSettings, Recipe


def config_of(recipe: Recipe) -> PreTrainedConfig:
    """The configuration of a recipe's model."""
    if isinstance(recipe.model, LanguageSettings):
        return language.config_of(recipe.model, recipe.name)
    return TextToImageConfig(**asdict(recipe.model), recipe=recipe.name)


def parse_config(content: bytes) -> PreTrainedConfig:
    """The configuration in a ``config.json``: the model's shape, and no code.

    Raises:
        InputError: it is no JSON object, or a field is not as it must be.
    """
    try:
        values = json.loads(content)
    except (RecursionError, ValueError) as error:
        raise InputError("config", "the file", f"must be JSON ({error})") from error
    if not isinstance(values, dict):
        raise InputError("config", type(values).__name__, "must be an object")
    if values.get("model_type") == TextToImageConfig.model_type:
        return configuration.make_config(values)
    return language.make_config(values)


def make_model(config: PreTrainedConfig) -> PreTrainedModel:
    """The model of a configuration, with new weights."""
    if isinstance(config, TextToImageConfig):
        return TextToImageTransformer(config)
    return language.make_model(config)


def build_model(recipe: Recipe, layers: int | None = None) -> PreTrainedModel:
    """The recipe's model with new weights, the same in every process: seeded by the recipe.

    Args:
        layers: of the model, in place of the recipe's.
    """
    config = config_of(recipe)
    if isinstance(config, TextToImageConfig):
        config.num_hidden_layers = layers or config.num_hidden_layers
    elif layers is not None:
        config = language.with_layers(config, layers)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return make_model(config)


def open_model(recipe: Recipe, device: torch.device, layers: int | None = None) -> PreTrainedModel:
    """The recipe's model with new weights, ready to train on a device."""
    model = build_model(recipe, layers)
    model.train()
    if device.type == "cpu" and isinstance(model, TextToImageTransformer):
        model.attend_in_lines()  # there it is measured to be faster
    torch.nn.Module.to(model, device)
    return model


def warm_up(recipe: Recipe, device: torch.device) -> None:
    """Run every operator of a training step once, with a model of one layer, in a moment.

    Processes that fork afterwards find the operators initialised.
    """
    model = open_model(recipe, device, layers=1)
    batch = {name: part.to(device) for name, part in example(recipe).items()}
    model(**batch).loss.backward()


def example(recipe: Recipe) -> dict[str, torch.Tensor]:
    """A batch of one sequence, of zeros."""
    shape: Any = recipe.model
    if isinstance(recipe.model, LanguageSettings):
        ids = torch.zeros(1, shape.sequence_length, dtype=torch.long)
        return {"input_ids": ids, "labels": ids}
    return {
        "text_ids": torch.zeros(1, shape.text_length, dtype=torch.long),
        "image_codes": torch.zeros(1, shape.image_side**2, dtype=torch.long),
    }
