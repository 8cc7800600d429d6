"""Real averagers on loopback, each with its own process and network daemon."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROUND_SECONDS = 120.0
CALL_SECONDS = 3.0
PART_SECONDS = 30.0


class Group:
    """The averagers.

    Args:
        weight: in samples, of each peer in a round.
    """

    def __init__(self, averagers: list[Any], weight: float) -> None:
        self.averagers, self.weight = averagers, weight

    def average(self, values: Sequence[list[Any]]) -> tuple[list[list[Any]], float, int]:
        """Average once; what each peer has then, the seconds, the bytes that all sent."""
        import torch

        from training.network import traffic

        for averager, own in zip(self.averagers, values, strict=True):
            with averager.get_tensors() as tensors, torch.no_grad():
                for tensor, value in zip(tensors, own, strict=True):
                    tensor.copy_(value)
        before, start = traffic.read().sent, time.perf_counter()
        rounds = [
            averager.step(weight=self.weight, wait=False, timeout=ROUND_SECONDS)
            for averager in self.averagers
        ]
        for exchange in rounds:
            exchange.result(ROUND_SECONDS)
        seconds, sent = time.perf_counter() - start, traffic.read().sent - before
        averaged = []
        for averager in self.averagers:
            with averager.get_tensors() as tensors:
                averaged.append([tensor.clone() for tensor in tensors])
            averager.take_rounds()
        return averaged, seconds, sent


@contextmanager
def averagers(
    peers: int,
    shapes: Sequence[Sequence[int]],
    way: Any,
    weight: float,
    patience: float = 20.0,
    group_size: int | None = None,
) -> Iterator[Group]:
    """Open averagers on loopback that send in 16 bits; on leaving, close them.

    Args:
        shapes: of each peer's tensors.
        way: to aggregate, a `calculator.swarm.aggregation.Aggregation`.
        weight: in samples, of each peer in a round.
        patience: seconds to wait for a group that is not complete.
        group_size: of every group; None where `Group.averagers` are told whom to meet.
    """
    import torch
    from hivemind.averaging import DecentralizedAverager

    from training.averaging.guard import GuardedAverager
    from training.averaging.wire import WireCompression, WireFormat
    from training.network import traffic
    from training.network.connection import Endpoint, Identity, Network

    assert issubclass(GuardedAverager, DecentralizedAverager)
    traffic.start_counting()
    wire = WireCompression(WireFormat.FLOAT16, threshold=0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        networks: list[Network] = []
        for index in range(peers):
            entry = networks[0].addresses() if networks else ()
            identity = Identity.read(folder / str(index))
            local = Endpoint("127.0.0.1")
            networks.append(Network("bench", identity, entry, local, may_be_alone=index == 0))
            stack.callback(networks[-1].close)
        opened = []
        for network in networks:
            opened.append(
                GuardedAverager(
                    [torch.zeros(tuple(shape)) for shape in shapes],
                    network.dht,
                    rule=way,
                    largest_weight=weight,
                    prefix="bench_grad_averager",
                    target_group_size=group_size,
                    min_matchmaking_time=patience,
                    request_timeout=CALL_SECONDS,
                    next_chunk_timeout=PART_SECONDS,
                    compression=wire,
                    start=True,
                )
            )
            stack.callback(opened[-1].shutdown)
        yield Group(opened, weight)
