"""Products of matrices that GPUs share: where PyTorch puts them, and what it sends.

A DTensor of Newton and Schulz's iteration is whole on every GPU, cut by rows or columns, or a sum
whose terms the GPUs have. For each product PyTorch estimates what its ways cost to bring about,
in microseconds, and takes the cheapest, the first of equal ones. Each operand is brought there
alone, even if it is the same matrix.

Source: torch (distributed/tensor/_collective_utils.py, _sharding_prop.py, placement_types.py,
_ops/_matrix_ops.py)
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf
from typing import Final, NamedTuple

from calculator.allocator import round_block
from calculator.autograd.ledger import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER

# PyTorch's estimate: microseconds of a call and of each hop, GiB/s; in a machine, and between them
CALL: Final = 6.6
HOP: Final = 0.6, 2.7
BANDWIDTH: Final = 87.7, 0.22 * 87.7
EXTRA: Final = 1.0  # of another cut
MACHINE: Final = 8  # GPUs
NARROW: Final = 2  # bytes of a number of the iteration
STEPS: Final = 5


class At(Enum):
    """The places of a matrix's numbers."""

    WHOLE = "on every GPU"
    ROWS = "cut by rows"
    COLUMNS = "cut by columns"
    SUM = "terms of a sum"


CUT: Final = (At.ROWS, At.COLUMNS)
TURNED: Final = {At.ROWS: At.COLUMNS, At.COLUMNS: At.ROWS}


class Way(NamedTuple):
    """The places of a product and its two factors; what is added to it is in its place."""

    product: At
    left: At
    right: At


WAYS: Final = (
    Way(At.WHOLE, At.WHOLE, At.WHOLE),
    Way(At.SUM, At.COLUMNS, At.ROWS),
    Way(At.ROWS, At.ROWS, At.WHOLE),
    Way(At.COLUMNS, At.WHOLE, At.COLUMNS),
    Way(At.SUM, At.SUM, At.WHOLE),
    Way(At.SUM, At.WHOLE, At.SUM),
)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix that some GPUs have together; a `turned` one is a view with its sides swapped."""

    rows: int
    columns: int
    at: At
    gpus: int
    turned: bool = False

    @property
    def turn(self) -> "Matrix":
        """The view with its sides swapped."""
        at = TURNED.get(self.at, self.at)
        return Matrix(self.columns, self.rows, at, self.gpus, not self.turned)

    @property
    def bytes(self) -> int:
        """Bytes of the whole matrix."""
        return self.rows * self.columns * NARROW

    @property
    def padded(self) -> int:
        """Bytes of the whole matrix whose parts have the size of the first."""
        return self.gpus * self.part if self.at in CUT else self.bytes

    @property
    def part(self) -> int:
        """Bytes that the first GPU has."""
        match self.at:
            case At.ROWS:
                return -(-self.rows // self.gpus) * self.columns * NARROW
            case At.COLUMNS:
                return -(-self.columns // self.gpus) * self.rows * NARROW
            case _:
                return self.bytes

    def can_be(self, at: At) -> bool:
        """True if each GPU gets something."""
        side = {At.ROWS: self.rows, At.COLUMNS: self.columns}.get(at, self.gpus)
        return side >= self.gpus

    def cost(self, at: At) -> float:
        """Microseconds that PyTorch expects of bringing it there."""
        if self.at in (at, At.WHOLE):
            return 0.0
        if self.at is At.SUM:
            return self._time(2 if at is At.WHOLE else 1, self.bytes)
        if at is At.SUM:
            return inf
        if at is At.WHOLE:
            return self._time(1, self.bytes)
        return self._time(1, self.bytes / self.gpus) + EXTRA

    def _time(self, rounds: int, size: float) -> float:
        apart = self.gpus > MACHINE
        hops = rounds * (self.gpus - 1)
        return CALL + hops * HOP[apart] + size / 2**30 * hops / self.gpus / BANDWIDTH[apart] * 1e6


@dataclass
class Update:
    """The update of one matrix: what names hold, the most that was there, and what was sent."""

    held: dict[str, int] = field(default_factory=dict)
    beside: int = 0  # what a running operation has brought to where it needs it
    most: int = 0
    sent: list[tuple[str, int]] = field(default_factory=list)

    def make(self, *sizes: int) -> None:
        """Tensors that are there at once, beside all that is held."""
        made = sum(map(round_block, sizes))
        self.most = max(self.most, sum(self.held.values()) + self.beside + made)

    def multiply(
        self, name: str, left: Matrix, right: Matrix, added: Matrix | None = None
    ) -> Matrix:
        """A product, perhaps added to another matrix, which the name holds from then on."""
        way = min(
            (way for way in WAYS if self._can(way, left, right, added)),
            key=lambda way: self._cost(way, left, right, added),
        )
        if added is not None:
            self.bring(added, way.product)
        self.bring(left, way.left)
        self.bring(right, way.right)
        made = Matrix(left.rows, right.columns, way.product, left.gpus)
        self.make(made.part)
        self.beside = 0
        self.held[name] = round_block(made.part)
        return made

    @staticmethod
    def _can(way: Way, left: Matrix, right: Matrix, added: Matrix | None) -> bool:
        """True for a way that is cut only if an operand is, and that gives each GPU a part."""
        operands = [left, right, *([added] if added else [])]
        cuts = any(at in CUT for at in way) and not any(each.at in CUT for each in operands)
        fits = left.can_be(way.left) and right.can_be(way.right)
        return not cuts and fits and (added is None or added.can_be(way.product))

    @staticmethod
    def _cost(way: Way, left: Matrix, right: Matrix, added: Matrix | None) -> float:
        beside = 0.0 if added is None else added.cost(way.product)
        return beside + left.cost(way.left) + right.cost(way.right)

    def bring(self, matrix: Matrix, at: At) -> None:
        """Bring an operand to where an operation needs it; it is there until the operation ends."""
        if matrix.at is at:
            return
        target = replace(matrix, at=at)
        if matrix.at is At.WHOLE:
            self._keep(target.part if at in CUT else matrix.bytes)
        elif matrix.at is At.SUM and at is At.WHOLE:
            self.sent.append((ALL_REDUCE, matrix.bytes))
            self._keep(matrix.bytes)
        elif matrix.at is At.SUM:
            self._scatter(target)
        elif at is At.WHOLE:
            self._gather(matrix)
        else:
            self._cut_again(matrix, target)

    def _keep(self, size: int) -> None:
        self.make(size)
        self.beside += round_block(size)

    def _gather(self, matrix: Matrix) -> None:
        """All parts one after another; those of columns are joined in a copy."""
        whole = matrix.padded
        copied = matrix.part if matrix.turned else 0
        self.make(copied)
        self.make(copied, whole)
        if matrix.at is At.COLUMNS:
            self.make(copied, whole, whole)
            if whole != matrix.bytes:
                self.make(copied, whole, matrix.bytes)
                whole = matrix.bytes
        self.sent.append((ALL_GATHER, matrix.padded))
        self.beside += round_block(whole)

    def _scatter(self, target: Matrix) -> None:
        """Sum up each GPU's part; what is no rows, or uneven, is put in order first."""
        whole = target.padded
        copied = whole if target.at is At.COLUMNS or whole != target.bytes else 0
        self.make(copied, target.part)
        self.sent.append((REDUCE_SCATTER, whole))
        self.beside += round_block(target.part)

    def _cut_again(self, matrix: Matrix, target: Matrix) -> None:
        moved = -(-matrix.rows // matrix.gpus) * -(-matrix.columns // matrix.gpus) * matrix.gpus
        size = moved * NARROW
        side = matrix.rows if target.at is At.ROWS else matrix.columns
        copied = size if matrix.turned or side % matrix.gpus else 0  # padded, or put in order
        self.make(copied, size, size)
        self.sent.append((ALL_TO_ALL, size))
        self.beside += round_block(size)


def updated(rows: int, columns: int, at: At, gpus: int, number: int) -> Update:
    """PyTorch's update of a matrix of momentum and gradient with `number` bytes an element."""
    found = Update()
    matrix = Matrix(rows, columns, at, gpus)
    elements = matrix.part // NARROW
    found.make(elements * number)
    found.held["mix"] = round_block(elements * number)
    if number != NARROW:
        found.make(matrix.part)
        found.held["matrix"] = round_block(matrix.part)
    found.sent.append((ALL_REDUCE, NARROW))  # the norm
    turned = rows > columns
    matrix = matrix.turn if turned else matrix
    for _ in range(STEPS):
        gram = found.multiply("gram", matrix, matrix.turn)
        update = found.multiply("update", gram, gram, gram)
        matrix = found.multiply("matrix", update, matrix, matrix)
    found.held = {"matrix": found.held["matrix"]}
    found.bring(matrix.turn if turned else matrix, at)
    return found
