"""The output layer and its cross-entropy together, a chunk of tokens at a time.

Counted is PyTorch's own `linear_cross_entropy` with the defaults of `LinearCrossEntropyOptions`.
Its forward pass makes the logits of one chunk in a buffer, turns them into their own gradient
there, and adds up the gradients of the hidden states and of the output layer's weight and bias.
These are kept for the backward pass, which hands them on. All is in 32 bits, or in 16 bits except
for sums, and in bfloat16 the buffer.

Source: linear_cross_entropy, torch (nn/modules/linear_cross_entropy.py, _library/autograd.py)
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

from calculator.autograd.dtypes import BOOL, FLOAT16, FLOAT32, INT64
from calculator.autograd.graph import Gradients, Recorder, Tensor
from calculator.autograd.sizes import ONE, Shape, Size, derived, elements_of
from calculator.errors import InputError
from calculator.layers.loss import shifted_labels
from calculator.parts import Phase

# chunks on the tape: each later one needs as much as the second, or less
CHUNKS: Final = 2


def tokens_of_chunk(tokens: int, vocabulary: int, width: int) -> int:
    r"""Tokens whose logits exist at the same time.

    $$c = \tfrac{1}{2} \, 2^{\lceil \log_2 \lceil N / \lceil V / d \rceil \rceil \rceil}$$

    for N tokens, V rows of the output layer of width d; at least 1. The logits of twice as many
    tokens are about as large as the hidden states.

    >>> tokens_of_chunk(16384, 32000, 4096)
    1024

    Source: linear_cross_entropy (LinearCrossEntropyOptions, aspect_ratio:2)
    """
    even = -(-tokens // -(-vocabulary // width))
    return max(1, (1 << (even - 1).bit_length()) // 2)


@cache
def _chunk(tokens: Size, vocabulary: Size, width: Size) -> Size:
    return derived("tokens of a chunk", tokens_of_chunk, tokens, vocabulary, width)


def chunked_loss(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, shifts: bool = False
) -> Tensor:
    """The loss of what the output layer reads; `shifts` the labels as a causal model does."""
    t = hidden.tape
    with t.in_layer("head", 0):
        node = t.record([hidden], rules=[None])
    rows = Tensor(t, hidden.storage, hidden.shape, hidden.dtype, node)  # one for each token
    t.ledger.begin(Phase.LOSS)
    held = shifted_labels(labels) if shifts else None
    factors = [rows, weight] if bias is None else [rows, weight, bias]
    loss, made = _by_chunks(*factors)
    del held  # held until here
    wanted = [gradient for gradient in made if gradient is not None]
    shapes = [(gradient.shape, gradient.dtype) for gradient in wanted]

    def backward(_: Gradients) -> Gradients:
        # PyTorch fills in zeros as the gradients of outputs that nobody used
        zeros = [t.empty(*shape) for shape in shapes]
        results = [*made]
        made.clear()
        del zeros
        return results

    loss.node = t.record(factors, special=backward, saves=wanted)
    return loss


def _by_chunks(x: Tensor, weight: Tensor, *bias: Tensor) -> tuple[Tensor, Gradients]:
    """The loss, and the gradients of x, and of the weight and a bias where they are trained."""
    t, dtype = x.tape, x.dtype
    if dtype is not weight.dtype:
        rule = "needs hidden states in the output layer's format; autocast narrows this model's"
        raise InputError("chunked_loss", "torch", f"{rule}: must be none")
    wide, trained = dtype is FLOAT32, weight.node is not None
    vocabulary, width = weight.shape
    tokens = elements_of(x.shape[:-1])
    chunk = _chunk(tokens, vocabulary, width)
    narrow = dtype if dtype is FLOAT16 else FLOAT32  # the format of logits
    buffers = [t.empty((chunk, vocabulary), narrow), t.empty((chunk,), narrow)]
    loss = t.empty((), dtype)
    gradients: Gradients = [t.like(x), t.like(weight) if trained else None]
    for each in bias:
        gradients.append(None if each.node is None else t.empty(each.shape, dtype))
    buffers += [t.empty(each.shape, narrow) for each in bias if each.dtype is not narrow]
    sums_bias = any(each.node is not None for each in bias)
    buffers += _for_all_tokens(t, tokens)
    if trained and not wide:
        buffers.append(t.empty((chunk, width), FLOAT32))
    sums: Tensor | None = None
    narrowed: Tensor | None = None
    for place in range(CHUNKS):
        _dot(t, (chunk, ONE))
        sums = t.empty((chunk,), FLOAT32)  # those of the chunk before are held until these exist
        _dot(t)
        if sums_bias:
            if not (wide or place):
                buffers.append(t.empty((vocabulary,), FLOAT32))
            t.empty((vocabulary,), FLOAT32)  # the sum of rows dies here
        if narrow is not dtype:
            narrowed = t.empty((chunk, vocabulary), dtype)  # the same
        picked = [t.empty((chunk, width), dtype)]
        if not wide:
            picked.append(t.empty((chunk,), dtype))
        del picked  # die here
        if sums_bias and not wide:
            t.empty((vocabulary,), dtype)  # dies here
    del sums, narrowed, buffers  # held until here
    return loss, gradients


def _for_all_tokens(t: Recorder, tokens: Size) -> Sequence[Tensor]:
    """Tensors that exist throughout: a mask of ignored labels, the others, and their weights."""
    ignored = t.empty((tokens,), BOOL)
    zero = t.empty((), INT64)
    labels = t.empty((tokens,), INT64)
    del zero
    counted = t.empty((tokens,), BOOL)
    weights = t.empty((tokens,), FLOAT32)
    del counted
    mean = [t.empty((), FLOAT32) for _ in range(4)]
    del mean
    return ignored, labels, weights


def _dot(t: Recorder, *factors: Shape) -> None:
    """A sum of products, and what is made for it."""
    held = [t.empty(shape, FLOAT32) for shape in (*factors, ())]
    del held
