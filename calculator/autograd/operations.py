"""PyTorch's operations as the models' code uses them, with the tensors that each one keeps.

Results and broadcasts follow from shapes; a shape that does not fit raises `ShapeError`. What an
operation keeps for its backward formula, and the formula's results, are in its code.

Source: torch (tools/autograd/derivatives.yaml), autocast.
"""

from collections.abc import Sequence
from functools import partial, reduce

from calculator.autograd.dtypes import BOOL, FLOAT16, FLOAT32, INT64, DType, wider
from calculator.autograd.graph import Gradients, Made, Recorder, Rule, Tensor, Weight
from calculator.autograd.ledger import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from calculator.autograd.mode import Costly
from calculator.autograd.scratch import (
    efficient_output_scratch,
    efficient_scratch,
    embedding_scratch,
    flash_width,
)
from calculator.autograd.sizes import (
    ONE,
    Shape,
    ShapeError,
    Size,
    broadcast,
    constant,
    derived,
    elements_of,
    rounded_up,
)

# -- one tensor, element by element -----------------------------------------------------------


def cast(x: Tensor, dtype: DType) -> Tensor:
    """x in another number format; x itself if it already has it."""
    return x if x.dtype is dtype else x.tape.operation([x], x.shape, dtype)


def widened(x: Tensor) -> Tensor:
    """x as autocast passes it to an operation in 32 bits."""
    return cast(x, FLOAT32) if x.tape.autocast else x


def scale(x: Tensor) -> Tensor:
    """x times a Python number: keeps nothing."""
    return x.tape.operation([x], x.shape, x.dtype)


def shift(x: Tensor) -> Tensor:
    """x plus a Python number: keeps nothing, passes the gradient on."""
    return x.tape.operation([x], x.shape, x.dtype, rules=[None])


def copy(x: Tensor) -> Tensor:
    """A contiguous copy: its gradient is passed on as it is."""
    return x.tape.operation([x], x.shape, x.dtype, rules=[None])


def gelu(x: Tensor) -> Tensor:
    """GELU in one operation: keeps its input."""
    return x.tape.operation([x], x.shape, x.dtype, saves=[x])


def silu(x: Tensor) -> Tensor:
    """SiLU (swish): keeps its input."""
    return x.tape.operation([x], x.shape, x.dtype, saves=[x])


def square(x: Tensor) -> Tensor:
    """x squared: keeps its input, and its backward makes no more than the gradient."""
    return x.tape.operation([x], x.shape, x.dtype, saves=[x])


def power(x: Tensor) -> Tensor:
    """x^n by `pow`, which autocast runs in 32 bits: keeps x; backward makes x^(n-1), n x^(n-1)."""
    x = widened(x)
    scratch = [Made(x.shape, x.dtype)] * 2
    return x.tape.operation([x], x.shape, x.dtype, saves=[x], scratch=scratch)


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent: keeps its result."""
    return x.tape.operation([x], x.shape, x.dtype, keeps=True)


def relu(x: Tensor) -> Tensor:
    """max(0, x): keeps its result."""
    return x.tape.operation([x], x.shape, x.dtype, keeps=True)


def sigmoid(x: Tensor) -> Tensor:
    """The logistic function: keeps its result."""
    return x.tape.operation([x], x.shape, x.dtype, keeps=True)


def softplus(x: Tensor) -> Tensor:
    """log(1 + e^x), which autocast runs in 32 bits: keeps its input."""
    x = widened(x)
    return x.tape.operation([x], x.shape, x.dtype, saves=[x])


def rsqrt(x: Tensor) -> Tensor:
    """One over the square root, which autocast runs in 32 bits: keeps its result."""
    x = widened(x)
    return x.tape.operation([x], x.shape, x.dtype, keeps=True)


def gelu_new(x: Tensor) -> Tensor:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), written in plain operations."""
    half = scale(x)
    return multiply(half, shift(tanh(scale(add(x, scale(power(x)))))))


def dropout(x: Tensor) -> Tensor:
    """Keeps a mask of one byte per element; at probability 0, PyTorch returns its input."""
    return always_dropout(x) if x.tape.mode.dropout else x


def always_dropout(x: Tensor) -> Tensor:
    """Dropout of a probability above 0."""
    return x.tape.operation([x], x.shape, x.dtype, beside=[Made(x.shape, BOOL)])


def softmax(x: Tensor, dtype: DType | None = None) -> Tensor:
    """Softmax over the last axis in a format, by autocast in 32 bits: keeps its result.

    The kernel widens float16 itself; all else is cast first. Backward multiplies result and
    gradient into a tensor of its own.

    Source: torch (aten/src/ATen/native/SoftMax.cpp, softmax; cuda/SoftMax.cu,
    softmax_backward_cuda_out)
    """
    dtype = dtype or (FLOAT32 if x.tape.autocast else x.dtype)
    if not (x.dtype is FLOAT16 and dtype is FLOAT32):
        x = cast(x, dtype)
    return x.tape.operation([x], x.shape, dtype, keeps=True, scratch=[Made(x.shape, dtype)])


def safe_softmax(x: Tensor) -> Tensor:
    """The math kernel's softmax, which gives rows that are masked throughout zeros, in place.

    Source: torch (aten/src/ATen/native/SoftMax.cpp, _safe_softmax)
    """
    t = x.tape
    out = softmax(x)
    hidden = t.empty(x.shape, BOOL)
    rows, zero = t.empty((*x.shape[:-1], ONE), BOOL), t.empty((), x.dtype)
    del hidden, rows, zero
    return out


def mean_of_rows(x: Tensor) -> Tensor:
    """The mean over the last axis, which stays as an axis of 1."""
    return x.tape.operation([x], (*x.shape[:-1], ONE), x.dtype)


def mean_of_tokens(x: Tensor) -> Tensor:
    """(batch, length, width) -> (batch, width)."""
    return x.tape.operation([x], (x.shape[0], x.shape[-1]), x.dtype)


def sum_of_tokens(x: Tensor) -> Tensor:
    """(batch, length, width) -> (batch, width), which autocast runs in 32 bits.

    Its gradient is a view, unless it has to be narrowed.
    """
    batch, _, width = x.shape
    dtype = FLOAT32 if x.tape.autocast else x.dtype
    rules = [None if dtype is x.dtype else Made(x.shape, x.dtype)]
    return x.tape.operation([x], (batch, width), dtype, rules=rules)


# -- two tensors ------------------------------------------------------------------------------


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b: keeps nothing; the gradient is passed on where format and shape are the same."""
    out = Made(broadcast(a.shape, b.shape), wider(a.dtype, b.dtype))
    rules = [_passed_on(x, out) for x in (a, b)]
    return a.tape.operation([a, b], out.shape, out.dtype, rules=rules)


def add_in_place(a: Tensor, b: Tensor) -> Tensor:
    """a += b: the sum in a's own bytes; b's gradient is passed on where its format is the same."""
    out = a.tape.alias(a)
    rules = [None, _passed_on(b, Made(a.shape, a.dtype))]
    out.node, out.index = a.tape.record([a, b], rules=rules), 0
    return out


def subtract(a: Tensor, b: Tensor) -> Tensor:
    """a - b: keeps nothing; the second gradient is negated in full before it is summed."""
    out = Made(broadcast(a.shape, b.shape), wider(a.dtype, b.dtype))
    rules = [_passed_on(a, out), Made(b.shape, b.dtype)]
    return a.tape.operation([a, b], out.shape, out.dtype, rules=rules, product=out)


def _passed_on(x: Tensor, out: Made) -> Rule:
    same = _full(x.shape, out.shape) == out.shape and x.dtype is out.dtype
    return None if same else Made(x.shape, x.dtype)


def _full(shape: Shape, like: Shape) -> Shape:
    """The shape with leading ones, as long as another one."""
    return (ONE,) * (len(like) - len(shape)) + shape


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """a * b: keeps each factor that the other's gradient needs."""
    out = Made(broadcast(a.shape, b.shape), wider(a.dtype, b.dtype))
    saves = factors(a, b)
    return a.tape.operation([a, b], out.shape, out.dtype, saves=saves, product=out)


def clamp(x: Tensor, bounds: int) -> Tensor:
    """x clamped to a number of bounds: keeps x; backward marks the elements inside each bound."""
    scratch = [Made((), x.dtype), *[Made(x.shape, BOOL)] * bounds]
    return x.tape.operation([x], x.shape, x.dtype, saves=[x], scratch=scratch)


def masked_fill(x: Tensor, hidden: Tensor) -> Tensor:
    """x with a number where a condition holds: keeps the condition."""
    return x.tape.operation([x], x.shape, x.dtype, saves=[hidden])


def linear(x: Tensor, weight: Tensor, bias: Weight | None = None) -> Tensor:
    """x W^T + b as nn.Linear: keeps input and weight as they go into the product.

    The weight, (outputs, inputs), is transposed, so its gradient is a view. Autocast's copies are
    made from the last argument to the first, as compilers order them.

    Raises:
        ShapeError: for an input of another width than the weight's.
    """
    lower = x.tape.lower
    outputs, inputs = weight.shape
    _check_product(x, inputs, weight)
    b = None if bias is None else lower(bias)
    w = lower(weight)
    return _product(lower(x), w, b, outputs, transposed=True)


def conv1d(x: Tensor, weight: Weight, bias: Weight) -> Tensor:
    """x W + b as GPT-2's Conv1D, addmm(bias, x, weight) with a weight of (inputs, outputs)."""
    lower = x.tape.lower
    inputs, outputs = weight.shape
    _check_product(x, inputs, weight)
    w = lower(weight)
    x = lower(x)
    return _product(x, w, lower(bias), outputs, transposed=False)


def _check_product(x: Tensor, inputs: Size, weight: Tensor) -> None:
    if x.shape[-1] is not inputs:
        raise ShapeError(f"{x.shape} does not go into a product with {weight.shape}")


def _product(x: Tensor, w: Tensor, b: Tensor | None, outputs: Size, transposed: bool) -> Tensor:
    inputs = [x, w]
    rules: list[Rule] = [Made(x.shape, x.dtype, True), Made(w.shape, w.dtype, transposed)]
    if b is not None:
        inputs.append(b)
        rules.append(Made(b.shape, b.dtype))
    shape = (*x.shape[:-1], outputs)
    return x.tape.operation(
        inputs,
        shape,
        x.dtype,
        saves=factors(x, w),
        rules=rules,
        summed=b is not None,
        costly=Costly.PRODUCT,
        flops=2 * elements_of(x.shape) * outputs,
    )


def factors(a: Tensor, b: Tensor) -> list[Tensor]:
    """Factors that a product keeps: each one that the other's gradient needs."""
    return [x for x, other in ((a, b), (b, a)) if other.node is not None]


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """A product of batches of matrices: keeps each factor that the other's gradient needs.

    By a single matrix it is one product, as by a weight.

    Raises:
        ShapeError: when a's columns are not b's rows.
    """
    lower = a.tape.lower
    a, b = lower(a), lower(b)
    if a.shape[-1] is not b.shape[-2]:
        raise ShapeError(f"{a.shape} and {b.shape} have no product")
    shape = (*broadcast(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    rules = [Made(x.shape, x.dtype, True) for x in (a, b)]
    autocast = a.tape.mode.autocast
    wide = autocast is not None and a.dtype.width > autocast.width
    return a.tape.operation(
        [a, b],
        shape,
        a.dtype,
        saves=factors(a, b),
        rules=rules,
        factors=wide,
        costly=Costly.PRODUCT if len(b.shape) == 2 else None,
        flops=2 * elements_of(shape) * a.shape[-1],
    )


def biased_matmul(bias: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """bias + c a b for a number c (`baddbmm`): keeps both factors; a bias without a gradient.

    Backward makes each product before it is scaled.
    """
    lower = a.tape.lower
    b, a, bias = lower(b), lower(a), lower(bias)
    shape = (*a.shape[:-1], b.shape[-1])
    scratch = [Made(a.shape, a.dtype)]
    flops = 2 * elements_of(shape) * a.shape[-1]
    kept = factors(a, b)
    return a.tape.operation([a, b], shape, a.dtype, saves=kept, scratch=scratch, flops=flops)


def folded(weight: Tensor, a: Tensor, b: Tensor, is_one: Size) -> Tensor:
    """weight + c a b of each expert (`baddbmm`, without autocast): keeps both factors.

    The weight is (experts, outputs, inputs), and frozen. cuBLAS takes no factor whose rows and
    columns both have gaps, as those of `a` have, so each product copies it. Backward makes a
    product before it is scaled, unless c is one, where `is_one` is 1 and not 0.

    Source: torch (aten/src/ATen/native/cuda/Blas.cpp, prepare_batch_matrix_for_cublas)
    """
    copy = a.tape.like(a)
    scaled = derived("scaled", _scaled_elements, a.elements, b.elements, is_one)
    out = a.tape.operation(
        [a, b],
        weight.shape,
        weight.dtype,
        saves=factors(a, b),
        scratch=[Made((scaled,), a.dtype)],
        flops=2 * elements_of(weight.shape) * a.shape[-1],
    )
    del copy  # dies here
    return out


def _scaled_elements(a: int, b: int, is_one: int) -> int:
    """Elements beside the gradients of a and of b, made in turn: a's copy, or unscaled products."""
    return a if is_one else max(a, b)


def convolution(x: Tensor, weight: Weight, bias: Weight, places: Size, turned: bool) -> Tensor:
    """A convolution with the given output positions; the bias is added in place.

    Keeps input and weight as they go in. A gradient whose axes are `turned` is copied.

    Raises:
        ShapeError: for an input of other channels than the weight's.
    """
    lower = x.tape.lower
    if x.shape[1] is not weight.shape[1]:
        raise ShapeError(f"{x.shape} does not go into a convolution with {weight.shape}")
    b, w = lower(bias), lower(weight)
    x = lower(x)
    shape = (x.shape[0], w.shape[0], places)
    scratch = [Made(shape, x.dtype)] if turned else []
    return x.tape.operation([x, w, b], shape, x.dtype, saves=[x, w], scratch=scratch)


# -- several GPUs -----------------------------------------------------------------------------


def summed(x: Tensor) -> Tensor:
    """The sum of what several GPUs have, in a copy; the gradient is passed on as it is.

    Source: torch (distributed/tensor/placement_types.py, Partial._reduce_value)
    """
    x.tape.ledger.remark(ALL_REDUCE, x.elements, x.dtype)
    return copy(x)


def summed_back(x: Tensor) -> Tensor:
    """The same bytes; the gradient is the sum of those that several GPUs have, in a copy.

    Source: torch (distributed/tensor/_api.py, _FromTorchTensor)
    """
    out = x.tape.alias(x)
    node = x.tape.record([x])
    if node is not None:
        node.before = partial(x.tape.ledger.remark, ALL_REDUCE, x.elements, x.dtype)
        out.node, out.index = node, 0
    return out


def reduced(x: Tensor) -> Tensor:
    """The sum of what several GPUs have, in the same bytes.

    Source: transformers (distributed/parallel_utils.py, _AllReduceForward)
    """
    x.tape.ledger.remark(ALL_REDUCE, x.elements, x.dtype)
    return x


def reduced_back(x: Tensor) -> Tensor:
    """The same bytes; the gradient is the sum of those that several GPUs have, in its own bytes.

    Source: transformers (distributed/parallel_utils.py, _AllReduceBackward)
    """
    t, elements, dtype = x.tape, x.elements, x.dtype

    def reduced_gradient(gradients: Gradients) -> Gradients:
        t.ledger.remark(ALL_REDUCE, elements, dtype)
        return [*gradients]

    out = t.alias(x)
    node = t.record([x], special=reduced_gradient)
    if node is not None:
        out.node, out.index = node, 0
    return out


def gathered(x: Tensor, length: Size, sums: bool = True) -> Tensor:
    """The tokens of all GPUs beside this one's: (batch, part, ...) -> (batch, length, ...).

    Each GPU keeps its part of the gradient, which all of them have, or which `sums` over them.

    Source: torch (distributed/tensor/placement_types.py, Shard._to_replicate_tensor)
    """
    t = x.tape
    part = Made(x.shape, x.dtype)
    whole = Made((x.shape[0], length, *x.shape[2:]), x.dtype)

    def kept(_: Gradients) -> Gradients:
        return [_scatter(t, whole, part) if sums else t.empty(*part)]

    collected = _gather(t, whole)
    out = t.operation([x], whole.shape, whole.dtype, special=kept)
    del collected  # dies here
    return out


def scattered(x: Tensor, length: Size) -> Tensor:
    """One GPU's part of the sum over all GPUs: (batch, all tokens, ...) -> (batch, length, ...).

    Source: torch (distributed/tensor/placement_types.py, Shard._reduce_shard_tensor)
    """
    t = x.tape
    part, whole = _part_and_whole(x, length)
    t.ledger.remark(REDUCE_SCATTER, x.elements, x.dtype)
    turned = t.like(x)
    out = t.operation([x], part.shape, part.dtype, special=lambda _: _whole_gradient(t, whole))
    del turned  # dies here
    return out


def own_part(x: Tensor, length: Size) -> Tensor:
    """A copy of this GPU's part of what all have: (batch, all tokens, ...) -> (batch, length, ...).

    Source: torch (distributed/tensor/placement_types.py, Shard._replicate_to_shard)
    """
    t = x.tape
    part, whole = _part_and_whole(x, length)
    return t.operation([x], part.shape, part.dtype, special=lambda _: _whole_gradient(t, whole))


def _part_and_whole(x: Tensor, length: Size) -> tuple[Made, Made]:
    return Made((x.shape[0], length, *x.shape[2:]), x.dtype), Made(x.shape, x.dtype)


def _gather(t: Recorder, whole: Made) -> Tensor | None:
    """The parts one after the other, of which several sequences have to be put together again."""
    t.ledger.remark(ALL_GATHER, elements_of(whole.shape), whole.dtype)
    return None if t.mode.one_sequence else t.empty(*whole)


def _whole_gradient(t: Recorder, whole: Made) -> Gradients:
    collected = _gather(t, whole)
    made = t.empty(*whole)
    del collected  # dies here
    return [made]


def _scatter(t: Recorder, whole: Made, part: Made) -> Tensor:
    t.ledger.remark(REDUCE_SCATTER, elements_of(whole.shape), whole.dtype)
    turned = t.empty(*whole)
    made = t.empty(*part)
    del turned  # dies here
    return made


# -- shapes -----------------------------------------------------------------------------------


def view(x: Tensor, *shape: Size) -> Tensor:
    """The same bytes in another shape."""
    return x.tape.alias(x, shape)


def transpose(x: Tensor, one: int, other: int) -> Tensor:
    """The same bytes with two axes exchanged."""
    shape = list(x.shape)
    shape[one], shape[other] = shape[other], shape[one]
    return x.tape.alias(x, tuple(shape))


def split(x: Tensor, *widths: Size) -> list[Tensor]:
    """Views of parts of the last axis, made at once; their gradients are joined in new bytes."""
    return _views(x, [(*x.shape[:-1], width) for width in widths])


def halves(x: Tensor, *shape: Size) -> list[Tensor]:
    """Views of both halves of the first axis, each of that shape, made at once."""
    return _views(x, [shape, shape])


def _views(x: Tensor, shapes: Sequence[Shape]) -> list[Tensor]:
    t = x.tape
    parts = [Tensor(t, x.storage, shape, x.dtype) for shape in shapes]
    whole = Made(x.shape, x.dtype)

    def joined(_: Gradients) -> Gradients:
        return [t.empty(*whole)]

    node = t.record([x], special=joined)
    if node:
        node.outputs = len(parts)
        for index, part in enumerate(parts):
            part.node, part.index = node, index
    return parts


def part(x: Tensor, *shape: Size) -> Tensor:
    """A slice of x: the same bytes, and a gradient as large as x."""
    out = Tensor(x.tape, x.storage, shape, x.dtype)
    out.node = x.tape.record([x])
    return out


def concatenate(parts: Sequence[Tensor], *shape: Size) -> Tensor:
    """Joins tensors in the widest format; the gradient's parts are views of it, or casts."""
    dtype = reduce(wider, (part.dtype for part in parts))
    rules = [None if part.dtype is dtype else Made(part.shape, part.dtype) for part in parts]
    return parts[0].tape.operation(parts, shape, dtype, rules=rules)


def regrouped(x: Tensor, *shape: Size) -> Tensor:
    """The same bytes in another shape; a gradient whose axes are turned has to be copied into it.

    Raises:
        ShapeError: for a shape of another number of elements.
    """
    out = x.tape.alias(x, shape)
    out.node, out.index = x.tape.record([x]), 0
    return out


def repeated(x: Tensor, *shape: Size) -> Tensor:
    """A copy of x for every head that shares it; the gradient is summed over them."""
    return x.tape.operation([x], shape, x.dtype)


def expand(x: Tensor, *shape: Size) -> Tensor:
    """The same bytes for every sequence or head; the gradient is summed over them."""
    out = Tensor(x.tape, x.storage, shape, x.dtype)
    out.node = x.tape.record([x])
    return out


def pad(x: Tensor, *shape: Size) -> Tensor:
    """x with longer rows; the gradient is cut down again."""
    return x.tape.operation([x], shape, x.dtype)


# -- layers in one operation --------------------------------------------------------------------


def embedding(indices: Tensor, weight: Weight, turned: bool = False) -> Tensor:
    """Rows of `weight`: keeps the indices; the gradient is as large as the whole table.

    For more than 3,072 indices, backward sorts them and adds up ten rows at a time in 32 bits. It
    copies a gradient whose axes are `turned`.
    """
    shape = (*indices.shape, weight.shape[1])
    half = weight.dtype is not FLOAT32
    scratch = [Made((embedding_scratch(indices.elements, *weight.shape, half),), BOOL)]
    if turned:
        scratch.append(Made(shape, weight.dtype))
    return weight.tape.operation([weight], shape, weight.dtype, saves=[indices], scratch=scratch)


def layer_norm(x: Tensor, weight: Weight | None = None, bias: Weight | None = None) -> Tensor:
    """LayerNorm, in 32 bits under autocast: keeps its input, and one mean and deviation per row.

    Raises:
        ShapeError: for an input of another width than the weight's.
    """
    if weight is not None and x.shape[-1:] != weight.shape:
        raise ShapeError(f"{x.shape} is not normed by {weight.shape}")
    x = widened(x)
    row = Made((*x.shape[:-1], ONE), FLOAT32)
    inputs = [each for each in (x, weight, bias) if each is not None]
    return x.tape.operation(inputs, x.shape, x.dtype, saves=[x], beside=[row, row])


def flash_attention(q: Tensor, k: Tensor, v: Tensor, copied: int = 0) -> Tensor:
    """One kernel: keeps q, k, v, the output, one logarithm per row and the random state.

    Backward adds up dq in 32 bits and one number per row, for lengths rounded up to 128 and heads
    as wide as in the kernel; both are thrown away at once. The output and gradients whose tokens
    are not adjacent are `copied`. Keys and values may have fewer heads.

    Source: torch (transformers/cuda/flash_attn/flash_api.cpp, mha_bwd)
    """
    batch, heads, length, width = q.shape
    rows = rounded_up(length, 128)
    logarithms = Made((batch, heads, length), FLOAT32)
    random = [Made((constant(2),), INT64), Made((), INT64)]
    sums = Made((batch, rows, heads, flash_width(width)), FLOAT32)
    scratch = [Made((batch, heads, rows), FLOAT32), sums, *[Made(q.shape, q.dtype)] * copied]
    if k.shape[1] is not heads:  # the gradients of keys and values, for every head that shares them
        scratch += [Made((batch, heads, k.shape[2], width), k.dtype)] * 2
    return q.tape.operation(
        [q, k, v],
        q.shape,
        q.dtype,
        saves=[q, k, v],
        keeps=True,
        beside=[logarithms, *random],
        scratch=scratch,
        whole=True,
        costly=Costly.ATTENTION,
        flops=4 * elements_of(q.shape) * k.shape[2],
    )


def efficient_attention(
    q: Tensor, k: Tensor, v: Tensor, rows: Size, bias: Tensor | None = None
) -> Tensor:
    """The memory-efficient kernel: as flash, in 32 bits too, with an additive mask.

    Its logarithms have lengths rounded up to 32 (`rows`); its random state lies in the CPU's
    memory. A mask's gradient is made for each sequence, with rows of a multiple of 16, before it is
    summed over them. Values may be of another width than queries and keys.

    Source: torch (transformers/cuda/attention.cu, attention_backward.cu)
    """
    batch, heads, length, width = q.shape
    widths = width, v.shape[3]
    mode, half = q.tape.mode, q.dtype is not FLOAT32
    shape = batch, heads, length, widths, k.shape[2]
    tiles = efficient_scratch(*shape, half, mode.dropout, mode.capability)
    inputs = [q, k, v]
    if bias is not None:
        whole = (*q.shape[:-1], bias.shape[-1])
        inputs.append(bias if _full(bias.shape, whole) == whole else expand(bias, *whole))
    rules = [Made(x.shape, x.dtype) for x in inputs]
    if bias is not None:
        rules[-1] = Made((*q.shape[:-1], rounded_up(bias.shape[-1], 16)), bias.dtype)
    wide = ONE if q.dtype is FLOAT32 else efficient_output_scratch(batch, heads, length, widths)
    made = None if wide is ONE or q.tape.has_results else q.tape.empty((wide,), BOOL)
    out = q.tape.operation(
        inputs,
        (batch, heads, length, v.shape[3]),
        q.dtype,
        saves=inputs,
        keeps=True,
        rules=rules,
        beside=[Made((batch, heads, rows), FLOAT32)],
        scratch=[Made((tiles,), BOOL)],
        whole=True,
        costly=Costly.ATTENTION,
        flops=4 * elements_of(q.shape) * k.shape[2],
    )
    del made  # held while the kernel runs
    return out


# -- the loss -----------------------------------------------------------------------------------


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """log_softmax keeps its result; nll_loss keeps it too, in 32 bits under autocast."""
    t = logits.tape
    result = widened(t.operation([logits], logits.shape, logits.dtype, keeps=True))
    dtype = result.dtype
    total = Made((), dtype)
    return t.operation([result], (), dtype, saves=[result, targets], beside=[total])
