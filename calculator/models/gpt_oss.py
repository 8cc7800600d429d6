"""gpt-oss (transformers' GptOssForCausalLM), whose class has eager attention only.

Source: transformers (models/gpt_oss/modeling_gpt_oss.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd import selection as pick
from calculator.autograd.dtypes import FLOAT32, DType
from calculator.autograd.graph import Parameter, Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, divided, plus
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, scores_of, weighted_sum
from calculator.layers.basic import WideNorm
from calculator.layers.experts import Experts, Mixture, Routed, Router, shown, shown_in_place
from calculator.layers.grouped import Held
from calculator.layers.rotary import Rotary, Tables
from calculator.models.decoder import FEED, FULL, HIDDEN, SLIDING
from calculator.models.gemma import EagerAttention
from calculator.models.model import NO_SHARES
from calculator.models.sparse import CHOICE, SparseDecoder


@dataclass(eq=False)
class HalfRotary(Rotary):
    """Tables of one angle for two channels."""

    def __call__(self, t: Recorder, positions: Tensor, dtype: DType) -> Tables:
        """Cosines and sines of every place, computed in 32 bits without autocast."""
        half = divided(self.width, 2)
        places = t.empty((ONE, SEQUENCE, ONE), FLOAT32)
        angles = t.empty((ONE, ONE, SEQUENCE, half), FLOAT32)
        del places  # dies here
        cosines = t.like(t.like(angles))  # times a number
        sines = t.like(t.like(angles))
        tables = op.cast(cosines, dtype), op.cast(sines, dtype)
        del angles
        return tables


@dataclass(eq=False)
class SinkAttention(EagerAttention):
    """Each head may attend to nothing: a learned score beside those of the keys."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sinks = Parameter((self.heads.queries,))

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places."""
        return halves_turned(q, held.tables), halves_turned(k, held.tables)

    def eager(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attended:
        """Scores, mask, sinks, softmax and weighted sum in plain operations."""
        grouped = self.heads.are_grouped
        if grouped:
            k, v = self.repeated(k, q), self.repeated(v, q)
        repeated = grouped and self.heads.keys is not ONE
        alone = grouped and not repeated and q.tape.autocast is None  # one head of keys for all
        scores = op.scale(scores_of(q, k, not alone, not alone))
        if mask is not None:
            scores = op.add(scores, mask)
        length = scores.shape[-1]
        sinks = op.expand(q.tape.weight(self.sinks), *scores.shape[:-1], ONE)
        whole = op.concatenate([scores, sinks], *scores.shape[:-1], plus(length, 1))
        whole = op.subtract(whole, pick.highest(whole))
        probabilities = op.softmax(whole, whole.dtype)
        kept = op.part(probabilities, *scores.shape)
        # the scores are held until what is kept of them is there
        scores = op.cast(op.dropout(kept), v.dtype)
        out = op.copy(weighted_sum(scores, v, repeated))
        del k, v, sinks, whole, probabilities, kept  # held until here
        return out, scores


def halves_turned(x: Tensor, tables: Tables) -> Tensor:
    """Both halves of each head turned by the same angles."""
    half = divided(x.shape[-1], 2)
    first, second = op.split(x, half, half)
    cosines, sines = tables
    near = op.subtract(op.multiply(first, cosines), op.multiply(second, sines))
    far = op.add(op.multiply(second, cosines), op.multiply(first, sines))
    return op.concatenate([near, far], *x.shape)


@dataclass(eq=False)
class BiasedRouter(Router):
    """Shares from the largest logits alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.bias = Parameter((self.choice.experts,))

    def __call__(self, x: Tensor) -> Routed:
        """(batch, length, hidden) -> (..., experts), (..., chosen), (..., chosen)."""
        logits = op.linear(x, x.tape.weight(self.weight), x.tape.weight(self.bias))
        shares, chosen = pick.largest(logits, self.choice.chosen)
        return logits, op.softmax(shares, shares.dtype), chosen


@dataclass(eq=False)
class BiasedExperts(Experts):
    """Experts with biases; gate and up lie channel by channel, and are clamped."""

    def __post_init__(self) -> None:
        self.gate_up = self.weight(self.hidden, 2 * self.inner)
        self.gate_up_bias = self.weight(2 * self.inner)
        self.down = self.weight(self.inner, self.hidden)
        self.down_bias = self.weight(self.hidden)

    def computed(
        self, rows: Tensor, experts: Tensor, ends: Tensor, hidden: Tensor | None
    ) -> tuple[Tensor, ...]:
        """Each row's output by its expert; the last biases are held beside it."""
        weight = rows.tape.weight
        biases = self.bias_of(self.gate_up_bias, experts, rows)
        rows = shown_in_place(rows, hidden)
        out = pick.grouped_product(rows, weight(self.gate_up), ends, transposed=False)
        out = op.add_in_place(out, biases)
        out = shown(out, hidden)
        out = self.gated(out)
        biases = self.bias_of(self.down_bias, experts, rows)
        out = pick.grouped_product(out, weight(self.down), ends, transposed=False)
        return shown(op.add_in_place(out, biases), hidden), biases

    def bias_of(self, bias: Parameter, experts: Tensor, rows: Tensor) -> Tensor:
        """The bias of each row's expert."""
        return pick.rows_at(rows.tape.weight(bias), experts, *rows.shape[:-1], bias.shape[-1])

    def gated(self, x: Tensor) -> Tensor:
        """(up + 1) gate sigmoid(a gate), of every other channel and the one beside it."""
        half = (*x.shape[:-1], self.inner)
        gate, up = op.part(x, *half), op.part(x, *half)
        gate, up = op.clamp(gate, 1), op.clamp(up, 2)
        glu = op.multiply(gate, op.sigmoid(op.scale(gate)))
        return op.multiply(op.shift(up), glu)


@dataclass(eq=False)
class GptOss(SparseDecoder):
    """Every other layer has a window; sinks; experts with biases in every layer."""

    whole_layers = NO_SHARES
    fused_experts = ()
    kernels = (Attention.EAGER, Attention.SDPA)
    both_masks = True
    norm_class = WideNorm
    attention_class = SinkAttention
    rotary_class = HalfRotary
    biases = ("attention_bias", "attention_bias", "")

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window, the experts, and whether attention has biases."""
        if c.has_null("sliding_window"):
            raise InputError("sliding_window", None, "must be given: the class makes a mask of it")
        window = c.size("sliding_window", 128, most=LONGEST_SEQUENCE)
        return {"window": window, **super().more(c)}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Layers with a window and without, in turn."""
        return cls.layer_types(c, layers, (SLIDING, FULL)[:layers])

    @classmethod
    def mixture(cls, architecture: Architecture) -> Mixture:
        """Experts with biases, as their router."""
        return Mixture(BiasedRouter(HIDDEN, CHOICE), BiasedExperts(HIDDEN, FEED, CHOICE))
