"""The block that most causal language models are made of.

Source: transformers (models/llama/modeling_llama.py, models/olmo2/modeling_olmo2.py,
models/gemma2/modeling_gemma2.py, models/granite/modeling_granite.py, models/phi3/modeling_phi3.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from calculator.autograd import operations as op
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.layers.grouped import Held, Mixer, Shared
from calculator.layers.layer import Layer, Unary, weights_of
from calculator.layers.reversible import Coupling
from calculator.layers.stack import Block

T = TypeVar("T")


@dataclass(eq=False)
class DecoderBlock(Block):
    """Attention and a feed-forward layer, each added to the stream.

    Attributes:
        before: the norms before attention and before the feed-forward layer, or none.
        after: the norms of what both of them add, or none.
        scaled: whether what they add is multiplied by a number.
        dropped: whether what they add passes a dropout.
    """

    attention: Mixer
    feed_forward: Unary
    before: tuple[Unary, Unary] | None
    after: tuple[Unary, Unary] | None = None
    scaled: bool = False
    dropped: bool = False

    in_parts = False  # whether each of several GPUs has its part of the stream

    def __call__(self, x: Tensor, held: Held) -> Tensor:
        """The residual stream after the layer; the probabilities are held until its end."""
        with x.tape.setting(apart=self.in_parts):
            return self.whole(x, held)

    def whole(self, x: Tensor, held: Held) -> Tensor:
        """The same."""
        residual = x
        if self.before:
            x = self.before[0](x)
        x, _probabilities = self.within(partial(self.attention, held=held), x)
        if self.after:
            x = self.after[0](x)
        x = op.add(residual, self.changed(x))
        residual = x
        if self.before:
            x = self.before[1](x)
        x = self.within(self.feed_forward, x)
        if self.after:
            x = self.after[1](x)
        return op.add(residual, self.changed(x))

    def within(self, inside: Callable[[Tensor], T], x: Tensor) -> T:
        """One half of the layer on the tokens, on those of all GPUs where each has a part.

        Source: tensor_parallel
        """
        if not self.in_parts:
            return inside(x)
        given = op.gathered(x, SEQUENCE)
        with x.tape.setting(apart=False):
            return inside(given)

    def changed(self, x: Tensor) -> Tensor:
        """The change added to the stream, scaled or with dropout."""
        if self.dropped:
            x = op.dropout(x)
        return op.scale(x) if self.scaled else x

    def handed(self, shared: Shared) -> tuple[Held]:
        """The tables and the mask of its own attention alone."""
        return (self.attention.handed(shared),)

    def couplings(self, t: Recorder, held: Held) -> Sequence[Coupling]:
        """Both branches with their norms."""

        def branch(place: int, inside: Layer) -> Coupling:
            norms = [pair[place] for pair in (self.before, self.after) if pair]
            return Coupling(
                lambda x: self.branch(place, x, held), weights_of(t, *norms[:1], inside, *norms[1:])
            )

        return [branch(0, self.attention), branch(1, self.feed_forward)]

    def branch(self, place: int, x: Tensor, held: Held) -> Tensor:
        """The output of attention (0) or the feed-forward layer (1)."""
        if self.before:
            x = self.before[place](x)
        x = self.feed_forward(x) if place else self.attention(x, held)[0]
        return self.changed(self.after[place](x) if self.after else x)
