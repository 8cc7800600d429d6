"""Lookup of a model's name: in the catalog, or a config.json, whether or not it can be counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from calculator.architecture import Architecture
from calculator.catalog import find_model, is_known, known_shape
from calculator.catalog.checkpoints import CHECKPOINTS
from calculator.config_file import read_values
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.hf_config import can_read, from_config, text_model
from calculator.models.registry import TYPES

ROOT: Final = Path(__file__).parents[1]

# the keys by which types name the layers of their stacks
LAYER_KEYS: Final = (
    *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"),
    *("encoder_layers", "decoder_layers"),
)
# keys that list something for each layer
LISTS: Final = ("layer_types", "mlp_layer_types", "no_rope_layers")


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A model to measure.

    Attributes:
        name: a name of the catalog, or the path of a config.json.
        kind: its ``model_type``.
        values: the keys of its config.json; none for our own class.
        dropouts: the keys that `--dropout` sets; None for all that the real class has.
        counted: its architecture, or why the calculator cannot count it yet.
    """

    name: str
    kind: str
    values: Mapping[str, Any]
    dropouts: frozenset[str] | None
    counted: Architecture | InputError

    @property
    def architecture(self) -> Architecture:
        """The architecture for the calculator.

        Raises:
            InputError: where it cannot yet.
        """
        if isinstance(self.counted, InputError):
            raise self.counted
        return self.counted

    @property
    def is_ours(self) -> bool:
        """True for a class of our own, which transformers does not have."""
        return self.kind in TYPES and not TYPES[self.kind].counted

    @property
    def has_target(self) -> bool:
        """True if a decoder reads a sequence of another length."""
        known = self.kind in TYPES and TYPES[self.kind].has_target
        return known or any(key in self.values for key in ("num_decoder_layers", "decoder_layers"))


@lru_cache(maxsize=1024)
def find_subject(name: str, layers: int | None) -> Subject:
    """The model of that name, with `layers` in place of the layers of each stack.

    Raises:
        InputError: for a name that is neither in the catalog nor a config.json's.
    """
    values: Mapping[str, Any]
    found = name if is_known(name) else known_shape(name)
    if found in CHECKPOINTS:
        values = CHECKPOINTS[found].values
    elif found is None and _is_path(name):
        values = text_model(read_values(_path(name)))
    else:
        return _short(find_model(name), layers)
    return _configured(name, values if layers is None else _with_layers(values, layers))


def _is_path(name: str) -> bool:
    path = Path(name)
    return path.suffix == ".json" or len(path.parts) > 1


def _path(name: str) -> Path:
    """The path of a config.json; committed ones are found from any folder."""
    path = Path(name)
    inside = ROOT / path
    return inside if not path.exists() and inside.exists() else path


def _configured(name: str, values: Mapping[str, Any]) -> Subject:
    kind = values.get("model_type")
    if not isinstance(kind, str):
        raise InputError("model_type", kind, "must be a name that transformers knows")
    asked = Configuration(values)
    counted: Architecture | InputError
    try:
        counted = from_config(values, name)
        TYPES[kind].read(asked, name)
    except InputError as error:
        counted = error
    return Subject(name, kind, values, frozenset(asked.dropouts) or None, counted)


def _with_layers(values: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """The values with so many layers in each stack."""
    named = [key for key in LAYER_KEYS if key in values] or ["num_hidden_layers"]
    lists = {key: values[key][:layers] for key in LISTS if values.get(key)}
    return {**values, **dict.fromkeys(named, layers), **lists}


def _short(architecture: Architecture, layers: int | None) -> Subject:
    """A model that the project grew up with, which has no config.json of its own."""
    if layers is not None:
        decoder = layers if architecture.decoder_layers else 0
        architecture = replace(architecture, layers=layers, decoder_layers=decoder)
    kind = architecture.family
    values = _VALUES[kind](architecture) if kind in _VALUES else {}
    asked = Configuration(values)
    if can_read(kind):
        TYPES[kind].read(asked, architecture.name)
    return Subject(architecture.name, kind, values, frozenset(asked.dropouts), architecture)


def _bert(shape: Architecture) -> dict[str, Any]:
    return {
        "vocab_size": shape.vocabulary_size,
        "hidden_size": shape.hidden_size,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.feed_forward_size,
        "max_position_embeddings": shape.positions,
        "type_vocab_size": shape.token_types,
        "hidden_dropout_prob": shape.dropout,
        "attention_probs_dropout_prob": shape.dropout,
        "tie_word_embeddings": shape.tied_embeddings,
    }


def _gpt2(shape: Architecture) -> dict[str, Any]:
    return {
        "vocab_size": shape.vocabulary_size,
        "n_positions": shape.positions,
        "n_embd": shape.hidden_size,
        "n_layer": shape.layers,
        "n_head": shape.heads,
        "n_inner": shape.feed_forward_size,
        "resid_pdrop": shape.dropout,
        "embd_pdrop": shape.dropout,
        "attn_pdrop": shape.dropout,
        "tie_word_embeddings": shape.tied_embeddings,
    }


def _gptj(shape: Architecture) -> dict[str, Any]:
    own = {"n_positions": shape.sequence_length, "rotary_dim": shape.rotary_size}
    return _gpt2(shape) | own


def _t5(shape: Architecture) -> dict[str, Any]:
    return {
        "vocab_size": shape.vocabulary_size,
        "d_model": shape.hidden_size,
        "d_kv": shape.head_size,
        "d_ff": shape.feed_forward_size,
        "num_layers": shape.layers,
        "num_decoder_layers": shape.decoder_layers,
        "num_heads": shape.heads,
        "relative_attention_num_buckets": shape.relative_buckets,
        "dropout_rate": shape.dropout,
        "tie_word_embeddings": shape.tied_embeddings,
    }


_VALUES: Final[dict[str, Callable[[Architecture], dict[str, Any]]]] = {
    "bert": _bert,
    "gpt2": _gpt2,
    "gptj": _gptj,
    "t5": _t5,
}
