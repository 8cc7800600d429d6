"""The core of attention, from queries, keys and values to their weighted sum, in each kernel.

Tensors are (batch, heads, length, head_width).

Source: torch (aten/native/transformers/attention.cpp), transformers (eager_attention_forward).
"""

from collections.abc import Callable
from functools import partial

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import Attention, Checkpointing
from calculator.autograd.sizes import ONE, Size, rounded_up
from calculator.layers.ring import ring_attention

# the weighted sum, and the probabilities where the code hands them on
Attended = tuple[Tensor, Tensor | None]
Core = Callable[[Tensor, Tensor, Tensor], Attended]


def heads_of(x: Tensor, heads: Size, width: Size) -> Tensor:
    """(batch, length, heads * width) -> (batch, heads, length, width), the same bytes.

    The gradients of a ring lie head by head, and are copied.
    """
    regrouped = op.regrouped if x.tape.mode.context > 1 else op.view
    return op.transpose(regrouped(x, *x.shape[:-1], heads, width), 1, 2)


def joined(x: Tensor) -> Tensor:
    """(batch, heads, length, width) -> (batch, length, heads * width), the same bytes."""
    batch, heads, length, width = x.shape
    return op.view(x, batch, length, heads * width)


def selectively(core: Core, q: Tensor, k: Tensor, v: Tensor) -> Attended:
    """The core with its own tensors recomputed, under selective checkpointing.

    Source: korthikanti
    """
    if q.tape.mode.checkpointing is Checkpointing.SELECTIVE:
        return q.tape.checkpoint(core, q, k, v)
    return core(q, k, v)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    eager: Core,
    causal: bool,
    dropped: bool = True,
    handed: tuple[Tensor, ...] = (),
) -> Attended:
    """Attention without a bias: the model's own eager code, or one of PyTorch's kernels.

    The probabilities are not `dropped` where a model's attention has a dropout of its own, of zero.
    What the core is `handed` without need, a checkpointed one keeps too.
    """

    def core(q: Tensor, k: Tensor, v: Tensor) -> Attended:
        match q.tape.mode.kernel(masked=False):
            case Attention.EAGER:
                return eager(q, k, v)
            case Attention.MATH:
                length = q.shape[2]
                return math_core(
                    q, k, v, q.tape.empty((length, length), FLOAT32) if causal else None
                )
            case Attention.SDPA | Attention.FLASH | Attention.EFFICIENT:
                return fused_core(q, k, v), None

    core = partial(_with_handed, core, handed)
    return selectively(core if dropped else without_dropout(core), q, k, v)


def _with_handed(
    core: Core, _handed: tuple[Tensor, ...], q: Tensor, k: Tensor, v: Tensor
) -> Attended:
    return core(q, k, v)


def without_dropout(core: Core) -> Core:
    """The core without dropout, regardless of the rest of the model."""

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Attended:
        with q.tape.setting(mode=q.tape.mode.but(dropout=False)):
            return core(q, k, v)

    return plain


def fused_core(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    """Flash in 16 bits without a mask, otherwise the memory-efficient kernel."""
    q, k, v = (q.tape.lower(x) for x in (q, k, v))
    if q.tape.mode.context > 1:
        return ring_attention(q, k, v)
    if q.tape.mode.kernel(masked=bias is not None) is Attention.FLASH:
        if q.tape.mode.padded_heads:
            return padded_flash(q, k, v)
        return op.flash_attention(q, k, v)
    return op.efficient_attention(q, k, v, rounded_up(q.shape[2], 32), bias)


def padded_flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Flash needs head widths that are multiples of 8: it pads them and trims the output.

    Source: torch (aten/src/ATen/native/transformers/attention.cpp, pad_last_dim)
    """
    out = _wide_flash(q, k, v)  # what is padded dies before the output is copied
    return op.copy(op.part(out, *q.shape))


def _wide_flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    wide = rounded_up(q.shape[3], 8)
    wide_q, wide_k, wide_v = (op.pad(x, *x.shape[:3], wide) for x in (q, k, v))
    return op.flash_attention(wide_q, wide_k, wide_v, copied=2)


def scores_of(q: Tensor, k: Tensor, side_by_side: bool = False, repeated: bool = False) -> Tensor:
    """q k^T; matmul copies heads that are views of a wider tensor, unless there is one sequence.

    `side_by_side` queries and keys are whole tensors of their own, head after head; `repeated` keys
    alone are.
    """
    lower = q.tape.lower
    q, k = held = lower(q), lower(k)
    if not (q.tape.mode.one_sequence or side_by_side):
        q, k = op.copy(q), k if repeated else op.copy(k)
    scores = op.matmul(q, op.transpose(k, 2, 3))
    del held  # as matmul holds what it copies
    return scores


def weighted_sum(probabilities: Tensor, v: Tensor, repeated: bool = False) -> Tensor:
    """softmax(q k^T) v, again with a copy of v."""
    lower = v.tape.lower
    probabilities, v = held = lower(probabilities), lower(v)
    if not (v.tape.mode.one_sequence or repeated):
        v = op.copy(v)
    out = op.matmul(probabilities, v)
    del held  # as matmul holds what it copies
    return out


def eager_core(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    added: tuple[Tensor | None, ...] = (),
    cast_back: bool = False,
    wide: bool = False,
    side_by_side: bool = False,
) -> Attended:
    """Scores, what is added to them, softmax (`wide`: in 32 bits and back) and weighted sum."""
    scores = scores_of(q, k, side_by_side)
    scores = op.scale(scores)
    for tensor in added:
        if tensor is not None:
            scores = op.add(scores, tensor)
    if wide:  # in one expression, which holds the scores to its end
        scores = op.cast(op.softmax(scores, FLOAT32), q.dtype)
        cast_back = False
    else:
        scores = op.softmax(scores)
    if cast_back:
        scores = op.cast(scores, v.dtype)
    scores = op.dropout(scores)
    out = weighted_sum(scores, v)
    return op.copy(out), scores


def math_core(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    side_by_side: bool = False,
    grouped: bool = False,
    repeated: bool = False,
    seen: bool = False,
) -> Attended:
    """PyTorch's reference kernel, which computes in 32 bits whatever comes in.

    Keys and values that heads share, `grouped`, are copied for each head, unless that was done
    before: then they are `repeated`. A single head that is only `seen` by all others is copied
    where it becomes wider or is scaled; values that are in 32 bits already, by their product.
    """
    q, k, v = (q.tape.lower(x) for x in (q, k, v))
    # what the kernel holds dies before its output is copied
    out = _math_output(q, k, v, mask, side_by_side, grouped, repeated, seen)
    return op.copy(out), None


def _math_output(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    side_by_side: bool,
    grouped: bool,
    repeated: bool,
    seen: bool,
) -> Tensor:
    wide_q, wide_k, wide_v = (op.cast(x, FLOAT32) for x in (q, k, v))
    with q.tape.setting(autocast=None):
        scaled_q = op.scale(wide_q)
        narrow_k, narrow_v = wide_k, wide_v  # held to the end, as the wide ones are
        if grouped:
            wide_k, wide_v = op.repeated(wide_k, *q.shape), op.repeated(wide_v, *q.shape)
            repeated = True
        scaled_k = op.scale(wide_k)
        single = k.shape[1] is ONE and q.shape[1] is not ONE and not grouped
        if single:  # one head of keys, which all queries see
            scaled_k = op.expand(scaled_k, *q.shape)
        scores = scores_of(scaled_q, scaled_k, side_by_side, repeated)
        del scaled_k  # dies here; the queries are held to the end
        if mask is not None:
            scores = op.add(scores, mask)
        scores = op.safe_softmax(scores)
        scores = op.dropout(scores)
        narrow = op.cast(scores, q.dtype)  # returned as well, and thrown away by the caller
        if single:
            wide_v = op.expand(wide_v, *q.shape)
        out = weighted_sum(scores, wide_v, repeated and not (seen and v.dtype is FLOAT32))
    out = op.cast(out, q.dtype)
    del narrow, narrow_k, narrow_v
    return out
