"""SmolLM 3 (transformers' SmolLM3ForCausalLM), some of whose layers do not know places.

Source: transformers (models/smollm3/modeling_smollm3.py).
"""

from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.heads import Heads
from calculator.layers.pairs import EVERY_HEAD
from calculator.models.decoder import FULL, HIDDEN, heads_of, in_turn
from calculator.models.llama import Llama

NO_PLACES = "no_rope"


@dataclass(eq=False)
class UnturnedAttention(GroupedAttention):
    """Queries and keys as they are projected."""

    def projected(self, x: Tensor, held: Held) -> tuple[Tensor, Tensor, Tensor]:
        """Heads whose gradients lie as they do, where the kernel makes them so."""
        copied = self.copies(x.tape.mode, held.mask)
        q = self.heads_of(self.query(x), self.heads.queries, copied=copied)
        k = self.heads_of(self.key(x), self.heads.keys, copied=copied)
        return q, k, self.heads_of(self.value(x), self.heads.keys, copied=copied)

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """The same."""
        del held
        return op.view(q, *q.shape), op.view(k, *k.shape)


@dataclass(eq=False)
class SmolLM3(Llama):
    """Llama in which every fourth layer has no rotary positions."""

    title = "SmolLM 3"
    counted = "SmolLM3ForCausalLM"
    heads: ClassVar[Heads] = EVERY_HEAD

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Layers with places and without, as the configuration lists them."""
        c.only("use_sliding_window", False)
        c.ignore("sliding_window")
        cls.layer_types(c, layers, (FULL,))
        every = c.size("no_rope_layer_interval", 4)
        listed = c.value("no_rope_layers")
        if listed is None:
            return (FULL,) * (min(every, layers + 1) - 1) + (NO_PLACES,) * (every <= layers)
        known = isinstance(listed, list) and all(type(item) is int for item in listed)
        if not known or len(listed) != layers or not {0, 1} >= {*listed}:
            rule = f"must be a list with a 1 or 0 for each of {layers} layers"
            raise InputError("no_rope_layers", listed, rule)
        return in_turn([FULL if turned else NO_PLACES for turned in listed])

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
        """As Llama's, turned or not."""
        biased = architecture.has("attention_bias")
        made = UnturnedAttention if kind == NO_PLACES else GroupedAttention
        return made(HIDDEN, heads_of(architecture), biased, biased)
