"""A Hugging Face config.json -> Architecture."""

import json
from pathlib import Path
from typing import Any

from calculator.architecture import Architecture, Family
from calculator.errors import InputError


def read_config(path: Path) -> Architecture:
    """The architecture that a config.json (or a folder that holds one) describes.

    Raises:
        InputError: when it cannot be read, or describes a model the calculator has no code for.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("model", path, "there is no such file; see `models` for names") from None
    except (OSError, ValueError) as error:
        raise InputError("model", path, f"must be a config.json: {error}") from None
    if not isinstance(config, dict):
        raise InputError("model", path, "must be a config.json: an object with model_type")
    return from_config(config, name=str(path))


def from_config(config: dict[str, Any], name: str) -> Architecture:
    """The architecture of a config's values; absent ones are transformers' defaults."""
    readers = {"bert": _bert, "t5": _t5, "gpt2": _gpt2, "gptj": _gptj}
    kind = str(config.get("model_type"))
    if kind not in readers:
        rule = f"model_type must be one of: {', '.join(readers)}"
        raise InputError("model_type", kind, rule)
    return readers[kind](_Reader(config), name)


class _Reader:
    """Values of a config, checked."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def size(self, field: str, default: int) -> int:
        """A whole number of at least 1."""
        value = self.config.get(field)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(field, value, "must be a whole number of at least 1")
        return value

    def probability(self, field: str, default: float) -> float:
        """A number of at least 0 and below 1."""
        value = self.config.get(field, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise InputError(field, value, "must be a number of at least 0 and below 1")
        return float(value)

    def text(self, field: str, default: str, allowed: tuple[str, ...]) -> str:
        """One of the words that the calculator has code for."""
        value = str(self.config.get(field, default))
        if value not in allowed:
            raise InputError(field, value, f"must be one of: {', '.join(allowed)}")
        return value

    def tied(self, default: bool = True) -> bool:
        """Whether input and output embeddings share weights."""
        return bool(self.config.get("tie_word_embeddings", default))

    def head_size(self, hidden: int, heads: int) -> int:
        """Width of a head, which must divide the hidden size."""
        if hidden % heads:
            raise InputError("hidden size", hidden, f"must be a multiple of the {heads} heads")
        return hidden // heads


def _bert(c: _Reader, name: str) -> Architecture:
    c.text("hidden_act", "gelu", ("gelu",))
    hidden, heads = c.size("hidden_size", 768), c.size("num_attention_heads", 12)
    positions = c.size("max_position_embeddings", 512)
    return Architecture(
        name=name,
        title=name,
        family=Family.BERT,
        layers=c.size("num_hidden_layers", 12),
        hidden_size=hidden,
        heads=heads,
        head_size=c.head_size(hidden, heads),
        feed_forward_size=c.size("intermediate_size", 3072),
        vocabulary_size=c.size("vocab_size", 30_522),
        positions=positions,
        sequence_length=positions,
        dropout=c.probability("hidden_dropout_prob", 0.1),
        tied_embeddings=c.tied(),
        token_types=c.size("type_vocab_size", 2),
        source="transformers",
        note="Counted with the masked-language-model head (BertForMaskedLM).",
    )


def _t5(c: _Reader, name: str) -> Architecture:
    c.text("feed_forward_proj", "relu", ("relu",))
    layers = c.size("num_layers", 6)
    length = c.size("n_positions", 512)
    return Architecture(
        name=name,
        title=name,
        family=Family.T5,
        layers=layers,
        decoder_layers=c.size("num_decoder_layers", layers),
        hidden_size=c.size("d_model", 512),
        heads=c.size("num_heads", 8),
        head_size=c.size("d_kv", 64),
        feed_forward_size=c.size("d_ff", 2048),
        vocabulary_size=c.size("vocab_size", 32_128),
        positions=0,
        sequence_length=length,
        target_length=length,
        dropout=c.probability("dropout_rate", 0.1),
        relative_buckets=c.size("relative_attention_num_buckets", 32),
        source="transformers",
    )


def _gpt2(c: _Reader, name: str) -> Architecture:
    c.text("activation_function", "gelu_new", ("gelu_new",))
    hidden, heads = c.size("n_embd", 768), c.size("n_head", 12)
    positions = c.size("n_positions", 1024)
    return Architecture(
        name=name,
        title=name,
        family=Family.GPT2,
        layers=c.size("n_layer", 12),
        hidden_size=hidden,
        heads=heads,
        head_size=c.head_size(hidden, heads),
        feed_forward_size=c.size("n_inner", 4 * hidden),
        vocabulary_size=c.size("vocab_size", 50_257),
        positions=positions,
        sequence_length=positions,
        dropout=c.probability("resid_pdrop", 0.1),
        tied_embeddings=c.tied(),
        source="transformers",
    )


def _gptj(c: _Reader, name: str) -> Architecture:
    c.text("activation_function", "gelu_new", ("gelu_new",))
    hidden, heads = c.size("n_embd", 4096), c.size("n_head", 16)
    return Architecture(
        name=name,
        title=name,
        family=Family.GPTJ,
        layers=c.size("n_layer", 28),
        hidden_size=hidden,
        heads=heads,
        head_size=c.head_size(hidden, heads),
        feed_forward_size=c.size("n_inner", 4 * hidden),
        vocabulary_size=c.size("vocab_size", 50_400),
        positions=0,
        sequence_length=c.size("n_positions", 2048),
        dropout=c.probability("resid_pdrop", 0.0),
        tied_embeddings=c.tied(default=False),
        rotary_size=c.size("rotary_dim", 64),
        source="transformers",
    )
