"""Model architectures: family, layers, widths, heads and kinds of attention."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Final

# tokens: many train with so many, also where the model takes far more
USUAL_LENGTH: Final = 2048


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of one model.

    Sizes are in elements: `hidden_size` d, `heads` h of `head_size` k, `feed_forward_size` f,
    `vocabulary_size` V, `positions` in a table (0 for none). T5 has `layers`
    encoder layers and `decoder_layers` decoder layers. DALL-E reads `text_length` text tokens and
    `image_side` squared image codes, has `image_vocabulary_size` codes, and may have a last layer
    that is never shared. `pattern` names the kinds of layers, in their repeating order. `more` has
    the numbers, and flags as 0 and 1, that only this type has.
    """

    name: str
    title: str
    family: str  # a name of `calculator.models.registry.TYPES`
    layers: int
    hidden_size: int
    heads: int
    head_size: int
    feed_forward_size: int
    vocabulary_size: int
    positions: int
    sequence_length: int
    dropout: float
    source: str
    decoder_layers: int = 0
    target_length: int | None = None
    tied_embeddings: bool = True
    rotary_size: int = 0
    token_types: int = 0
    relative_buckets: int = 0
    text_length: int = 0
    image_side: int = 0
    image_vocabulary_size: int = 0
    gated: bool = False
    own_last_layer: bool = False
    sharing_groups: int | None = None
    reversible: bool = False
    note: str = ""
    pattern: tuple[str, ...] = ()
    more: tuple[tuple[str, int], ...] = ()
    task: str = "lm"  # that of the class which its config.json names
    labels: int = 2

    def __hash__(self) -> int:
        """Of what tells most models apart: caches ask for it several times for each estimate."""
        return hash((self.name, self.layers, self.decoder_layers, self.sequence_length))

    @property
    def numbers(self) -> Mapping[str, int]:
        """Every whole number by its name, as `calculator.models` use the names for sizes."""
        return _numbers(self)

    def has(self, trait: str) -> bool:
        """True if the model's type has a flag of that name, and it is set."""
        return bool(self.numbers.get(trait))

    @property
    def attention_size(self) -> int:
        """Width of all heads together, a = h * k (differs from d in the larger T5)."""
        return self.heads * self.head_size

    @property
    def shared_layers(self) -> int:
        """Layers of the longest stack that `--sharing-groups` can share."""
        return max(self.layers - int(self.own_last_layer), self.decoder_layers)


@lru_cache(maxsize=512)
def _numbers(architecture: Architecture) -> Mapping[str, int]:
    values = ((item.name, getattr(architecture, item.name)) for item in fields(architecture))
    return {name: value for name, value in values if type(value) is int} | dict(architecture.more)
