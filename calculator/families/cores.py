"""The core of attention, from queries, keys and values to their weighted sum, in each kernel.

Source: torch (aten/native/transformers/attention.cpp), transformers (eager_attention_forward).
"""

from collections.abc import Callable

from calculator import operations as op
from calculator.families.structure import Structure
from calculator.graph import Tensor
from calculator.operations import Heads
from calculator.tape import Tape
from calculator.techniques import Attention, Checkpointing

# the weighted sum, and the probabilities where the code hands them on
Attended = tuple[Tensor, Tensor | None]
Core = Callable[[Tensor, Tensor, Tensor], Attended]


def attend(
    t: Tape, s: Structure, heads: Heads, q: Tensor, k: Tensor, v: Tensor, eager: Core, causal: bool
) -> Attended:
    """Attention without a bias: the model's own eager code, or one of PyTorch's kernels."""

    def core(q: Tensor, k: Tensor, v: Tensor) -> Attended:
        match s.attention:
            case Attention.EAGER:
                return eager(q, k, v)
            case Attention.MATH:
                return math_core(t, s, heads, q, k, v, t.empty("S*S", 4) if causal else None)
            case Attention.SDPA | Attention.FLASH | Attention.EFFICIENT:
                if s.flash:
                    return op.flash_attention(t, q, k, v, heads), None
                return op.efficient_attention(t, q, k, v, heads), None

    return selectively(t, s, core, q, k, v)


def selectively(t: Tape, s: Structure, core: Core, q: Tensor, k: Tensor, v: Tensor) -> Attended:
    """Under selective checkpointing the core's own tensors are computed again.

    Source: korthikanti
    """
    if s.checkpointing is Checkpointing.SELECTIVE:
        return t.checkpoint(core, q, k, v)
    return core(q, k, v)


def eager_core(
    t: Tape,
    s: Structure,
    heads: Heads,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    added: tuple[Tensor | None, ...] = (),
    cast_back: bool = False,
) -> Attended:
    """Scores, what is added to them, softmax and weighted sum in plain operations."""
    scores = op.attention_scores(t, q, k, heads)
    scores = op.scale(t, scores)
    for tensor in added:
        if tensor is not None:
            scores = op.add(t, scores, tensor)
    scores = op.softmax(t, scores)
    if cast_back:
        scores = t.cast(scores, v.item)
    scores = op.dropout(t, scores, s.dropout)
    out = op.weighted_sum(t, scores, v, heads)
    return op.copy(t, out), scores


def math_core(
    t: Tape, s: Structure, heads: Heads, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
) -> Attended:
    """PyTorch's reference kernel, which computes in 32 bits whatever comes in."""
    wide_q, wide_k, wide_v = (t.cast(x, 4) for x in (q, k, v))
    outer, t.autocast_item = t.autocast_item, 4
    scaled_q, scaled_k = op.scale(t, wide_q), op.scale(t, wide_k)
    scores = op.attention_scores(t, scaled_q, scaled_k, heads)
    if mask is not None:
        scores = op.add(t, scores, mask)
    scores = op.safe_softmax(t, scores)
    dropped = op.dropout(t, scores, s.dropout)
    out = op.weighted_sum(t, dropped, wide_v, heads)
    t.autocast_item = outer
    out = t.cast(out, q.item)
    return op.copy(t, out), None
