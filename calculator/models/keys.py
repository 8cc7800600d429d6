"""The keys of a type's config.json, and their defaults: `keys.json`, by the names of classes.

A size has its key, its default and the key's other names. `texts` are keys with the values that the
calculator has code for, the default first; `only` those with the one value that is counted, and
`ignored` those that the class declares without an effect on the result, or that only code beside
the weights reads. `numbers` are sizes of the type's own, and `flags` are true or false. A `note`
says what is counted of a model. `title`, `counted` and `lora_targets` are those of `Model`; `tasks`
are those for which the class has the heads that most causal models have.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from calculator.architecture import Architecture
from calculator.configuration import LONGEST_SEQUENCE, MOST_LAYERS, Configuration
from calculator.data import read_data

KEYS: Final = read_data("models/keys.json")


@cache
def declared(kind: type, what: str) -> Any:
    """An entry of a class, or of the nearest class above it that has one; None if none has."""
    classes = (KEYS.get(each.__name__, {}) for each in kind.__mro__)
    return next((own[what] for own in classes if what in own), None)


def check_keys(kind: type, c: Configuration) -> None:
    """Refuse values that the calculator has no code for."""
    for key, counted in (declared(kind, "texts") or {}).items():
        c.text(key, counted[0], counted)
    for key, value in (declared(kind, "only") or {}).items():
        c.only(key, value)
    c.ignore(*declared(kind, "ignored") or ())


def read_shape(
    kind: type,
    c: Configuration,
    name: str,
    head_size: Callable[[int, int], int] | None = None,
) -> Architecture:
    """The architecture of a model, as far as its type's declared keys describe it.

    A type may have a `head_size` of its own, from the width and the number of heads.
    """
    check_keys(kind, c)
    hidden, heads = read_size(c, kind, "hidden_size"), read_size(c, kind, "heads")
    length = read_size(c, kind, "length", most=LONGEST_SEQUENCE)
    tied, dropout = declared(kind, "tied"), declared(kind, "dropout")
    layers = read_size(c, kind, "layers", most=MOST_LAYERS)
    below = layers if declared(kind, "decoder_layers") else 0
    return Architecture(
        name=name,
        title=name,
        family=str(c.value("model_type")),
        layers=layers,
        decoder_layers=read_size(c, kind, "decoder_layers", default=below, most=MOST_LAYERS),
        hidden_size=hidden,
        heads=heads,
        head_size=read_size(c, kind, "head_size") or (head_size or c.head_size)(hidden, heads),
        feed_forward_size=read_size(c, kind, "feed_forward_size", default=4 * hidden),
        vocabulary_size=read_size(c, kind, "vocabulary_size"),
        positions=length if declared(kind, "has_table_of_positions") else 0,
        sequence_length=length,
        dropout=c.dropout(*dropout) if dropout else 0.0,
        tied_embeddings=True if tied is None else c.flag("tie_word_embeddings", tied),
        token_types=read_size(c, kind, "token_types"),
        relative_buckets=read_size(c, kind, "relative_buckets"),
        source="transformers",
        note=declared(kind, "note") or "",
        more=tuple(own_numbers(kind, c).items()),
    )


def own_numbers(kind: type, c: Configuration) -> dict[str, int]:
    """The declared sizes of a type's own, and its flags as 0 or 1."""
    sizes, flags = (declared(kind, what) or {} for what in ("numbers", "flags"))
    return {
        **{name: c.size(*key) for name, key in sizes.items()},
        **{key: int(c.flag(key, usual)) for key, usual in flags.items()},
    }


def read_size(c: Configuration, kind: type, what: str, default: int = 0, **most: int) -> int:
    """A declared size; the default where it is not declared, or where its own is null."""
    found = declared(kind, what)
    if found is None:
        return default
    key, own, *aliases = found
    return c.size(key, default if own is None else own, *aliases, **most)
