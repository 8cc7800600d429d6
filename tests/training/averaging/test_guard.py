"""Real averagers on loopback: what a group does with a peer that breaks the rules."""

import asyncio
import multiprocessing
import secrets
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch
from hivemind.averaging.allreduce import AveragingMode
from hivemind.averaging.control import StepControl
from hivemind.averaging.group_info import GroupInfo
from hivemind.optim.grad_averager import GradientAverager
from hivemind.p2p import P2P, PeerID
from hivemind.proto import averaging_pb2

from calculator.swarm.aggregation import Aggregation
from training.access.membership import Membership
from training.authority.keys import sign_own
from training.averaging.guard import GuardedAverager, GuardedGradientAverager
from training.averaging.reduction import Round
from training.network.connection import Endpoint, Identity, Network
from training.records import directory
from training.records.directory import Directory
from training.records.owners import BanList, contributor_id

# hivemind runs in this process and in forks of it, and its own warnings are not ours to fix
pytestmark = [pytest.mark.swarm, pytest.mark.filterwarnings("ignore")]

SIZE, SAMPLES = 600, 16
# a process with many threads may fork while one of them holds a lock that its child needs
FORKS, STARTS_WITHIN = 3, 60.0
PATIENCE = 60.0  # seconds, for a busy machine
LOCAL = Endpoint("127.0.0.1")
TRUTH = torch.linspace(-1, 1, SIZE)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Network]]:
    """Four peers that know each other."""
    folder = tmp_path_factory.mktemp("guard")
    with ExitStack() as stack:
        opened: list[Network] = []
        for index in range(4):
            identity = Identity.read(folder / str(index))
            entry = opened[0].addresses() if opened else ()
            opened.append(Network("guard", identity, entry, LOCAL, may_be_alone=not opened))
            stack.callback(opened[-1].close)
        yield opened


class Meeting:
    """The group of an exchange, given instead of looked for: on a busy machine one may be missed.

    Everybody waits until all are there, since a part that comes before its group is refused.
    """

    def __init__(self, networks: list[Network]) -> None:
        self.id, self.peers = secrets.token_bytes(20), tuple(n.dht.peer_id for n in networks)
        self.barrier = multiprocessing.Barrier(len(networks), timeout=PATIENCE)

    async def look_for_group(self, step: StepControl) -> GroupInfo:
        await asyncio.get_running_loop().run_in_executor(None, self.barrier.wait)
        return GroupInfo(self.id, self.peers, (step.data_for_gather,) * len(self.peers))


class Unguarded(GradientAverager):
    """The library's own, which checks nothing that it sends, in a group that is given."""

    meeting: Meeting | None = None

    async def _step(self, **options: Any) -> None:
        if self.meeting:
            self._matchmaking.look_for_group = self.meeting.look_for_group
        await super()._step(**options)


class Guarded(GuardedGradientAverager, Unguarded):
    """Ours, in a group that is given or looked for."""


@contextmanager
def averaging(
    network: Network,
    gradient: torch.Tensor,
    meeting: Meeting | None = None,
    kind: type[Unguarded] = Guarded,
    *,
    prefix: str,
    matchmaking: float = 8.0,
    patience: float = 10.0,
    **options: Any,
) -> Iterator[Unguarded]:
    """An averager that is open while the block runs."""
    parameter = torch.nn.Parameter(torch.zeros(SIZE))
    parameter.grad = gradient
    guard = {"largest_weight": 64.0, "unpaced_weight": 64.0} if kind is Guarded else {}
    # a group of its own for each exchange, under the keys that the run has
    bits = f"{zlib.crc32(prefix.encode()) % 2**12:012b}"
    kind._get_handle_name = GuardedGradientAverager._get_handle_name  # type: ignore[method-assign]
    for _ in range(FORKS):
        averager = kind(
            [parameter],
            dht=network.dht,
            prefix="guard_grad_averager",
            initial_group_bits=bits,
            min_matchmaking_time=matchmaking,
            request_timeout=2.0,
            next_chunk_timeout=patience,
            part_size_bytes=SIZE,  # four parts: each peer averages one
            start=False,
            **guard,
            **options,
        )
        averager.meeting = meeting
        try:
            averager.run_in_background(await_ready=True, timeout=STARTS_WITHIN)
            break
        except TimeoutError:  # forked while another thread held a lock
            averager.kill()
    else:
        pytest.fail(f"No averager started in {FORKS} times {STARTS_WITHIN:.0f} s.")
    averager.accumulate_grads_(SAMPLES)
    try:
        yield averager
    finally:
        averager.shutdown()


def average(
    networks: list[Network], prefix: str, sent: list[tuple[torch.Tensor, float, bool]], **guard: Any
) -> list[tuple[torch.Tensor, Round]]:
    """Results of an exchange at those who keep to the rules, and their observations.

    Args:
        sent: by each peer: its gradient, its weight, and whether it keeps to the rules.
    """
    meeting = Meeting(networks)
    with ExitStack() as stack:
        averagers = []
        for network, (gradient, _, keeps) in zip(networks, sent, strict=True):
            options = guard if keeps else {"kind": Unguarded}
            averager = averaging(network, gradient, meeting, prefix=prefix, **options)
            averagers.append(stack.enter_context(averager))
        rounds = [
            averager.step(wait=False, timeout=PATIENCE, weight=weight)
            for averager, (_, weight, _) in zip(averagers, sent, strict=True)
        ]
        found = []
        for averager, exchange, (_, _, keeps) in zip(averagers, rounds, sent, strict=True):
            if keeps:
                assert len(exchange.result(PATIENCE)) == 4
                tensor = averager._averaged_tensors[0].clone()
                found.append((tensor, averager.take_rounds()[-1]))
        return found


def test_bad_values_and_weights_are_refused_or_cut_and_the_others_go_on(
    networks: list[Network],
) -> None:
    bad = TRUTH.clone()
    bad[5::50] = torch.nan  # in every part
    sent = [
        (bad, SAMPLES, False),
        (1000 * TRUTH, 1e9, False),
        (TRUTH + 2.0, 600.0, True),  # beyond its pace: cut to 64
        (TRUTH.clone(), SAMPLES, True),
    ]
    not_finite, heavy, fast, usual = (str(network.dht.peer_id) for network in networks)
    refused = {not_finite: "values that are not finite", heavy: "a weight of 1e+09"}
    expected = TRUTH + 2.0 * 64 / (64 + SAMPLES)
    for (result, seen), own in zip(average(networks, "bad", sent), (fast, usual), strict=True):
        assert seen.refused == refused
        others = {not_finite: None, heavy: None, fast: 64.0, usual: SAMPLES}
        assert seen.weights == {name: others[name] for name in others.keys() - {own}}
        # two quarters were for the bad peers to average: there, everybody keeps its own
        assert result.isfinite().all()
        assert (result - expected).abs().lt(1e-5).sum() >= 2 * SIZE // 4


def test_centered_clip_bounds_values_times_1000(networks: list[Network]) -> None:
    sent = [(1000 * TRUTH, SAMPLES, False)]
    sent += [(TRUTH + apart, SAMPLES, True) for apart in (0.0, 0.1, -0.1)]
    for result, _ in average(networks, "clip", sent, rule=Aggregation.CENTERED_CLIP):
        assert (result - TRUTH).abs().lt(0.2).sum() >= 3 * SIZE // 4


@pytest.mark.parametrize(("present", "meets"), [(2, True), (3, False)])
def test_two_of_three_are_no_group_where_the_honest_must_be_more(
    networks: list[Network], present: int, meets: bool
) -> None:
    """A chaotic rehearsal was lost in such groups: one honest peer and the liar made steps."""
    rule = Aggregation.CENTERED_CLIP
    seconds = PATIENCE if meets else 5.0  # an exchange may take long on a busy machine
    options: dict[str, Any] = {"prefix": f"of {present}", "rule": rule, "patience": seconds}
    options["matchmaking"] = 8.0 if meets else 3.0
    with ExitStack() as stack:
        averagers = [
            stack.enter_context(averaging(one, TRUTH.clone(), **options)) for one in networks[:2]
        ]
        for averager in averagers:
            averager.expected_peers = present
        rounds = [averager.step(wait=False, timeout=seconds) for averager in averagers]
        results = [exchange.exception(PATIENCE) is None for exchange in rounds]
    assert results == [meets, meets]


def test_a_round_of_many_tensors_announces_the_new_state_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = MagicMock(modes=[AveragingMode.NODE])
    runner.__aiter__.return_value = [torch.ones(2)] * 5
    monkeypatch.setattr("training.averaging.guard.GuardedRunner", lambda **_: runner)
    averager = MagicMock(least_peers=1, peer_id="own", _averaging_alpha=1.0)
    tensors, group = torch.zeros(5, 2), GroupInfo(b"", ("own",), ())
    asyncio.run(GuardedAverager._run_allreduce_inplace_(averager, tensors, group))
    assert tensors.eq(1.0).all()
    averager._state_updated.set.assert_called_once_with()


def admit(network: Network, folder: Path) -> Membership:
    """Give a peer a grant of the authority in the folder above."""
    key = network.key.get_public_key().to_bytes().decode()
    membership = Membership(folder, network.run, key)
    membership.write(sign_own(folder.parent, network.run, key))
    return membership


async def download(p2p: P2P, peer: PeerID) -> int:
    """Count the messages of a state that a peer sends."""
    stub = GuardedGradientAverager.get_stub(p2p, peer, namespace="guard_grad_averager")
    stream = await stub.rpc_download_state(averaging_pb2.DownloadRequest())
    return len([message async for message in stream])


async def call_as_outsider(_dht: Any, node: Any, peer: PeerID) -> tuple[int, set[int]]:
    """Call as one that libp2p connects, but that nobody admitted; what is answered."""
    state = await download(node.p2p, peer)
    stub = GuardedGradientAverager.get_stub(node.p2p, peer, namespace="guard_grad_averager")
    joining = await stub.rpc_join_group(averaging_pb2.JoinRequest(schema_hash=b"x"))

    async def parts() -> Any:
        yield averaging_pb2.AveragingData(group_id=b"x")

    codes = {answer.code async for answer in joining}
    with suppress(ConnectionError):  # it may hang up before it has answered, or read our part
        sending = await stub.rpc_aggregate_part(parts())
        codes |= {answer.code async for answer in sending}
    return state, codes


async def download_as_member(_dht: Any, node: Any, peer: PeerID) -> int:
    """Download through a member's own daemon, in the process of its DHT."""
    return await download(node.p2p, peer)


def test_an_outsider_gets_no_state_group_or_say(networks: list[Network], tmp_path: Path) -> None:
    member, other, outsider = networks[:3]
    ours = admit(member, tmp_path / "ours")
    theirs = admit(other, tmp_path / "theirs")
    for network, membership in ((member, ours), (other, theirs)):
        directory.announce(network.dht, network.subkey, membership.current().grant)
    bans = BanList(tmp_path)
    admission = Directory(member.dht, ours, bans)
    with averaging(member, TRUTH.clone(), prefix="access", admission=admission) as averager:
        as_outsider = partial(call_as_outsider, peer=averager.peer_id)
        state, codes = outsider.dht.run_coroutine(as_outsider)
        assert state == 0
        assert codes == {averaging_pb2.PROTOCOL_VIOLATION}

        as_member = partial(download_as_member, peer=averager.peer_id)
        assert other.dht.run_coroutine(as_member) > 0
        bans.write({contributor_id(other.subkey)})
        assert other.dht.run_coroutine(as_member) == 0
        bans.write([])
        assert other.dht.run_coroutine(as_member) > 0
