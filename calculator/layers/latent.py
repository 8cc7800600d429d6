"""Attention whose keys and values come from a narrow latent, as DeepSeek has it.

Source: transformers (models/deepseek_v3/modeling_deepseek_v3.py,
models/deepseek_v2/modeling_deepseek_v2.py), torch (autograd/functions/tensor.cpp, CopySlices).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, DType
from calculator.autograd.graph import Gradients, Made, Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, Attention, Mode
from calculator.autograd.sizes import ONE, Size, divided, rounded_up, together
from calculator.layers.attention import Attended, joined, math_core, selectively
from calculator.layers.basic import Linear, RMSNorm
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.rotary import Rotary, Tables, rotated


@dataclass(frozen=True, slots=True)
class Widths:
    """Of a head: channels that are not turned, channels that are, and a value's.

    `queries` is the latent of the queries, or none; `keys` that of keys and values.
    """

    plain: Size
    turned: Size
    values: Size
    keys: Size
    queries: Size | None

    @property
    def whole(self) -> Size:
        """A query's or a key's width."""
        return together(self.plain, self.turned)


@dataclass(eq=False)
class LatentAttention(GroupedAttention):
    """Queries perhaps, keys and values always by way of a latent; turned channels apart.

    All heads share the turned channels of the keys. Channels are turned in pairs side by side
    (`paired`), or in halves.
    """

    widths: Widths | None = None
    paired: bool = True

    side_by_side = True

    def __post_init__(self) -> None:
        w, heads = self.w, self.heads.queries
        if w.queries is None:
            self.query = Linear(self.hidden, heads * w.whole, biased=False, name="q_proj")
        else:
            self.query_down = Linear(self.hidden, w.queries, self.biased, name="q_a_proj")
            self.query_latent_norm = RMSNorm(w.queries)
            self.query = Linear(w.queries, heads * w.whole, biased=False, name="q_b_proj")
        self.down = Linear(
            self.hidden, together(w.keys, w.turned), self.biased, name="kv_a_proj_with_mqa"
        )
        self.latent_norm = RMSNorm(w.keys)
        self.up = Linear(
            w.keys, heads * together(w.plain, w.values), biased=False, name="kv_b_proj"
        )
        self.output = Linear(heads * w.values, self.hidden, self.biased, name="o_proj")

    @property
    def w(self) -> Widths:
        """The widths."""
        assert self.widths is not None
        return self.widths

    def __call__(self, x: Tensor, held: Held) -> Attended:
        """The weighted sum and, in eager code, the probabilities."""
        w, (batch, length, _) = self.w, x.shape
        queries = self.heads_of(self.queries(x), self.heads.queries, w.whole)
        plain, turned = op.split(queries, w.plain, w.turned)
        compressed = self.down(x)
        latent, key = op.split(compressed, w.keys, w.turned)
        latent = self.latent_norm(latent)
        latent = op.view(latent, batch, ONE, length, w.keys)
        key = op.view(key, batch, ONE, length, w.turned)
        turned, key = self.at_places(turned, held.tables), self.at_places(key, held.tables)
        q = op.concatenate([plain, turned], *queries.shape)
        k, v = self.expanded(latent, key)
        out, probabilities = selectively(partial(self.core, held=held), q, k, v)
        out = self.output(joined(out))
        del queries, plain, turned, compressed, latent, key, q, k, v  # held until here
        return out, probabilities

    def queries(self, x: Tensor) -> Tensor:
        """Every head's query, by way of a latent or not."""
        return self.query(
            x if self.w.queries is None else self.query_latent_norm(self.query_down(x))
        )

    def heads_of(self, x: Tensor, heads: Size, width: Size) -> Tensor:  # type: ignore[override]
        """(batch, length, heads * width) -> (batch, heads, length, width)."""
        return op.transpose(op.regrouped(x, x.shape[0], x.shape[-2], heads, width), 1, 2)

    def at_places(self, x: Tensor, tables: Tables) -> Tensor:
        """The channels turned by the angles of their places."""
        return paired(x, tables) if self.paired else rotated(x, tables)

    def expanded(self, latent: Tensor, turned: Tensor) -> tuple[Tensor, Tensor]:
        """Keys, put together in place, and values."""
        w = self.w
        both = self.heads_of(self.up(latent), self.heads.queries, together(w.plain, w.values))
        plain, v = op.split(both, w.plain, w.values)
        turned = op.expand(turned, *plain.shape[:-1], w.turned)
        return put_together(plain, turned, both.dtype), v

    def kernel(self, mode: Mode, mask: Tensor | None) -> Attention:
        """The efficient one where PyTorch picks: flash wants values as wide as keys."""
        return mode.kernel(masked=True)

    def core(self, q: Tensor, k: Tensor, v: Tensor, held: Held) -> Attended:
        """Attention in the kernel of the plan, or in the one that PyTorch picks."""
        kernel, length = self.kernel(q.tape.mode, held.mask), q.shape[2]
        if kernel is Attention.EAGER:
            return self.eager(q, k, v, held.mask)
        q, k, v = (x.tape.lower(x) for x in (q, k, v))
        if kernel is Attention.MATH:
            causal = q.tape.empty((length, length), FLOAT32)
            return math_core(q, k, v, causal, side_by_side=True)
        return op.efficient_attention(q, k, v, rounded_up(length, 32)), None


def put_together(first: Tensor, second: Tensor, dtype: DType) -> Tensor:
    """Both copied side by side into new bytes; each copy's backward clones the whole gradient."""
    t = first.tape
    whole = Made((*first.shape[:-1], together(first.shape[-1], second.shape[-1])), dtype)
    out = t.empty(*whole)
    out.node = t.record([first], special=clones(t, whole, Made(first.shape, first.dtype)))
    both = t.alias(out)
    again = clones(t, whole, Made(second.shape, second.dtype), written=True)
    both.node = t.record([out, second], special=again)
    return both


def clones(
    t: Recorder, whole: Made, part: Made, written: bool = False
) -> Callable[[Gradients], Gradients]:
    """Backward of a copy into a part of a tensor, which may have been `written` to before."""

    def backward(_: Gradients) -> Gradients:
        cloned = t.empty(*whole)
        gradient = t.empty(part.shape, whole.dtype)
        zeros = t.like(gradient) if written else None
        if part.dtype is not whole.dtype:
            gradient = t.like(gradient, part.dtype)
        del zeros  # held until here
        return [cloned, gradient] if written else [gradient]

    return backward


def paired(x: Tensor, tables: Tables) -> Tensor:
    """Pairs of channels side by side turned by one angle; the halves of the result are apart."""
    half = (*x.shape[:-1], divided(x.shape[-1], 2))
    angles = (*tables[0].shape[:-1], half[-1])
    cosines, sines = (op.part(table, *angles) for table in tables)
    first, second = op.part(x, *half), op.part(x, *half)
    near = op.subtract(op.multiply(first, cosines), op.multiply(second, sines))
    far = op.add(op.multiply(second, cosines), op.multiply(first, sines))
    return op.concatenate([near, far], *x.shape)


@dataclass(eq=False)
class ComplexAttention(LatentAttention):
    """Latent attention that turns pairs of channels as complex numbers, in 32 bits."""

    def at_places(self, x: Tensor, tables: Tables) -> Tensor:
        """The channels turned by the angles of their places."""
        return op.cast(op.multiply(op.cast(x, FLOAT32), tables[0]), x.dtype)


@dataclass(eq=False)
class ComplexRotary(Rotary):
    """One table of complex numbers, of 8 bytes for two channels."""

    def __call__(self, t: Recorder, positions: Tensor, dtype: DType) -> Tables:
        """The numbers of every place, the same table twice."""
        half = (ONE, positions.shape[-1], divided(self.width, 2))
        places = t.empty((ONE, positions.shape[-1], ONE), FLOAT32)
        angles = t.empty(half, FLOAT32)
        del places  # dies here
        ones = t.empty(half, FLOAT32)
        numbers = t.empty((ONE, ONE, SEQUENCE, self.width), FLOAT32)
        del ones  # dies here
        numbers = t.like(numbers)  # times a number
        del angles
        return numbers, numbers
