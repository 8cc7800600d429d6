"""Experts: many feed-forward layers, of which a router picks a few for each token.

Counted is ``grouped_mm``, transformers' default on every GPU since compute capability 8.0: tokens
are sorted by their experts and multiplied group by group, so no size depends on the routing.
Autocast does not reach these products: they run in the format of the weights.

Source: transformers (integrations/moe.py, grouped_mm_experts_forward; modeling_utils.py,
get_correct_experts_implementation)
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, Protocol

from calculator.autograd import operations as op
from calculator.autograd import selection as pick
from calculator.autograd.dtypes import BOOL, FLOAT32, INT32, INT64
from calculator.autograd.graph import Parameter, Tensor, Weight
from calculator.autograd.routing import hide_in_place
from calculator.autograd.sizes import ONE, Size, derived, size
from calculator.layers.layer import Buffer, Layer, Unary, parameters_of

# logits, and for each token the shares of its experts and their numbers
Routed = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class Choice:
    """Number of experts, and number of experts per token."""

    experts: Size
    chosen: Size


@dataclass(eq=False)
class WeightAdapter(Layer):
    """An adapter whose product is added to the weights of experts, or of one layer, themselves.

    Its factors are in 32 bits, or `follow` the format of the model's weights; the sum is in the
    weight's, and kept as a weight is.

    Source: peft (tuners/lora/layer.py, ParamWrapper)

    Attributes:
        experts: of how many matrices a weight consists.
        rank: columns between, of each.
        shape: each matrix' (outputs, inputs).
    """

    experts: Size
    rank: Size
    shape: tuple[Size, Size]
    follows: bool = False

    def __post_init__(self) -> None:
        dtype = None if self.follows else FLOAT32
        outputs, inputs = self.shape
        self.down = Parameter((self.experts * self.rank, inputs), dtype=dtype)
        self.up = Parameter((outputs, self.experts * self.rank), dtype=dtype)

    def of_experts(self, weight: Weight) -> tuple[Tensor, ...]:
        """The sum for (experts, outputs, inputs), and what is held beside it."""
        t, (outputs, inputs) = weight.tape, self.shape
        up = op.regrouped(t.weight(self.up), self.experts, outputs, self.rank)
        up = op.cast(up, weight.dtype)
        down = op.view(t.weight(self.down), self.experts, self.rank, inputs)
        down = op.cast(down, weight.dtype)
        return op.folded(weight, up, down, UNSCALED), up, down

    def of_one(self, weight: Weight) -> tuple[Tensor, ...]:
        """The sum for (outputs, inputs), and what is held beside it."""
        t = weight.tape
        change = op.scale(op.matmul(t.weight(self.up), t.weight(self.down)))
        change = op.cast(change, weight.dtype)
        return op.add(weight, change), change


@dataclass(eq=False)
class Router(Layer, ABC):
    """Picks experts for each token."""

    hidden: Size
    choice: Choice

    def __post_init__(self) -> None:
        self.weight = Parameter((self.choice.experts, self.hidden))
        self.adapter: WeightAdapter | None = None

    def adapt(self, rank: Size, follows: bool) -> None:
        """Put an adapter of that rank beside the weight."""
        self.adapter = WeightAdapter(ONE, rank, (self.choice.experts, self.hidden), follows)

    def adapted(self, x: Tensor) -> Tensor:
        """The weight as it is, or with what an adapter adds."""
        weight = x.tape.weight(self.weight)
        return weight if self.adapter is None else self.adapter.of_one(weight)[0]

    @abstractmethod
    def __call__(self, x: Tensor) -> Routed:
        """(batch, length, hidden) -> (..., experts), (..., chosen), (..., chosen)."""


@dataclass(eq=False)
class SoftmaxRouter(Router):
    """The largest probabilities, `normed` to one, and `narrow` as the logits or in 32 bits.

    Code with `narrow` shares leaves it to the softmax to widen the logits.
    """

    normed: bool = True
    narrow: bool = False

    def __call__(self, x: Tensor) -> Routed:
        """(batch, length, hidden) -> (..., experts), (..., chosen), (..., chosen)."""
        logits = op.linear(x, self.adapted(x))
        probabilities = op.softmax(logits if self.narrow else op.cast(logits, FLOAT32), FLOAT32)
        shares, places = pick.largest(probabilities, self.choice.chosen)
        if self.normed:
            shares = pick.divide(shares, pick.sum_of_rows(shares))
        return logits, op.cast(shares, logits.dtype) if self.narrow else shares, places


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of experts, and those whose experts a token may meet."""

    groups: Size
    allowed: Size


@dataclass(eq=False)
class SigmoidRouter(Router):
    """Experts by probabilities of their own and a bias, from the best groups; shares are scaled.

    The class asks for 32 bits, which autocast does not grant it.
    """

    groups: Groups
    normed: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.bias = Buffer((self.choice.experts,), FLOAT32)

    def __call__(self, x: Tensor) -> Routed:
        """(batch, length, hidden) -> (..., experts), (..., chosen), (..., chosen)."""
        logits = wide_logits(self, x)
        scores = op.sigmoid(logits)
        with x.tape.setting(recording=False):  # what picks passes no gradient on
            chosen = self.chosen(scores)
        shares = pick.gathered(scores, chosen)
        if self.normed:
            shares = pick.divide(shares, op.shift(pick.sum_of_rows(shares)))
        return logits, op.scale(shares), chosen

    def chosen(self, scores: Tensor) -> Tensor:
        """The best experts of the groups whose two best are best."""
        t = scores.tape
        biased = op.add(scores, t.constant(self.bias.shape, FLOAT32))
        best = t.empty((*scores.shape[:-1], self.groups.groups), FLOAT32)
        groups = pick.largest(best, self.groups.allowed)[1]
        biased = masked(biased, best, groups)
        return pick.largest(biased, self.choice.chosen)[1]


@dataclass(eq=False)
class ScaledRouter(Router):
    """The largest probabilities, of all experts or of those in the best groups, scaled."""

    groups: Groups | None = None

    def __call__(self, x: Tensor) -> Routed:
        """(batch, length, hidden) -> (..., experts), (..., chosen), (..., chosen)."""
        logits = wide_logits(self, x)
        scores = op.softmax(logits, FLOAT32)
        if self.groups is not None:
            best = scores.tape.empty((*scores.shape[:-1], self.groups.groups), FLOAT32)
            groups = scores.tape.empty((*scores.shape[:-1], self.groups.allowed), INT64)
            scores = masked(scores, best, groups)
        shares, chosen = pick.largest(scores, self.choice.chosen)
        return logits, op.scale(shares), chosen


def wide_logits(router: Router, x: Tensor) -> Tensor:
    """The router's product of both factors in 32 bits, unless autocast narrows them again."""
    weight = router.adapted(x)
    return op.linear(op.cast(x, FLOAT32), op.cast(weight, FLOAT32))


def masked(scores: Tensor, best: Tensor, groups: Tensor) -> Tensor:
    """The scores without those outside of some groups; keeps which."""
    t = scores.tape
    kept = t.like(best)
    wide = t.like(scores, best.dtype)  # a mark for each expert
    yes = t.like(scores, BOOL)
    hidden = op.masked_fill(scores, t.like(scores, BOOL))
    del best, groups, kept, wide, yes  # held until here
    return hidden


# peft scales what adapters add by 8 / rank unless it is told otherwise
UNSCALED: Final = derived("unscaled", lambda rank: int(rank == 8), size("lora_rank"))


class Routes(Protocol):
    """Brings each row to its experts."""

    def __call__(self, experts: "Experts", x: Tensor, shares: Tensor, chosen: Tensor) -> Tensor:
        """The experts, rows, shares, and numbers of experts -> outputs."""


def shown(x: Tensor, hidden: Tensor | None) -> Tensor:
    """x without the rows that are hidden, if some may be."""
    return x if hidden is None else op.masked_fill(x, hidden)


def shown_in_place(x: Tensor, hidden: Tensor | None) -> Tensor:
    """The same in x's own bytes."""
    return x if hidden is None else hide_in_place(x, hidden)


@dataclass(eq=False)
class Experts(Layer):
    """W_down (silu(W_gate x) * W_up x) of each token's experts, added up by their shares.

    Attributes:
        hidden: the width of the stream.
        inner: an expert's width.
        choice: how many experts there are, and how many a token meets.
        routes: brings rows to experts that are divided among GPUs, where they are.
    """

    hidden: Size
    inner: Size
    choice: Choice

    routes: ClassVar[tuple[Routes, ...]] = ()  # one, or none
    are_shares = False  # whether each of several GPUs has a share of every expert's width

    def __post_init__(self) -> None:
        self.gate_up = self.weight(2 * self.inner, self.hidden)
        self.down = self.weight(self.hidden, self.inner)
        self.gate_up_adapter: WeightAdapter | None = None
        self.down_adapter: WeightAdapter | None = None

    def adapt(self, rank: Size, follows: bool, gate_up: bool, down: bool) -> None:
        """Put adapters of that rank beside weights; of gate and up together it is twice the rank.

        Source: peft (utils/transformers_weight_conversion.py, _convert_peft_config_moe)
        """
        experts, inner, hidden = self.choice.experts, self.inner, self.hidden
        if gate_up:
            shape = (2 * inner, hidden)
            self.gate_up_adapter = WeightAdapter(experts, 2 * rank, shape, follows)
        if down:
            self.down_adapter = WeightAdapter(experts, rank, (hidden, inner), follows)

    def divide(self, own: Size, routed: Routes) -> None:
        """Leave only so many experts on this GPU; the rows of all tokens come by `routed`."""
        vars(self).update(routes=(routed,), is_apart=True)
        for parameter in parameters_of(self):
            parameter.shape = (own, *parameter.shape[1:])
            parameter.is_split = True

    @property
    def own(self) -> Size:
        """The number of experts on one GPU: as many as the weights have."""
        return self.down.shape[0]

    def weight(self, *shape: Size) -> Parameter:
        """A weight of each expert."""
        return Parameter((self.choice.experts, *shape), chosen=self.choice.chosen)

    def __call__(self, x: Tensor, shares: Tensor, chosen: Tensor) -> Tensor:
        """(batch, length, hidden), two of (batch, length, chosen) -> (batch, length, hidden)."""
        for routed in self.routes:
            if x.tape.sharder is None:
                return routed(self, x, shares, chosen)
            run = partial(routed, self, shares=shares, chosen=chosen)
            return x.tape.sharder.around(parameters_of(self), run, x, reshards=True)
        if self.are_shares:
            given = op.reduced_back(x), op.reduced_back(shares)
            return op.reduced(self.of_rows(*given, chosen))
        return self.of_rows(x, shares, chosen)

    def of_rows(self, x: Tensor, shares: Tensor, chosen: Tensor) -> Tensor:
        """(..., hidden), two of (..., chosen) -> (..., hidden), each row's own experts added up.

        Of experts that are divided among GPUs the code hides rows of others, even where none is.
        """
        t = x.tape
        experts, order = t.like(chosen), t.like(chosen)  # both of a sort
        rows = pick.rows_at(x, t.like(order), *chosen.shape, self.hidden)
        shares = pick.rows_at(shares, order, *shares.shape)
        narrow = t.like(experts, INT32)
        tokens, ends = (t.empty((self.own,), INT32) for _ in range(2))
        hidden = t.like(chosen, BOOL) if self.routes else None
        made, *others = self.computed(rows, experts, ends, hidden)
        out = op.multiply(made, op.view(shares, *shares.shape, ONE))
        back, places = t.like(order), t.like(order)
        del places  # dies here
        out = pick.rows_at(out, back, *out.shape)
        out = op.cast(pick.sum_of_groups(out), x.dtype)
        del experts, order, rows, shares, narrow, tokens, ends, made, others, back, hidden  # held
        return out

    def computed(
        self, rows: Tensor, experts: Tensor, ends: Tensor, hidden: Tensor | None
    ) -> tuple[Tensor, ...]:
        """Each row's output by its expert, and what is held beside it."""
        gate_up = adapted(rows, self.gate_up, self.gate_up_adapter)
        out = pick.grouped_product(shown_in_place(rows, hidden), gate_up[0], ends)
        out = shown(out, hidden)
        out = self.gated(out)
        down = adapted(rows, self.down, self.down_adapter)
        out = pick.grouped_product(out, down[0], ends)
        return shown(out, hidden), *gate_up, *down

    def gated(self, x: Tensor) -> Tensor:
        """silu(gate) * up of both, side by side in one tensor."""
        gate, up = op.split(x, self.inner, self.inner)
        return op.multiply(op.silu(gate), up)


def adapted(x: Tensor, parameter: Parameter, adapter: WeightAdapter | None) -> tuple[Tensor, ...]:
    """A weight of experts, or that with what an adapter adds, and what is held beside it."""
    weight = x.tape.weight(parameter)
    return (weight,) if adapter is None else adapter.of_experts(weight)


@dataclass(eq=False)
class Mixture(Unary):
    """A router, its experts, and a layer that every token passes, or none."""

    router: Router
    experts: Experts
    shared: Unary | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        logits, shares, chosen = self.router(x)
        out = self.experts(x, shares, chosen)
        if self.shared is not None:
            out = op.add(out, self.shared(x))
        del logits, shares, chosen  # held until here
        return out
