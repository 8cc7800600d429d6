"""Causal language models of transformers: built from a config.json, and what they write.

No code comes with a configuration: its type must be one that transformers itself has.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from calculator.errors import InputError
from training.model.captions import find_tokenizer
from training.run.recipes import GenerationSettings, LanguageSettings, Recipe
from training.run.status import first_line
from training.shapes import grammar

MOST_TOKENS = 2**20  # of a vocabulary, and of a sequence: what is above is no model
_LEFT_OUT = ("auto_map", "dtype", "quantization_config", "torch_dtype", "transformers_version")


def config_of(settings: LanguageSettings, recipe: str) -> PreTrainedConfig:
    """The configuration of a recipe's model; one that the Hub has is downloaded.

    Raises:
        InputError: the Hub has none, or it is not that of a causal language model.
    """
    return make_config(settings.values() | {"recipe": recipe})


def make_config(values: Mapping[str, Any]) -> PreTrainedConfig:
    """The configuration that a config.json describes.

    Raises:
        InputError: it is not that of a causal language model, or a value is not as it must be.
    """
    model_type = values.get("model_type")
    if not isinstance(model_type, str) or model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        rule = "must be a type of causal language model that transformers has"
        raise InputError("model_type", model_type, rule)
    kept = {k: one for k, one in values.items() if k not in _LEFT_OUT and not k.startswith("_")}
    try:
        config: PreTrainedConfig = AutoConfig.for_model(**kept)
    except Exception as error:  # each type's configuration raises errors of its own
        rule = f"must describe a {model_type} ({first_line(error)})"
        raise InputError("config", model_type, rule) from error
    size = getattr(config, "vocab_size", 0)
    if not 1 <= size <= MOST_TOKENS:
        raise InputError("vocab_size", size, f"must be from 1 to {MOST_TOKENS:,}")
    config.use_cache = False  # in training; `continue_texts` asks for one
    return config


def make_model(config: PreTrainedConfig) -> PreTrainedModel:
    """The model of a configuration with new weights in 32 bits.

    Raises:
        InputError: transformers does not build it.
    """
    try:
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    except Exception as error:  # each type's model raises errors of its own
        rule = f"must describe a {config.model_type} ({first_line(error)})"
        raise InputError("config", config.model_type, rule) from error
    return model


def with_layers(config: PreTrainedConfig, layers: int) -> PreTrainedConfig:
    """The configuration with its first layers only."""
    values = config.to_dict()
    for name in ("layer_types", "mlp_layer_types"):
        if values.get(name):
            values[name] = values[name][:layers]
    name = config.attribute_map.get("num_hidden_layers", "num_hidden_layers")
    return make_config(values | {name: layers})


class TextTokenizer:
    """Turns texts into ids, each with an end, and ids into texts.

    Args:
        name: `grammar` for the words of the grammar, else a folder or a name on the Hub.
        vocabulary_size: that the model has; None: not known.

    Raises:
        InputError: there is no such tokenizer, it has no token that ends a text, or more tokens
            than the model.
    """

    def __init__(self, name: str, vocabulary_size: int | None = None) -> None:
        self.tokenizer: PreTrainedTokenizerBase = (
            _grammar_tokenizer() if name == "grammar" else find_tokenizer(name)
        )
        count = len(self.tokenizer)
        if vocabulary_size is not None and count > vocabulary_size:
            raise InputError("tokenizer", name, f"has {count} tokens, the model {vocabulary_size}")
        ends = (self.tokenizer.eos_token_id, self.tokenizer.sep_token_id)
        found = [end for end in ends if isinstance(end, int)]
        if not found:
            raise InputError("tokenizer", name, "must have a token that ends a text")
        self.end = found[0]

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without its end."""
        ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return [int(number) for number in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without tokens that stand for no text."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))


def _grammar_tokenizer() -> PreTrainedTokenizerBase:
    names = ("<end>", "<unknown>", *grammar.WORDS)
    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(names)}, names[1]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        eos_token=names[0],
        unk_token=names[1],
        clean_up_tokenization_spaces=False,
    )


@torch.no_grad()
def continue_texts(
    model: PreTrainedModel,
    recipe: Recipe,
    prompts: Sequence[str],
    settings: GenerationSettings | None = None,
    seed: int = 0,
) -> list[list[str]]:
    """Go on writing from each prompt: `images_per_prompt` texts for each, the prompt included.

    Args:
        recipe: names the tokenizer.
        settings: None takes the recipe's.
        seed: the same seed writes the same texts.
    """
    settings = settings or recipe.generation
    tokenizer = TextTokenizer(recipe.data.tokenizer, model.config.vocab_size)
    sampling = {"temperature": settings.temperature, "top_k": settings.top_k or 0}
    texts = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for prompt in prompts:
            ids = torch.tensor([tokenizer.encode(prompt) or [tokenizer.end]], device=model.device)
            written = model.generate(  # type: ignore[operator]
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=settings.temperature > 0,
                num_return_sequences=settings.images_per_prompt if settings.temperature else 1,
                max_new_tokens=settings.longest_text,
                eos_token_id=tokenizer.end,
                pad_token_id=tokenizer.end,
                use_cache=True,
                **(sampling | {"top_p": settings.top_p or 1.0} if settings.temperature else {}),
            )
            texts.append([tokenizer.decode(row) for row in written.tolist()])
    return texts
