"""Groups that are complete when everybody is there, instead of when the time is up.

The library's leader of a group waits for the whole `min_matchmaking_time` unless the group reaches
a fixed size, which must be known beforehand. How many peers train is known from their reports; so
each round here expects as many as there are, and the time is only for those who do not come.

Up to `LARGEST` peers are one group. More are divided by lot, in every round, into groups of half
to all of that. The lot is a hash of the round and the peer's identity, so all peers agree on it
without a message. Two rounds divide the peers independently, as two dimensions of a
grid do, so what one peer knows has reached a thousand after two rounds and a million after four.
Source: the grid of Moshpit All-Reduce, Ryabinin et al. 2021, arXiv:2103.03239, section 3.
"""

import asyncio
import hashlib
import math
import multiprocessing
import time
from collections.abc import Iterable
from typing import Any

from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.control import StepControl
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.p2p import PeerID
from hivemind.utils import get_dht_time

LARGEST = 32  # peers of a group, on average at most
MOST_BITS = 12  # as many groups as the run's records have keys for, see `records.kinds`


def bits_for(peers: int) -> int:
    """Number of bits that name the group of each of that many peers.

    >>> [bits_for(peers) for peers in (1, 32, 33, 64, 65, 1_000, 10_000)]
    [0, 0, 1, 1, 2, 5, 9]
    """
    return min(MOST_BITS, max(0, math.ceil(math.log2(max(1, peers) / LARGEST))))


def group_of(peer: str, round_name: str, bits: int) -> str:
    """The group of a peer in a round, as so many binary digits; none where there is one group."""
    lot = hashlib.sha256(f"{round_name} {peer}".encode()).digest()
    return f"{int.from_bytes(lot[:4]):032b}"[:bits]


def meet(own: str, others: Iterable[str], round_name: str) -> tuple[str, int]:
    """Our group in a round, and how many are in it, this peer included."""
    everyone = {own, *others}
    bits = bits_for(len(everyone))
    group = group_of(own, round_name, bits)
    return group, sum(group_of(peer, round_name, bits) == group for peer in everyone)


CANCELLING_SECONDS = 0.005  # between two looks at whether a cancelled round is marked
LOOK_SECONDS = 0.25  # pause between searches for a group's leader


def least_group(expected: int, needs_majority: bool) -> int:
    """The fewest peers that are a group where so many are expected.

    Where bad peers must be the fewer ones, two of many are none: one of them may be bad.

    >>> [least_group(expected, True) for expected in (0, 2, 3, 5, 32)]
    [2, 2, 3, 3, 17]
    """
    return max(3, expected // 2 + 1) if needs_majority and expected > 2 else 2


class CalmSearch(GroupKeyManager):
    """Searches for a group's leader, at most once every `LOOK_SECONDS`.

    The library asks again as soon as it has its answer, for as long as it has no leader: some 30
    times a second among peers of one machine.
    """

    _next_look = -math.inf

    async def get_averagers(self, group_key: str, only_active: bool) -> list[tuple[PeerID, float]]:
        """The peers that look for this group, and when they begin without others."""
        await asyncio.sleep(self._next_look - time.monotonic())
        self._next_look = time.monotonic() + LOOK_SECONDS
        found: list[tuple[PeerID, float]] = await super().get_averagers(group_key, only_active)
        return found


class ExpectantAverager(DecentralizedAverager):
    """An averager whose groups need not wait once `expected_peers` have met.

    Attributes:
        needs_majority: whether a group must be more than half of those expected.
    """

    needs_majority = False

    def __init__(self, *args: Any, **options: Any) -> None:
        # shared with the averager's own process
        self._expected = multiprocessing.Value("i", 0)
        group: Any = multiprocessing.Array("c", MOST_BITS)
        group.value = options.get("initial_group_bits", "").encode()
        self._group = group
        super().__init__(*args, **options)

    @property
    def expected_peers(self) -> int:
        """Peers that the next round expects, this one included; 0 or 1: nobody knows."""
        return int(self._expected.value)

    @expected_peers.setter
    def expected_peers(self, count: int) -> None:
        self._expected.value = count

    @property
    def least_peers(self) -> int:
        """The fewest peers of a group that this one takes part in."""
        return least_group(self.expected_peers, self.needs_majority)

    def meet(self, own: str, others: Iterable[str], round_name: str) -> None:
        """Look for the next round's group among these peers, this one among them or not."""
        group, self.expected_peers = meet(own, others, round_name)
        self._group.value = group.encode()

    async def _step(self, *, step: StepControl, **options: Any) -> None:
        search = CalmSearch(self.dht, self.prefix, self._group.value.decode(), None)
        self._matchmaking.group_key_manager = search
        expected, fixed = self.expected_peers, self.matchmaking_kwargs["target_group_size"]
        if fixed is None:
            self._matchmaking.target_group_size = expected if expected > 1 else None
        self._matchmaking.min_group_size = self.least_peers
        if self.client_mode:
            self._be_patient()
        _notice_every_cancellation(step)
        await super()._step(step=step, **options)

    def _be_patient(self) -> None:
        """Accept a leader that begins a little later than we would.

        Whoever is behind a router leads no group and so has no time of its own to begin. The
        library gives it one all the same, and a leader whose time is a moment later refuses it.
        """
        matchmaking = self._matchmaking

        def expiration() -> float:
            control, longest = matchmaking.step_control, 2 * matchmaking.min_matchmaking_time
            latest = max(control.scheduled_time, get_dht_time()) + longest
            return float(min(latest, matchmaking.potential_leaders.search_end_time))

        matchmaking.get_request_expiration_time = expiration


def _notice_every_cancellation(step: StepControl) -> None:
    """Report a round as cancelled only once it is marked so.

    The library announces a cancellation first and marks the round afterwards. Its own process may
    look in between, find a round that goes on, and search for its group until the deadline; every
    later round waits for that search to end.
    """
    announced = step.wait_for_cancel

    async def wait_for_cancel() -> None:
        await announced()
        while not step.done():
            await asyncio.sleep(CANCELLING_SECONDS)

    step.wait_for_cancel = wait_for_cancel
