"""GradCache: embeddings of all mini-batches, the gradients of their loss, and each once more.

Nothing is kept of the first forward passes but embeddings. The loss and its gradients take rows of
scores in turn. Then each mini-batch is embedded again, and goes backward from its gradients, which
live until those of the next step exist. On the tape are two mini-batches: they stand for as many of
each column of pairs as there are, all but the first of which add to the gradients of weights.

Source: gradcache, sentence_transformers (losses/CachedMultipleNegativesRankingLoss.py)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from calculator.allocator import BLOCK, round_block
from calculator.autograd import operations as op
from calculator.autograd.backward import backward
from calculator.autograd.dtypes import FLOAT32, INT64, DType
from calculator.autograd.graph import Tensor, Weight
from calculator.autograd.mode import BATCH, Mode
from calculator.autograd.sizes import Size, divided, elements_of, number_of, rounded_up, size
from calculator.autograd.tape import Tape
from calculator.layers.heads import HIDDEN
from calculator.layers.pairs import of_length_1
from calculator.parts import Phase
from calculator.plan import Plan

PAIRS, EARLIER, LOSSES = map(size, ("pairs", "earlier", "losses"))
SEQUENCES: Final = PAIRS * 2
# ends of the stacks' names in each forward pass but the last
WITHOUT_GRAPH: Final = ("^", "^^")
ADDED_TO: Final = "^^^"


def cached_numbers(plan: Plan) -> dict[str, int]:
    """Numbers of sizes: pairs, mini-batches before the last two, and losses of rows."""
    losses = -(-plan.batch_size // 2 // plan.sequences)
    return {"pairs": plan.batch_size // 2, "earlier": 2 * losses - 2, "losses": losses}


def passes_of(mode: Mode) -> Sequence[str]:
    """The ends of the stacks' names in each forward pass on the tape."""
    return (*WITHOUT_GRAPH, ADDED_TO, "") if mode.cached else ("",)


def embeddings_bytes(mode: Mode, numbers: Mapping[str, int]) -> int:
    """Bytes of the embeddings' gradients, which live from step to step."""
    if not mode.cached:
        return 0
    return 2 * round_block(number_of(elements_of((PAIRS, HIDDEN)), numbers) * _format(mode).width)


def _format(mode: Mode) -> DType:
    """The format of embeddings, which autocast sums in 32 bits."""
    return FLOAT32 if mode.autocast else mode.weights


def cached_loss(t: Tape, embed: Callable[[], Tensor], end: Callable[[str], None]) -> Tensor:
    """The product of a mini-batch's embeddings and their gradients, which are found first.

    `end` is called after the backward pass of the mini-batch before, with the end of its names.
    """
    dtype = _format(t.mode)
    before = [t.empty((PAIRS, HIDDEN), dtype) for _ in range(2)]  # gradients of the last step
    embedded = [t.empty((EARLIER, _rows(dtype)), dtype)]
    for turn in WITHOUT_GRAPH:
        with t.setting(recording=False, turn=turn, _casts={}):
            embedded.append(embed())
    del embedded
    t.ledger.begin(Phase.LOSS)
    with t.setting(autocast=None):
        gradients = _gradients(t, dtype)
    del before
    t.inputs += [t.empty((), dtype), t.empty((), dtype)]  # the loss and its gradient
    t.ledger.begin(Phase.BACKWARD)
    with t.setting(turn=ADDED_TO):
        mean = embed()
        t.end_autocast()
        product = _product(mean, gradients)
        backward([product], [t.like(product)])
    _forget_inputs(t)
    end(ADDED_TO)
    mean = embed()
    t.inputs.append(Tensor(t, mean.storage, mean.shape, dtype))  # held to the end
    return _product(mean, gradients)


def _forget_inputs(t: Tape) -> None:
    """Let go of embeddings of tokens that are leaves, which end with their mini-batch."""
    for leaf in [leaf for leaf in t.leaves.values() if not isinstance(leaf, Weight)]:
        t.forget(leaf)


def _product(mean: Tensor, gradients: Sequence[Tensor]) -> Tensor:
    t = mean.tape
    return op.scale(t.operation([mean], (), mean.dtype, saves=gradients))


def _rows(dtype: DType) -> Size:
    """The elements for which a mini-batch's embeddings have bytes."""
    return rounded_up(elements_of((BATCH, HIDDEN)), BLOCK // dtype.width)


def _gradients(t: Tape, dtype: DType) -> list[Tensor]:
    """The gradients of all embeddings of both columns, by the last rows of scores."""
    embedded = t.empty((LOSSES * 2, _rows(dtype)), dtype)  # the bytes of both columns
    first, second = (t.leaf(t.constant((PAIRS, HIDDEN), dtype)) for _ in range(2))
    asked, offered = op.copy(first), op.copy(op.copy(second))
    places = t.empty((PAIRS,), INT64)
    losses = t.empty((divided(EARLIER, 2) * (BLOCK // FLOAT32.width),), FLOAT32)
    scores = t.empty((BATCH, PAIRS), dtype)  # of the rows before
    for column in (first, second):
        column.has_gradient = True
    gradients = [t.empty((PAIRS, HIDDEN), dtype) for _ in range(2)]
    t.inputs += gradients
    rows, others = of_length_1(op.part(asked, BATCH, HIDDEN)), of_length_1(offered)
    product = op.matmul(rows, op.transpose(others, 0, 1))
    del rows, others
    scores = op.scale(product)
    del product
    loss = op.scale(op.scale(op.cross_entropy(scores, places)))
    backward([loss], [t.like(loss)])
    for column in (first, second):
        t.forget(column)
    del losses, places, embedded  # held until here
    return gradients
