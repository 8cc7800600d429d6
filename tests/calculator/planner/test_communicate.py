import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator.planner.communicate import (
    Connection,
    Way,
    exchange_seconds,
    loads,
    low_rank_elements,
    ramp_seconds,
    shares,
    sparse_bits,
    transfer_seconds,
)

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
ROWS, ROUNDS = (
    json.loads((BENCHMARKS / f"{kind}-links.json").read_text("utf-8"))["rows"]
    for kind in ("slow", "sparse")
)
MBIT = 1e6

rates = st.floats(1, 1000).map(lambda rate: rate * MBIT)
# bytes: none, or at least one, whose seconds are far from the smallest floats
sizes = st.just(0.0) | st.floats(1, 1e11)
connections = st.lists(st.builds(Connection, rates, rates), min_size=1, max_size=12)
ways = st.sampled_from(Way)


def without_loss(measured: str) -> list[dict[str, float]]:
    """Rows of a kind whose connections lost nothing and whose volunteers all averaged."""
    return [
        row
        for row in ROWS
        if row["measured"] == measured
        and row["loss_percent"] == 0
        and row.get("peers") == row.get("reachable")
    ]


@pytest.mark.parametrize("row", without_loss("line"), ids=str)
def test_a_measured_transfer_takes_as_long_as_the_formula_says(row: dict[str, float]) -> None:
    rate = row["mbit_per_second"] * MBIT
    predicted = 8 * row["bytes_sent"] / rate + ramp_seconds(rate, row["round_trip_ms"] / 1000)
    assert predicted == pytest.approx(row["seconds"], rel=0.03)


def connections_of(row: dict[str, float]) -> list[Connection]:
    rate = row["mbit_per_second"] * MBIT
    return [Connection(rate, rate, row["round_trip_ms"] / 1000)] * int(row["peers"])


@pytest.mark.parametrize("row", without_loss("exchange"), ids=str)
def test_a_measured_exchange_moves_the_bytes_of_the_formula_and_was_not_faster_than_its_connections(
    row: dict[str, float],
) -> None:
    # `expected_bytes` is one volunteer's message; headers and uneven parts come on top
    asked = row["expected_bytes"], connections_of(row), Way.ALL_REDUCE
    for load in loads(*asked):
        assert load.sent == pytest.approx(row["bytes_sent"], rel=0.03)
    assert exchange_seconds(*asked) < row["seconds"]


@pytest.mark.parametrize("row", ROUNDS, ids=str)
def test_the_files_of_a_measured_round_take_little_longer_than_planned(row: Any) -> None:
    planned = exchange_seconds(row["payload_bytes"], connections_of(row), Way.ROUND)
    # a round trip for each request, new connections and repeated packets take the rest
    assert planned < row["parts"]["handing_in"] + row["parts"]["downloading"] < 1.7 * planned


def test_a_round_sends_what_the_sparse_bits_say_and_the_scales() -> None:
    # two magnitudes of 16 bits for each block of 4,096 come on top
    bits = 8 * ROUNDS[0]["payload_bytes"] / ROUNDS[0]["parameters"]
    assert bits == pytest.approx(sparse_bits(64, 4096, 2) + 32 / 4096, rel=0.01)
    assert bits < 0.25  # the goal
    assert ROUNDS[0]["payload_bytes"] < 4e6


def test_a_rank_of_a_matrix_sends_its_two_sides() -> None:
    # Vogels et al., 2019, algorithm 1: P is m x r, Q is n x r; vectors are not compressed
    assert low_rank_elements([(1024, 4096), (4096,)], 4) == 4 * (1024 + 4096) + 4096
    assert low_rank_elements([(8, 8)], 100) == 64  # never more than the matrix itself


@settings(deadline=None, max_examples=15)
@given(st.lists(rates, min_size=3, max_size=10))
def test_nobody_ends_later_than_by_hivemind_s_own_shares(group: list[float]) -> None:
    numpy = pytest.importorskip("numpy")
    balance = pytest.importorskip("hivemind.averaging.load_balancing")
    with warnings.catch_warnings():
        # hivemind asks SciPy for a deprecated solver, which warns of what it meets on its way
        warnings.simplefilter("ignore")
        theirs = balance.optimize_parts_lp(10**6, numpy.array(group) / MBIT, 0)

    def longest(parts: list[float]) -> float:
        pairs = zip(parts, group, strict=True)
        return max((1 + (len(group) - 2) * part) / rate for part, rate in pairs)

    ours = longest(shares([Connection(rate, rate) for rate in group]))
    total = sum(theirs)
    # theirs are solved in floats and rounded to whole elements
    assert ours <= longest([part / total for part in theirs]) * (1 + 1e-3)


@given(connections, st.floats(1, 1e10), ways, st.floats(1, 100), st.data())
def test_more_bandwidth_is_never_slower(
    group: list[Connection], size: float, way: Way, factor: float, data: st.DataObject
) -> None:
    # without TCP's start, which the shares of unlike volunteers leave out
    at_once = [Connection(one.up, one.down, 0.0) for one in group]
    before = exchange_seconds(size, at_once, way)
    who = data.draw(st.integers(0, len(group) - 1))
    at_once[who] = Connection(group[who].up * factor, group[who].down * factor, 0.0)
    assert exchange_seconds(size, at_once, way) <= before * (1 + 1e-9)


@given(sizes, rates, st.floats(0, 1), st.floats(1, 100))
def test_a_faster_connection_never_sends_a_message_later(
    size: float, rate: float, round_trip: float, factor: float
) -> None:
    before = transfer_seconds(size, rate, round_trip)
    after = transfer_seconds(size, rate * factor, round_trip)
    assert after <= before * (1 + 1e-9)
    assert after >= 8 * size / (rate * factor) * (1 - 1e-9)  # no rate is exceeded


@given(connections, sizes, ways)
def test_what_is_sent_is_received(group: list[Connection], size: float, way: Way) -> None:
    moved = loads(size, group, way)
    if way not in (Way.STORE, Way.ROUND):  # a store hands one upload to many
        sent, received = sum(load.sent for load in moved), sum(load.received for load in moved)
        assert sent == pytest.approx(received)
