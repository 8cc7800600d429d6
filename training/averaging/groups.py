"""Division of volunteers into averaging groups when there are too many for one.

Up to `LARGEST` peers are one group. More are divided by lot, in every round, into groups of half
to all of that. The lot is a hash of the round and the peer's identity, so all peers agree on it
without a message. Two rounds divide the peers independently, as two dimensions of a
grid do, so what one peer knows has reached a thousand after two rounds and a million after four.

Source: the grid of Moshpit All-Reduce, Ryabinin et al. 2021, arXiv:2103.03239, section 3.
"""

import hashlib
import math
from collections.abc import Iterable

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
