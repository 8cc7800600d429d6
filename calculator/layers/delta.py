"""Linear attention by the gated delta rule, as transformers computes it in plain PyTorch.

A sequence is cut into chunks of 64 tokens: systems of equations solve what happens inside of each,
and a state goes from one to the next.

Source: transformers (models/qwen3_next/modeling_qwen3_next.py, torch_chunk_gated_delta_rule), torch
(tools/autograd/derivatives.yaml, autograd/FunctionsManual.cpp).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT32, INT64
from calculator.autograd.graph import Gradients, Made, Parameter, Tensor
from calculator.autograd.mode import CHUNK, EXPLICIT_CHUNKS, SEQUENCE
from calculator.autograd.scratch import round_block
from calculator.autograd.sizes import (
    ONE,
    Size,
    broadcast,
    constant,
    derived,
    elements_of,
    size,
    together,
)
from calculator.layers.attention import Attended
from calculator.layers.basic import Linear
from calculator.layers.grouped import Held, Mixer, Shared
from calculator.layers.latent import clones

KEYS, VALUES, KEY, VALUE, KERNEL = (
    size(f"linear_{name}")
    for name in ("key_heads", "value_heads", "key_size", "value_size", "kernel_size")
)
ALL_KEYS, ALL_VALUES = KEYS * KEY, VALUES * VALUE
MIXED = together(2 * ALL_KEYS, ALL_VALUES)
CHUNKS: Final = derived("chunks", lambda length: -(-length // CHUNK), SEQUENCE)
TOKENS = constant(CHUNK)
PADDED = CHUNKS * CHUNK


@dataclass(eq=False)
class GatedDelta(Mixer):
    """Projections, a short convolution, the delta rule, a gated norm, the output's projection.

    Attributes:
        hidden: the width of the stream.
        grouped: whether there are more heads of values than of queries and keys.
        apart: whether each kind of projection is a product of its own.
    """

    hidden: Size
    grouped: bool
    apart: bool = False

    local = False

    def __post_init__(self) -> None:
        widths: dict[str, Size] = {"qkv": MIXED, "z": ALL_VALUES, "b": VALUES, "a": VALUES}
        if not self.apart:
            widths = {"qkvz": together(2 * ALL_KEYS, 2 * ALL_VALUES), "ba": 2 * VALUES}
        projections = tuple(
            Linear(self.hidden, width, biased=False, name=f"in_proj_{name}")
            for name, width in widths.items()
        )
        # in the order of the class, as an update takes them
        self.step, self.fading = Parameter((VALUES,)), Parameter((VALUES,))
        self.convolution = Parameter((MIXED, ONE, KERNEL))
        if not self.apart:
            self.projections = projections
        self.norm = Parameter((VALUE,))
        self.output = Linear(ALL_VALUES, self.hidden, biased=False, name="out_proj")
        self.projections = projections

    def __call__(self, x: Tensor, held: Held) -> Attended:
        """(batch, length, hidden) -> the same, and no probabilities."""
        weight = x.tape.weight
        mixed, gate, rate, decay, *others = self.projected(x)
        mixed = convolved(mixed, op.view(weight(self.convolution), MIXED, ONE, KERNEL))
        parts = op.split(mixed, ALL_KEYS, ALL_KEYS, ALL_VALUES)
        del others[-3:]  # these die here
        q, k = (_heads(part, KEYS, KEY, self.grouped) for part in parts[:2])
        v = _heads(parts[2], VALUES, VALUE, viewed=False)
        shares = op.sigmoid(rate)
        fading = op.scale(exponential(op.cast(weight(self.fading), FLOAT32)))
        fading = op.multiply(
            fading, op.softplus(op.add(op.cast(decay, FLOAT32), weight(self.step)))
        )
        out = delta_rule(q, k, v, fading, shares, self.grouped)
        if out.dtype is FLOAT32:
            out = op.copy(out)  # its heads are still turned
        out = self.normed(out, op.view(gate, *out.shape))
        out = self.output(op.view(out, *x.shape[:2], ALL_VALUES))
        del q, k, v, parts, gate, rate, decay  # held until here
        return out, None

    def handed(self, shared: Shared) -> Held:
        """No mask: padding alone would be masked."""
        return replace(shared.of(self.local), mask=None)

    def projected(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values side by side; gates, rates and decays; and what is held."""
        if self.apart:
            return [projection(x) for projection in self.projections]
        wide, narrow = (projection(x) for projection in self.projections)
        q, k, v, gate = op.split(wide, ALL_KEYS, ALL_KEYS, ALL_VALUES, ALL_VALUES)
        rate, decay = op.split(narrow, VALUES, VALUES)
        if self.grouped:
            v, gate, rate, decay = (op.copy(part) for part in (v, gate, rate, decay))
        q, k, v = op.copy(q), op.copy(k), v if self.grouped else op.copy(v)
        mixed = op.concatenate([q, k, v], *x.shape[:2], MIXED)
        return [mixed, gate, rate, decay, wide, narrow, q, k, v]

    def normed(self, x: Tensor, gate: Tensor) -> Tensor:
        """w (x / sqrt(mean(x^2) + eps)) silu(gate), heads by heads."""
        wide = op.cast(x, FLOAT32)
        variance = op.mean_of_rows(op.power(wide))
        wide = op.multiply(wide, op.rsqrt(op.shift(variance)))
        wide = op.multiply(x.tape.weight(self.norm), op.cast(wide, x.dtype))
        wide = op.multiply(wide, op.silu(op.cast(gate, FLOAT32)))
        out = op.cast(wide, x.dtype)
        del variance  # held until here
        return out


def _heads(x: Tensor, heads: Size, width: Size, viewed: bool) -> Tensor:
    """Heads of their own; a gradient that comes turned has to be copied, unless `viewed`."""
    return (op.view if viewed else op.regrouped)(x, *x.shape[:-1], heads, width)


def convolved(x: Tensor, weight: Tensor) -> Tensor:
    """SiLU of each channel's last few tokens: x is turned, and so copied, both ways."""
    dtype, lower = x.dtype, x.tape.lower
    x, weight = lower(op.cast(x, weight.dtype)), lower(weight)
    copied = x.tape.like(x)
    longer = (*x.shape[:1], derived("convolved", _convolved, SEQUENCE, KERNEL), x.shape[2])
    scratch = [Made(x.shape, x.dtype)]
    out = x.tape.operation([x, weight], longer, x.dtype, saves=[x, weight], scratch=scratch)
    del copied  # dies here
    return op.cast(op.silu(op.part(out, *x.shape)), dtype)


def _convolved(length: int, kernel: int) -> int:
    return length + kernel - 1


def exponential(x: Tensor) -> Tensor:
    """e^x, which autocast runs in 32 bits: keeps its result."""
    x = op.widened(x)
    return x.tape.operation([x], x.shape, x.dtype, keeps=True)


def cumulative(x: Tensor) -> Tensor:
    """Sums up to each place; backward turns the gradient round, adds up, and turns it back."""
    scratch = [Made(x.shape, x.dtype)] * 2
    return x.tape.operation([x], x.shape, x.dtype, scratch=scratch)


def unit_length(x: Tensor) -> Tensor:
    """x / sqrt(sum(x^2) + eps); the sum's gradient is seen, not copied, by every channel."""
    t = x.tape
    squares = op.multiply(x, x)
    total = t.empty((*x.shape[:-1], ONE), x.dtype)

    def seen(gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        assert gradient is not None
        return [Tensor(t, gradient.storage, shape, dtype, is_view=True)]

    shape, dtype = x.shape, x.dtype
    total.node = t.record([squares], special=seen)
    del squares  # dies here
    total = op.shift(total)
    total = op.rsqrt(total)
    return op.multiply(x, total)


def difference(a: Tensor, b: Tensor) -> Tensor:
    """a - b of shapes that broadcast: b's gradient is negated in full, both are summed up."""
    t, whole = a.tape, broadcast(a.shape, b.shape)

    def backward(gradients: Gradients) -> Gradients:
        negated = t.empty(whole, dtype)
        first = gradients[0] if a_shape == whole else t.empty(a_shape, dtype)
        return [first, negated if b_shape == whole else t.empty(b_shape, dtype)]

    a_shape, b_shape, dtype = a.shape, b.shape, a.dtype
    return t.operation([a, b], whole, a.dtype, special=backward)


def solved(system: Tensor, right: Tensor) -> Tensor:
    """X with A X = B for triangular A: keeps both; many systems are solved by their addresses."""
    t = system.tape
    addresses = Made((elements_of(system.shape[:3]),), INT64)

    def backward(_: Gradients) -> Gradients:
        gradient = t.empty(right_shape, FLOAT32)
        lists = t.empty(*addresses), t.empty(*addresses)
        del lists  # die here
        product = t.empty(system_shape, FLOAT32)
        negated = t.like(product)
        del product  # dies here
        return [t.like(negated), gradient]

    right_shape, system_shape = right.shape, system.shape
    inputs = [system, right]
    out = t.operation(inputs, right_shape, FLOAT32, [system], keeps=True, special=backward)
    lists = t.empty(*addresses), t.empty(*addresses)
    del lists  # die here
    return out


def written(whole: Tensor, part: Tensor) -> Tensor:
    """`whole` with a part of it written; backward clones the whole gradient, and the part's."""
    t = whole.tape
    made, piece = Made(whole.shape, whole.dtype), Made(part.shape, part.dtype)
    out = t.alias(whole)
    if whole.node is None:
        out.node = t.record([part], special=clones(t, made, piece))
    else:
        out.node = t.record([whole, part], special=clones(t, made, piece, written=True))
    out.index = 0
    return out


def delta_rule(
    q: Tensor, k: Tensor, v: Tensor, fading: Tensor, rate: Tensor, grouped: bool
) -> Tensor:
    """(batch, length, heads, width) three times, (batch, length, heads) twice -> as the values."""
    t, dtype, (batch, length) = q.tape, q.dtype, q.shape[:2]
    heads = (batch, VALUES)
    # heads that are neither cast nor padded stay turned, and matmul copies them
    turned = dtype is FLOAT32 and t.mode.whole_chunks
    each_turned = turned and grouped and not t.mode.one_sequence
    turned = turned and (each_turned or t.mode.chunks > 1)
    if grouped:
        q, k = (op.repeated(x, batch, length, VALUES, KEY) for x in (q, k))
    q, k, v, rate, fading = (
        op.cast(op.transpose(x, 1, 2), FLOAT32) for x in (q, k, v, rate, fading)
    )
    q = unit_length(q)
    k = unit_length(k)
    q = op.scale(q)
    q, k, v = (op.pad(x, *heads, PADDED, x.shape[3]) for x in (q, k, v))
    rate, fading = (op.pad(x, *heads, PADDED) for x in (rate, fading))
    each = op.view(rate, *heads, PADDED, ONE)
    rated_v = op.multiply(v, each)
    rated_k = op.multiply(k, each)
    q, k = (op.view(x, *heads, CHUNKS, TOKENS, KEY) for x in (q, k))
    rated_k = op.regrouped(rated_k, *heads, CHUNKS, TOKENS, KEY)
    rated_v = op.regrouped(rated_v, *heads, CHUNKS, TOKENS, VALUE)
    fading = op.view(fading, *heads, CHUNKS, TOKENS)
    later = t.empty((TOKENS, TOKENS), BOOL)
    later = t.like(later)  # above the diagonal
    total = cumulative(fading)
    rows, columns = (*heads, CHUNKS, TOKENS, ONE), (*heads, CHUNKS, ONE, TOKENS)
    pairs = difference(op.view(total, *rows), op.view(total, *columns))
    pairs = op.masked_fill(pairs, later)
    pairs = exponential(pairs)
    system = op.multiply(_product(rated_k, op.transpose(k, 3, 4), turned, turned), pairs)
    inside = op.multiply(_product(q, op.transpose(k, 3, 4), turned, turned), pairs)
    faded_k = op.multiply(rated_k, op.view(exponential(total), *rows))
    new_v = solved(system, rated_v)
    known_k = solved(system, faded_k)
    state = t.empty((*heads, KEY, VALUE), FLOAT32)
    out = t.like(new_v)
    q = op.multiply(q, op.view(exponential(total), *rows))
    left = difference(op.part(total, *heads, CHUNKS, ONE), total)
    k = op.multiply(k, op.view(exponential(left), *rows))
    del left  # dies here
    ends = exponential(op.part(total, *heads, CHUNKS))
    piece_k, piece_v = (*heads, TOKENS, KEY), (*heads, TOKENS, VALUE)
    for place in range(t.mode.chunks):
        more = _more(t.mode.chunks == EXPLICIT_CHUNKS and place == 1, state, 2 * each_turned)
        known = op.matmul(op.part(known_k, *piece_k), state)
        fresh = _fresh(op.part(new_v, *piece_v), known, more)
        del known, more  # die here
        read = _product(op.part(q, *piece_k), state, each_turned)
        sums = op.add(read, op.matmul(op.part(inside, *heads, TOKENS, TOKENS), fresh))
        out = written(out, sums)
        del sums  # dies here
        kept = op.multiply(state, op.part(ends, *heads, ONE, ONE))
        keys = op.transpose(op.part(k, *piece_k), 2, 3)
        state = op.add(kept, _product(keys, fresh, each_turned))
        del kept  # dies here
    del state
    out = op.view(op.copy(out), *heads, PADDED, VALUE)
    cut = op.part(out, *heads, length, VALUE)
    if t.mode.whole_chunks:  # as long as they are, nothing is cut
        cut.node, cut.index = out.node, out.index
    return op.cast(op.transpose(cut, 1, 2), dtype)


def _product(a: Tensor, b: Tensor, a_turned: bool, b_turned: bool = False) -> Tensor:
    """a b; matmul copies what is turned."""
    a = op.copy(a) if a_turned else a
    return op.matmul(a, op.copy(b) if b_turned else b)


def _fresh(new: Tensor, known: Tensor, more: Sequence[Tensor]) -> Tensor:
    """new - known; `more` is kept until its backward is done."""
    passed = None, Made(known.shape, known.dtype)
    whole = Made(new.shape, new.dtype)
    return new.tape.operation(
        [new, known], new.shape, new.dtype, rules=passed, product=whole, saves=more
    )


def _more(wanted: bool, state: Tensor, copied: int) -> list[Tensor]:
    """Tensors kept by the left-out chunks: each as much as the second, all at once.

    In the backward pass they are done after the last two, in which most is alive.
    """
    if not wanted:
        return []
    heads, mode = state.shape[:2], state.tape.mode
    kept = [Made(state.shape, FLOAT32)]
    fresh, keys, pairs = ((*heads, TOKENS, width) for width in (VALUE, KEY, TOKENS))
    if mode.autocast is None:
        kept += [Made(fresh, FLOAT32), *[Made(keys, FLOAT32)] * copied]
    else:
        shapes = (state.shape, state.shape, fresh, fresh, keys, keys, keys, pairs)
        kept += [Made(shape, mode.autocast) for shape in shapes]
    left_out = _left_out(tuple(kept)) if state.tape.keeps else constant(0)
    return [state.tape.empty((left_out,), BOOL)]


@cache
def _left_out(kept: tuple[Made, ...]) -> Size:
    widths = [item.dtype.width for item in kept]

    def rule(chunks: int, *elements: int) -> int:
        blocks = (round_block(w * n) for w, n in zip(widths, elements, strict=True))
        return (chunks - EXPLICIT_CHUNKS) * sum(blocks)

    return derived(f"(left out {kept})", rule, CHUNKS, *(elements_of(item.shape) for item in kept))
