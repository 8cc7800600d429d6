"""Costs of an exchange among volunteers: bytes, seconds, and the fraction of time computing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from calculator.errors import InputError
from calculator.planner.checks import check_count, check_not_negative, check_positive

# TCP begins with 10 segments of 1,460 bytes (RFC 6928) and doubles them every round trip
INITIAL_WINDOW_BYTES: Final = 14_600
BITS_PER_SECOND_MOST: Final = 1e12
SECONDS_PER_DAY: Final = 86_400


class Way(StrEnum):
    """Ways to send messages to the others."""

    ALL_REDUCE = "all-reduce"  # each averages a part and sends it back, as hivemind does
    ALL_GATHER = "all-gather"  # each sends its message to every other
    STORE = "store"  # each uploads its message once, and downloads those of the others
    ROUND = "round"  # as a store whose downloads begin when everybody has uploaded


@dataclass(frozen=True, slots=True)
class Connection:
    """A volunteer's connection to the Internet.

    Attributes:
        up: upload rate in bit/s.
        down: download rate in bit/s.
        round_trip: seconds to another volunteer and back.
    """

    up: float
    down: float
    round_trip: float = 0.1

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            InputError: for rates that are not above 0, or a negative time.
        """
        check_positive(up=self.up, down=self.down)
        check_not_negative(round_trip=self.round_trip)
        for field, rate in (("up", self.up), ("down", self.down)):
            if rate > BITS_PER_SECOND_MOST:
                raise InputError(field, rate, "must be in bit/s, at most 10^12")


def sparse_bits(kept: int, block: int, value_bits: int) -> float:
    r"""Bits per parameter of an exchange that keeps the largest elements of each block.

    $$\frac{k}{b} \left(v + \lceil \log_2 b \rceil\right)$$

    with k of b elements kept, v bits per value, and a place within the block for each; the scales
    of the blocks are extra.

    >>> sparse_bits(64, 4096, 2)  # Covenant-72B: 32 bits are 146 times as many
    0.21875

    Source: covenant (section 2); sparseloco

    Raises:
        InputError: for counts below 1, or more kept than there are.
    """
    check_count(kept=kept, block=block, value_bits=value_bits)
    if kept > block:
        raise InputError("kept", kept, f"must be at most the block's {block} elements")
    return kept / block * (value_bits + math.ceil(math.log2(block)))


def low_rank_elements(shapes: Iterable[tuple[int, ...]], rank: int) -> int:
    r"""Elements that PowerSGD sends for tensors of the given shapes.

    $$\sum \min\left(m n, \; r (m + n)\right)$$

    with m x n the matrix that a tensor is seen as, m its first dimension, and r the rank; vectors
    go whole.

    Source: powersgd (section 3)

    Raises:
        InputError: if the rank is below 1.
    """
    check_count(rank=rank)
    total = 0
    for shape in shapes:
        elements = math.prod(shape)
        if len(shape) < 2:
            total += elements
        else:
            first = shape[0]
            total += min(elements, rank * (first + elements // max(first, 1)))
    return total


def ramp_seconds(bits_per_second: float, round_trip: float) -> float:
    r"""Seconds that a connection loses while TCP works up to its rate.

    $$t \, \log_2 \frac{r \, t}{8 \, w}$$

    with t the round trip in seconds, r the rate in bit/s and w = 14,600 bytes, what TCP first sends
    without an answer; 0 where a round trip holds less than that.

    Source: rfc6928

    Raises:
        InputError: if the rate is not above 0 or the time is negative.
    """
    check_positive(bits_per_second=bits_per_second)
    check_not_negative(round_trip=round_trip)
    in_flight = bits_per_second * round_trip / 8
    if in_flight <= INITIAL_WINDOW_BYTES:
        return 0.0
    return round_trip * math.log2(in_flight / INITIAL_WINDOW_BYTES)


def shares(connections: Sequence[Connection]) -> list[float]:
    r"""The fraction of the message that each volunteer averages, so that all finish soonest.

    $$\min_w \max_i \frac{1 + (n - 2) w_i}{b_i}$$

    with n volunteers, b the slower of each one's two rates, and w the shares, which sum to 1: one
    that averages the share w sends and receives 1 - w for the parts of others, and (n - 1) w for
    its own.

    Source: hivemind (averaging/load_balancing.py)

    Raises:
        InputError: if there is no volunteer.
    """
    count = len(connections)
    if not count:
        raise InputError("connections", "", "must name at least one volunteer")
    if count <= 2:
        return [1 / count] * count
    rates = [min(one.up, one.down) for one in connections]
    # Those with the best rates average; a slower one joins them where that ends sooner.
    best = sorted(rates, reverse=True)
    longest, total = math.inf, 0.0
    for active in range(1, count + 1):
        total += best[active - 1]
        candidate = (count - 2 + active) / total
        if candidate * best[active - 1] >= 1:
            longest = candidate
    return [max(0.0, longest * rate - 1) / (count - 2) for rate in rates]


@dataclass(frozen=True, slots=True)
class Load:
    """Bytes that one volunteer sends and receives in an exchange."""

    sent: float
    received: float


def loads(message_bytes: float, connections: Sequence[Connection], way: Way) -> list[Load]:
    """Bytes that each volunteer sends and receives in one exchange.

    Args:
        message_bytes: one volunteer's message, before it is split.
        connections: one for each volunteer.
        way: how the messages reach the others.

    Raises:
        InputError: if the size is negative or there is no volunteer.
    """
    check_not_negative(message_bytes=message_bytes)
    count = len(connections)
    if not count:
        raise InputError("connections", "", "must name at least one volunteer")
    if count == 1:
        return [Load(0.0, 0.0)]
    match way:
        case Way.ALL_REDUCE:
            parts = shares(connections)
            moved = [message_bytes * (1 + (count - 2) * share) for share in parts]
            return [Load(size, size) for size in moved]
        case Way.ALL_GATHER:
            others = message_bytes * (count - 1)
            return [Load(others, others)] * count
        case Way.STORE | Way.ROUND:
            return [Load(message_bytes, message_bytes * (count - 1))] * count
    assert_never(way)


def exchange_seconds(message_bytes: float, connections: Sequence[Connection], way: Way) -> float:
    """Seconds of one exchange: the slowest volunteer's transfer, and TCP's start.

    Volunteers send and receive at the same time; in a round, one after the other. A real exchange
    takes longer, because it also has to find a group, compress, average, and packets are lost.
    `benchmarks/slow-links.json` and `benchmarks/sparse-links.json` have measured ones.

    Raises:
        InputError: if the size is negative or there is no volunteer.
    """
    pairs = list(zip(loads(message_bytes, connections, way), connections, strict=True))
    up = max(transfer_seconds(load.sent, one.up, one.round_trip) for load, one in pairs)
    down = max(transfer_seconds(load.received, one.down, one.round_trip) for load, one in pairs)
    return up + down if way is Way.ROUND else max(up, down)


def transfer_seconds(size: float, bits_per_second: float, round_trip: float) -> float:
    r"""Seconds to send so many bytes one way: those at the full rate, and TCP's start.

    $$\frac{8 m}{r} + t \, \log_2 \frac{r \, t}{8 \, w}$$

    with m the bytes, and r, t and w as in `ramp_seconds`. A small message ends before TCP has come
    up to a high rate: beyond r = 8 m ln 2 / t, where the sum is least, more adds nothing.

    Source: rfc6928

    Raises:
        InputError: if the rate is not above 0, or the size or the time is negative.
    """
    check_not_negative(size=size, round_trip=round_trip)
    check_positive(bits_per_second=bits_per_second)
    if not size:
        return 0.0
    reached = bits_per_second
    if round_trip:
        useful = 8 * max(size * math.log(2), INITIAL_WINDOW_BYTES) / round_trip
        reached = min(bits_per_second, useful)
    return 8 * size / reached + ramp_seconds(reached, round_trip)


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The alternation between computing and exchanging in a run.

    Attributes:
        computing_seconds: seconds that volunteers compute between two exchanges.
        exchange_seconds: seconds of an exchange.
        overlap: they compute on while they exchange.
    """

    computing_seconds: float
    exchange_seconds: float
    overlap: bool = False

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            InputError: for no time of computing, or a negative time.
        """
        check_positive(computing_seconds=self.computing_seconds)
        check_not_negative(exchange_seconds=self.exchange_seconds)

    @property
    def round_seconds(self) -> float:
        """Seconds from one exchange to the next."""
        if self.overlap:
            return max(self.computing_seconds, self.exchange_seconds)
        return self.computing_seconds + self.exchange_seconds

    @property
    def computing_share(self) -> float:
        """Share of the time in which volunteers compute."""
        return self.computing_seconds / self.round_seconds

    @property
    def exchanges_per_day(self) -> float:
        """Exchanges in 24 hours."""
        return SECONDS_PER_DAY / self.round_seconds
