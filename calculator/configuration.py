"""The values of a Hugging Face config.json, checked, and a list of the keys that were read."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from calculator.errors import InputError
from calculator.nesting import is_too_deep
from calculator.wrong_files import describe_file, describe_text

LARGEST_SIZE: Final = 1_000_000_000
MOST_LAYERS: Final = 1_000_000
LONGEST_SEQUENCE: Final = 16_777_216
# in characters; some models list the names of thousands of labels
LONGEST_TEXT: Final = 2_000_000

# Keys that change nothing of what a training step keeps in memory, whatever the model: where it
# comes from, how it was initialised, how it generates text, and what the plan decides instead.
_HARMLESS = """
    _name_or_path model_type transformers_version architectures auto_map custom_pipelines
    initializer_range initializer_factor init_std
    layer_norm_eps layer_norm_epsilon rms_norm_eps norm_eps norm_epsilon
    bos_token_id eos_token_id pad_token_id sep_token_id cls_token_id mask_token_id unk_token_id
    decoder_start_token_id forced_bos_token_id forced_eos_token_id prefix tokenizer_class
    use_cache return_dict gradient_checkpointing attn_implementation
    dtype torch_dtype id2label label2id num_labels problem_type classifier_dropout finetuning_task
    task_specific_params keys_to_ignore_at_inference output_past
    do_sample early_stopping max_length min_length max_new_tokens num_beams num_beam_groups
    diversity_penalty temperature top_k top_p typical_p repetition_penalty length_penalty
    no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids suppress_tokens
    begin_suppress_tokens num_return_sequences output_scores return_dict_in_generate
    remove_invalid_values exponential_decay_length_penalty
    use_bfloat16 tf_legacy_loss cross_attention_hidden_size
    sentence_transformers sbert_ce_default_activation_function dual_chunk_attention_config
    transformers.js_config unsloth_version unsloth_fixed is_llama_config
"""
HARMLESS: Final = frozenset(_HARMLESS.split())
# Keys that older versions wrote for every class, with the value that changes nothing.
_IDLE: Final[dict[str, object]] = {
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "tie_encoder_decoder": False,
    "torchscript": False,
    "pruned_heads": {},
}


class Configuration:
    """A config.json's keys and values; null stands for a key that is absent.

    Each reader of a value states its rule. Once all is read, `check_all_understood` rejects
    keys that no one has read. `dropouts` has the keys that a plan's dropout replaces.

    >>> config = Configuration({"model_type": "gpt2", "n_layer": 6, "n_inner": None})
    >>> config.size("n_layer", 12), config.size("n_inner", 3072)
    (6, 3072)
    >>> config.check_all_understood()
    """

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values
        self._understood: set[str] = set()
        self.dropouts: set[str] = set()

    def value(self, key: str, *aliases: str) -> Any:
        """The value at a key or one of its other names; None if it is null or absent.

        Raises:
            InputError: if two of the names have different values.
        """
        found = {
            name: self._values[name]
            for name in (key, *aliases)
            if self._values.get(name) is not None
        }
        self._understood |= {key, *aliases}
        if not found:
            return None
        (first, value), *others = found.items()
        for name, other in others:
            if other != value:
                raise InputError(name, other, f"must be the same as {first}, or absent")
        return value

    def has_null(self, key: str) -> bool:
        """True if the key is present with null."""
        return key in self._values and self._values[key] is None

    def size(self, key: str, default: int, *aliases: str, most: int = LARGEST_SIZE) -> int:
        """A whole number of at least 1."""
        value = self.value(key, *aliases)
        if value is None:
            return default
        if type(value) is not int or not 1 <= value <= most:
            rule = f"must be a whole number from 1 to {most:,}"
            raise InputError(key, value, rule)
        return value

    def count(self, key: str, default: int) -> int:
        """A whole number of at least 0."""
        value = self.value(key)
        return 0 if type(value) is int and value == 0 else self.size(key, default)

    @staticmethod
    def head_size(hidden: int, heads: int) -> int:
        """Width of a head; the heads must fill the hidden size."""
        if hidden % heads:
            raise InputError("hidden size", hidden, f"must be a multiple of the {heads} heads")
        return hidden // heads

    def probability(self, key: str, default: float) -> float:
        """A number of at least 0 and below 1."""
        value = self.value(key)
        if value is None:
            return default
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise InputError(key, value, "must be a number of at least 0 and below 1")
        return float(value)

    def dropout(self, key: str, default: float, *others: str) -> float:
        """One probability for all dropouts, if all of them are zero or none is."""
        self.dropouts |= {key, *others}
        first = self.probability(key, default)
        for other in others:
            second = self.probability(other, default)
            if (first > 0) != (second > 0):
                rule = f"must be zero where {key} is, and above zero where it is not"
                raise InputError(other, second, f"{rule}: one dropout is counted for all")
        return first

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.value(key)
        if value is None:
            return default
        if type(value) is not bool:
            raise InputError(key, value, "must be true or false")
        return value

    def text(self, key: str, default: str, allowed: Iterable[str]) -> str:
        """One of the words that the calculator has code for."""
        value = self.value(key)
        if value is None:
            return default
        if not isinstance(value, str) or value not in allowed:
            raise InputError(key, value, f"must be one of: {', '.join(allowed)}")
        return value

    def only(self, key: str, counted: object, *aliases: str) -> None:
        """Reject any value except the one that is counted, which is also the default."""
        value = self.value(key, *aliases)
        same = isinstance(value, bool) is isinstance(counted, bool) and value == counted
        if value is not None and not same:
            rule = f"must be {json.dumps(counted)} or absent: the calculator counts nothing else"
            raise InputError(key, value, rule)

    def ignore(self, *keys: str) -> None:
        """Keys that a model's class declares and that do not affect the result."""
        self._understood |= {*keys}

    def check_all_understood(self) -> None:
        """Reject, by name, an unread key that may change the computation.

        Raises:
            InputError: for the first such key.
        """
        for key, idle in _IDLE.items():
            if key not in self._understood:
                self.only(key, idle)
        for key, value in self._values.items():
            if value is None or key in self._understood or key in HARMLESS:
                continue
            if key.startswith(("_", "summary_")):
                continue
            rule = "the calculator does not know this key; remove it if the model's class does not"
            raise InputError(key, value, f"{rule} read it")


def parse(text: str, name: str) -> dict[str, Any]:
    """The object that a config.json's text holds.

    Raises:
        InputError: for a text that is none.
    """
    if len(text) > LONGEST_TEXT:
        rule = f"must be a config.json of at most {LONGEST_TEXT:,} characters"
        raise InputError("model", name, rule)
    if is_too_deep(text):
        raise InputError("model", name, "must be a config.json: too deeply nested")
    try:
        values = json.loads(text)
    except ValueError as error:
        rule = f"must be a config.json: {describe_text(text) or error}"
        raise InputError("model", name, rule) from None
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else "one value"
        raise InputError("model", name, f"must be a config.json: is {kind}, no object with keys")
    if "model_type" not in values and (found := describe_file(values)):
        raise InputError("model", name, f"must be a config.json: {found}")
    return values


def labels_of(c: Configuration) -> int:
    """Number of classes: as many as the configuration names, or two."""
    named = c.value("id2label")
    if named is None:
        return c.size("num_labels", 2)
    if not isinstance(named, dict) or not named:
        raise InputError("id2label", named, "must be an object with a name for each class")
    return len(named)
