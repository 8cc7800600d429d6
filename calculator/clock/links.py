"""Links between GPUs: bytes that each sends in a step, and the rates at which they go.

The GPUs that share layers are beside each other, then those that divide a sequence, then the
replicas, and the stages of a pipeline are farthest apart. So a group's GPUs in one machine use the
links between its GPUs, and each machine's GPUs together its network cards, one for each GPU.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from calculator.autograd.ledger import ALL_REDUCE, ALL_TO_ALL, CONTEXT_ALL_TO_ALL
from calculator.cards import Card
from calculator.plan import Plan
from calculator.techniques.collectives import BROADCAST, SEND, Collective, Group

# GPUs in one machine, as in NVIDIA's DGX A100, DGX H100 and DGX B200
MACHINE: Final = 8
# of a line rate of 450 GB/s NCCL gets 370, by its protocols (nccl-tests, issue 212)
REACHED: Final = 370 / 450
GIGA: Final = 1e9
# bytes per second in one direction, by capability: half of what the data sheets of V100, A100, H100
# and B200 with NVLink give for both
NVLINK: Final = {(7, 0): 150 * GIGA, (8, 0): 300 * GIGA, (9, 0): 450 * GIGA, (10, 0): 900 * GIGA}
# cards of these generations that NVLink does not join in a machine, or two at a time
WITHOUT: Final = ("a30", "h100-pcie", "h100-nvl")
# 16 lanes of PCIe 3.0, 4.0 and 5.0 at 8, 16 and 32 GT/s, of which 128 in 130 bits are data
PCIE: Final = ((8, 0), 15.75 * GIGA), ((9, 0), 31.5 * GIGA), ((99, 0), 63 * GIGA)
# a copy to RAM gets 52.8 GB/s of the 63 of PCIe 5.0 (nvbandwidth, issue 24)
COPIED: Final = 52.8 / 63
# bytes per second of the network card beside each GPU: 200 Gbit/s in a DGX A100, 400 in a DGX H100
# and B200 (their data sheets), 50 in a DGX-1
NETWORK: Final = {(7, 0): 6.25 * GIGA, (8, 0): 25 * GIGA, (9, 0): 50 * GIGA, (10, 0): 50 * GIGA}


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that a GPU sends to others of its machine, and to other machines."""

    near: float = 0.0
    far: float = 0.0

    def seconds(self, card: Card) -> float:
        """Seconds that they take: the longer of the two, as they go at once."""
        far = self.far / (REACHED * network_of(card)) if self.far else 0.0
        return max(self.near / (REACHED * link_of(card)), far)


NONE: Final = Traffic()


def link_of(card: Card) -> float:
    """bytes per second that a card sends to one of its machine: by NVLink, or else PCIe 16x."""
    if card.capability in NVLINK and card.name not in WITHOUT:
        return NVLINK[card.capability]
    return _bus_of(card)


def copy_seconds(size: float, card: Card) -> float:
    """Seconds in which bytes go between a card and pinned RAM, over PCIe 16x."""
    return size / (COPIED * _bus_of(card))


def _bus_of(card: Card) -> float:
    capability = card.capability or (8, 0)
    return next(rate for below, rate in PCIE if capability < below)


def network_of(card: Card) -> float:
    """bytes per second from a card to other machines; 0 where its maker sells no such machine."""
    return NETWORK.get(card.capability or (0, 0), 0.0)


def traffic(exchanged: Iterable[Collective], plan: Plan) -> Traffic:
    r"""Bytes that each GPU sends, by rings.

    $$2 s \frac{n - 1}{n}, \quad s \frac{n - 1}{n}, \quad s$$

    for a tensor of s bytes that n GPUs all-reduce; that they gather or reduce to shards, or of
    which each sends the others their parts; or that is sent on. Each of a group's GPUs in a machine
    has its network card, and the ring's bytes between machines are shared among them.

    Source: nccl-tests (doc/PERFORMANCE.md)
    """
    near = far = 0.0
    for each in exchanged:
        size, stride = _spread(each.group, plan)
        together = max(1, min(size, MACHINE // stride))
        sent = each.total * _share(each.name, size)
        near += sent if together > 1 else 0
        if size > together:
            far += sent if each.name in (SEND, ALL_TO_ALL) else sent / together
    return Traffic(near, far)


def _share(name: str, size: int) -> float:
    """Bytes that a GPU sends over those of the whole tensor."""
    if name in (SEND, BROADCAST, CONTEXT_ALL_TO_ALL):
        return 1.0
    return (2 if name == ALL_REDUCE else 1) * (size - 1) / size


def _spread(group: Group, plan: Plan) -> tuple[int, int]:
    """GPUs of a group, and how many places lie between two of them."""
    layers = plan.tensor_parallel * plan.expert_parallel
    match group:
        case Group.LAYERS:
            return layers, 1
        case Group.CONTEXT:
            return plan.context_parallel, layers
        case Group.REPLICAS:
            return plan.replicas, layers
        case Group.STAGES:
            return plan.pipeline_parallel, layers * plan.replicas
