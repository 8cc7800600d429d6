"""Experts that are divided among GPUs: each sends its tokens to their experts' GPUs and back.

All GPUs read one micro-batch. Each takes its share of the tokens, sorts their pairs of a token and
an expert by expert, sends each pair's row to its expert's GPU, and gets the outputs back; then the
shares are gathered. How many rows a GPU gets depends on the routing.

Source: transformers (distributed/expert_parallel.py, AllToAllEP)
"""

from functools import cache
from typing import Final, NamedTuple

from calculator.autograd import operations as op
from calculator.autograd import selection as pick
from calculator.autograd.dtypes import INT64
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import BATCH, SEQUENCE
from calculator.autograd.routing import all_rows, exchanged, own_rows, placed, sum_of_chosen
from calculator.autograd.sizes import ONE, Size, derived, size
from calculator.layers.experts import Experts

GPUS: Final = size("expert_parallel")
TOKENS: Final = derived(
    "tokens of a share",
    lambda sequences, length, gpus: sequences * length // gpus,
    *(BATCH, SEQUENCE, GPUS),
)
# pairs of a token and an expert that come to a GPU
ROWS: Final = size("rows_received")


@cache  # one size for all layers, so that their tensors are known to be alike
def own_experts(experts: Size) -> Size:
    """The number of experts on each GPU."""
    return derived("experts of a GPU", lambda count, gpus: count // gpus, experts, GPUS)


def routed(experts: Experts, x: Tensor, shares: Tensor, chosen: Tensor) -> Tensor:
    """(batch, length, hidden), two of (batch, length, chosen) -> (batch, length, hidden)."""
    given = given_rows(experts, x, shares, chosen)
    made = experts.of_rows(given.rows, given.ones, given.ids)
    back = exchanged(made, TOKENS, experts.choice.chosen, experts.hidden)
    outputs = placed(back, given.order)
    out = op.multiply(outputs, op.view(given.weights, TOKENS, experts.choice.chosen, ONE))
    out = sum_of_chosen(out)
    out = all_rows(out, *x.shape)
    del given, made, back, outputs  # held until here
    return op.cast(out, x.dtype)


class Given(NamedTuple):
    """Rows that a GPU gets, with their experts and a share of one for each.

    `weights` are its own tokens' shares of experts, and `order` that of the pairs that it sends.
    """

    rows: Tensor
    ids: Tensor
    ones: Tensor
    weights: Tensor
    order: Tensor


def given_rows(experts: Experts, x: Tensor, shares: Tensor, chosen: Tensor) -> Given:
    """The rows that this GPU gets for those that it sends."""
    t, every, count = x.tape, experts.choice.experts, experts.choice.chosen
    x = own_rows(x, TOKENS, experts.hidden)
    chosen = t.empty((TOKENS, count), chosen.dtype)
    weights = own_rows(shares, TOKENS, count)
    ordered, order = t.like(chosen), t.like(chosen)  # both of a sort
    del ordered
    sent = pick.rows_at(x, t.like(order), TOKENS, count, experts.hidden)
    counts, ones = t.empty((every,), INT64), t.like(order)
    del ones
    others = exchanged(counts, every)
    sums = [t.empty(shape, INT64) for shape in ((GPUS,), (GPUS,), (2 * GPUS,))]
    del sums
    rows = exchanged(sent, ROWS, experts.hidden)
    own = t.empty((experts.own,), INT64)
    numbers = t.empty((every,), INT64)  # of each GPU's experts
    del own
    places = t.empty((ROWS, ONE), INT64)
    ids = t.like(places)
    del places, numbers
    ones = t.like(ids, rows.dtype)
    del x, chosen, sent, counts, others  # held until here
    return Given(rows, ids, ones, weights, order)
