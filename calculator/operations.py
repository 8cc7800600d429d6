"""PyTorch's operations as they stand in the models' code: what each allocates, keeps and frees.

Every function takes the tape first. Elements are symbolic products (`calculator.tape`): B
sequences, S tokens (T in a decoder), N = B*S (M = B*T), d hidden size, h heads of k, f
feed-forward size, V vocabulary.

Source: torch (tools/autograd/derivatives.yaml), autocast.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from calculator.graph import Gradients, Rule, Tensor, Weight
from calculator.tape import Tape


def add(t: Tape, a: Tensor, b: Tensor) -> Tensor:
    """a + b: keeps nothing; the gradient is passed on where the type and shape are the same."""
    wide = a if a.item >= b.item else b
    out = t.empty(_longer(a, b).elements, wide.item)
    t.record([a, b], [out], rules=[_passed_on(x, out) for x in (a, b)])
    return out


def _longer(a: Tensor, b: Tensor) -> Tensor:
    return a if len(a.elements) >= len(b.elements) else b


def _passed_on(x: Tensor, out: Tensor) -> Rule:
    same = (x.elements, x.item) == (out.elements, out.item)
    return None if same else (x.elements, x.item, False)


def multiply(t: Tape, a: Tensor, b: Tensor) -> Tensor:
    """a * b: keeps each factor that the other's gradient needs."""
    wide = a if a.item >= b.item else b
    out = t.empty(_longer(a, b).elements, wide.item)
    saved = [x for x, other in ((a, b), (b, a)) if other.node is not None]
    t.record([a, b], [out], saved, product=(out.elements, out.item))
    return out


def scale(t: Tape, x: Tensor) -> Tensor:
    """x times a Python number: keeps nothing."""
    out = t.like(x)
    t.record([x], [out])
    return out


def shift(t: Tape, x: Tensor) -> Tensor:
    """x plus a Python number: keeps nothing, passes the gradient on."""
    out = t.like(x)
    t.record([x], [out], rules=[None])
    return out


def keep_input(t: Tape, x: Tensor) -> Tensor:
    """A pointwise function whose derivative needs its input: GELU."""
    out = t.like(x)
    t.record([x], [out], [x])
    return out


def power(t: Tape, x: Tensor) -> Tensor:
    """x to a power above 2; autocast computes it in 32 bits. Backward: x^(n-1), n x^(n-1)."""
    x = t.cast(x, 4) if t.autocasting else x
    out = t.like(x)
    t.record([x], [out], [x], scratch=[(x.elements, x.item)] * 2)
    return out


def keep_output(t: Tape, x: Tensor) -> Tensor:
    """A pointwise function or softmax whose derivative needs its result: tanh, ReLU."""
    out = t.like(x)
    t.record([x], [out], [out])
    return out


def softmax(t: Tape, x: Tensor) -> Tensor:
    """Softmax over the last axis, in 32 bits under autocast; keeps its result."""
    return keep_output(t, t.cast(x, 4) if t.autocasting else x)


def safe_softmax(t: Tape, x: Tensor) -> Tensor:
    """The math kernel's softmax, which gives rows that are masked throughout zeros."""
    out = t.like(x)
    hidden = t.empty(x.elements, 1)
    rows, zero = t.empty(x.elements.rsplit("*", 1)[0], 1), t.empty("1", 4)
    result = t.like(x)
    t.record([x], [result], [result])
    del out, hidden, rows, zero
    return result


def choose(t: Tape, condition: Tensor, x: Tensor) -> Tensor:
    """x where a condition holds, a constant elsewhere: keeps the condition."""
    out = t.like(x)
    t.record([x], [out], [condition])
    return out


def pad(t: Tape, x: Tensor, elements: str) -> Tensor:
    """x with longer rows; the gradient is cut down again."""
    out = t.empty(elements, x.item)
    t.record([x], [out])
    return out


def copy(t: Tape, x: Tensor) -> Tensor:
    """A contiguous copy: its gradient is passed on as it is."""
    out = t.like(x)
    t.record([x], [out], rules=[None])
    return out


def dropout(t: Tape, x: Tensor, active: bool) -> Tensor:
    """Keeps a mask of one byte an element; at probability 0 PyTorch returns its input."""
    if not active:
        return x
    out = t.like(x)
    mask = t.empty(x.elements, 1)
    t.record([x], [out], [mask])
    return out


def embedding(t: Tape, weight: Weight, indices: Tensor, elements: str) -> Tensor:
    """Rows of `weight`: keeps the indices; the gradient is as large as the whole table."""
    out = t.empty(elements, weight.item)
    t.record([weight], [out], [indices])
    return out


def layer_norm(t: Tape, x: Tensor, weight: Weight, bias: Weight, rows: str) -> Tensor:
    """LayerNorm; autocast runs it in 32 bits. Keeps its input, mean and deviation (`rows` each)."""
    x = t.cast(x, max(x.item, 4 if t.autocasting else 0))
    out = t.like(x)
    mean, deviation = t.empty(rows, 4), t.empty(rows, 4)
    t.record([x, weight, bias], [out], [x, mean, deviation])
    return out


def rms_norm(t: Tape, x: Tensor, weight: Weight, rows: str) -> Tensor:
    """T5's LayerNorm in plain operations: w * (x / sqrt(mean(x^2) + eps)), squares in 32 bits."""
    wide = t.cast(x, 4)
    squares = keep_input(t, wide)
    del wide
    variance = t.empty(rows, 4)
    t.record([squares], [variance])
    del squares
    shifted = shift(t, variance)
    root = keep_output(t, shifted)
    del shifted, variance
    normed = multiply(t, x, root)
    del root
    if t.weight_item == 2:
        normed = t.cast(normed, 2)
    return multiply(t, weight, normed)


def linear(
    t: Tape,
    x: Tensor,
    weight: Weight,
    elements: str,
    bias: Weight | None = None,
    transposed: bool = True,
) -> Tensor:
    """x W^T + b: keeps the input and the weight as they go into the product.

    nn.Linear transposes its weight, so the weight's gradient is a view; GPT-2's Conv1D does not.
    """
    x, w, b = _lowered(t, x, weight, bias, transposed)
    out = t.empty(elements, x.item)
    inputs = [x, w]
    rules: list[Rule] = [(x.elements, x.item, True), (w.elements, w.item, transposed)]
    if b is not None:
        inputs.append(b)
        rules.append((b.elements, b.item, False))
    t.record(inputs, [out], [x, w], rules)
    return out


def _lowered(
    t: Tape, x: Tensor, weight: Weight, bias: Weight | None, transposed: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Autocast's copies, made from the last argument to the first as compilers order them."""
    if transposed:  # linear(x, weight, bias)
        b = None if bias is None else t.lower(bias)
        w = t.lower(weight)
        return t.lower(x), w, b
    w = t.lower(weight)  # addmm(bias, x, weight)
    x = t.lower(x)
    return x, w, None if bias is None else t.lower(bias)


def batched_matmul(t: Tape, a: Tensor, b: Tensor, elements: str) -> Tensor:
    """A product of batches of matrices: keeps both factors."""
    a, b = t.lower(a), t.lower(b)
    out = t.empty(elements, a.item)
    t.record([a, b], [out], [a, b], [(x.elements, x.item, True) for x in (a, b)])
    return out


def split(t: Tape, x: Tensor, pieces: Sequence[str]) -> list[Tensor]:
    """Views of parts of x; their gradients are put together in new bytes."""
    parts = [Tensor(x.storage, elements, x.item) for elements in pieces]
    whole, item = x.elements, x.item

    def joined(_: Gradients) -> Gradients:
        return [t.empty(whole, item)]

    t.record([x], parts, special=joined)
    return parts


def concatenate(t: Tape, parts: Sequence[Tensor], elements: str) -> Tensor:
    """Joins tensors; the gradient's parts are views of it."""
    out = t.empty(elements, parts[0].item)
    t.record(parts, [out], rules=[None] * len(parts))
    return out


def subtract_products(t: Tape, a: Tensor, x: Tensor, b: Tensor, y: Tensor) -> Tensor:
    """a x - b y (or a x + b y)."""
    left, right = multiply(t, a, x), multiply(t, b, y)
    return add(t, left, right)


@dataclass(frozen=True, slots=True)
class Heads:
    """The shapes of one attention: queries, keys and values, scores, rows of scores.

    `side_by_side` queries and keys are whole tensors of their own, head after head.
    """

    queries: str
    keys: str
    scores: str
    rows: str
    one_sequence: bool
    side_by_side: bool = False


def attention_scores(t: Tape, q: Tensor, k: Tensor, heads: Heads) -> Tensor:
    """q k^T; matmul copies heads that are views of a wider tensor, unless there is one sequence."""
    q, k = t.lower(q), t.lower(k)
    if not (heads.one_sequence or heads.side_by_side):
        q, k = copy(t, q), copy(t, k)
    return batched_matmul(t, q, k, heads.scores)


def weighted_sum(t: Tape, probabilities: Tensor, v: Tensor, heads: Heads) -> Tensor:
    """softmax(q k^T) v, again with a copy of v."""
    probabilities, v = t.lower(probabilities), t.lower(v)
    if not heads.one_sequence:
        v = copy(t, v)
    return batched_matmul(t, probabilities, v, heads.queries)


def expand(t: Tape, x: Tensor) -> Tensor:
    """The same bytes for every sequence; the gradient is summed over them."""
    out = Tensor(x.storage, f"B*{x.elements}", x.item)
    t.record([x], [out])
    return out


def flash_attention(t: Tape, q: Tensor, k: Tensor, v: Tensor, heads: Heads) -> Tensor:
    """One kernel: keeps q, k, v, the output, a logarithm a row and the random state.

    Backward adds up dq in 32 bits and a number a row, for lengths rounded up to 128 (c) and heads
    rounded up to 32 (K); both are thrown away at once.

    Source: torch (transformers/cuda/flash_attn/flash_api.cpp, mha_bwd)
    """
    out = t.like(q)
    logarithms = t.empty(heads.rows, 4)
    seed, offset = t.empty("2", 8), t.empty("1", 8)
    scratch = [("B*h*c", 4), ("B*c*h*K", 4)]
    t.record([q, k, v], [out], [q, k, v, out, logarithms, seed, offset], scratch=scratch)
    return out


def efficient_attention(
    t: Tape, q: Tensor, k: Tensor, v: Tensor, heads: Heads, bias: Tensor | None = None
) -> Tensor:
    """The memory-efficient kernel: as flash, in 32 bits too, with an additive mask.

    A mask's gradient is made for each sequence before it is summed over them.
    """
    out = t.like(q)
    logarithms = t.empty(heads.rows, 4)
    seed, offset = t.empty("1", 8), t.empty("1", 8)
    saved = [q, k, v, out, logarithms, seed, offset]
    inputs = [q, k, v]
    if bias is not None:
        bias = bias if heads.one_sequence else expand(t, bias)
        inputs.append(bias)
        saved.append(bias)
    t.record(inputs, [out], saved)
    return out
