import asyncio
import socket
from collections.abc import Iterator

import pytest

from tests.training.doctor.conftest import MakeSetup, expect
from training.doctor import line
from training.doctor.findings import Finding, PointName, Verdict
from training.doctor.line import is_local
from training.doctor.setup import Setup
from training.network.connection import alone_in
from training.network.reachability import Outcome

NOBODY = "/ip4/127.0.0.1/tcp/9/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"


def look(setup: Setup, point: PointName) -> list[Finding]:
    """The findings of a visit about one point."""
    return [finding for finding in line.visit(setup, []) if finding.point is point]


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield int(other.getsockname()[1])


def test_a_taken_port_is_a_problem_unless_the_volunteer_may_have_it(
    make_setup: MakeSetup, taken_port: int
) -> None:
    setup, cause = make_setup(port=taken_port), f"port {taken_port} is taken on this machine"
    expect(look(setup, PointName.PORT), Verdict.PROBLEM, cause, fix="--port")
    with alone_in(setup.folder):
        expect(look(setup, PointName.PORT), Verdict.WARNING, "probably by the volunteer")


@pytest.mark.parametrize("fields", [{"port": 99_999}, {"host": "192.0.2.1"}])
def test_an_unusable_place_is_a_problem(make_setup: MakeSetup, fields: dict[str, object]) -> None:
    found = look(make_setup(**fields), PointName.PORT)
    expect(found, Verdict.PROBLEM, "cannot listen on ")


def test_a_run_without_entry_points_would_begin_alone(make_setup: MakeSetup) -> None:
    expect(look(make_setup(), PointName.ENTRY_POINTS), Verdict.WARNING, "alone")


def test_behind_a_firewall_neither_port_nor_reachability_is_needed(make_setup: MakeSetup) -> None:
    for point in (PointName.PORT, PointName.REACHABILITY):
        expect(look(make_setup(reachable=False), point), Verdict.FINE)


@pytest.mark.swarm
def test_an_entry_point_that_is_down_may_come_back(make_setup: MakeSetup) -> None:
    findings = list(line.visit(make_setup(run={"initial_peers": (NOBODY,)}), []))
    (reachability,) = (one for one in findings if one.point is PointName.REACHABILITY)
    assert reachability.verdict is Verdict.WARNING
    entry_points = [one for one in findings if one.point is PointName.ENTRY_POINTS]
    cause, fix = "nothing listens on that port", "only within one machine or network"
    expect(entry_points, Verdict.PROBLEM, cause, fix, passes=True)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("/ip4/127.0.0.1/tcp/1/p2p/Qm", True),
        ("/ip4/192.168.1.5/tcp/1/p2p/Qm", True),
        ("192.168.1.5", True),
        ("/ip4/8.8.8.8/tcp/1/p2p/Qm", False),
        ("/dns4/example.org/tcp/1/p2p/Qm", False),
        ("/p2p/Qm", False),
    ],
)
def test_addresses_of_one_network_are_known(address: str, local: bool) -> None:
    assert is_local(address) is local


@pytest.mark.parametrize(
    ("outcome", "verdict", "passes"),
    [
        (Outcome.REACHED, Verdict.FINE, False),
        (Outcome.REFUSED, Verdict.WARNING, False),
        (Outcome.NO_ANSWER, Verdict.WARNING, False),
        (Outcome.SOMEBODY_ELSE, Verdict.WARNING, False),
        (Outcome.BUSY, Verdict.WARNING, True),
        (Outcome.NO_ADDRESS, Verdict.WARNING, True),
        ("never heard of", Verdict.WARNING, True),
    ],
)
def test_only_what_was_tried_and_failed_counts_as_unreachable(
    make_setup: MakeSetup, outcome: str, verdict: Verdict, passes: bool
) -> None:
    answer = {"outcome": str(outcome), "seen_as": "8.8.8.8"}
    finding = line._judge_reachability(make_setup(), 31337, answer)
    assert (finding.verdict, finding.passes) == (verdict, passes)


def test_the_listener_says_its_word_to_whoever_calls(make_setup: MakeSetup) -> None:
    async def call() -> tuple[str, bytes]:
        async with line._listen(make_setup()) as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            heard = await reader.read()
            writer.close()
            return listener.word, heard

    word, heard = asyncio.run(call())
    assert heard.decode() == word
