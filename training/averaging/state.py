"""Training states: what they are, how they are fetched from a peer, and which ones are usable."""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.optim.state_averager import TrainingStateAverager
from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import MPFuture

from training.averaging.donors import (
    COPIES,
    LARGEST_METADATA,
    SEED_BYTES,
    Donors,
    draw_sketch,
    order_donors,
    read_offers,
)
from training.averaging.guard import GuardedAverager

logger = logging.getLogger(__name__)

GRACE_SECONDS = 5.0  # for the averager's process to say that the time was over


@dataclass(frozen=True)
class TrainingState:
    """Everything that a peer needs to go on from a global step.

    Attributes:
        epoch: the global step.
        optimizer_metadata: the optimizer's state without its tensors, as hivemind flattens it.
        tensors: the parameters in the model's order, then the optimizer's tensors.
    """

    epoch: int
    optimizer_metadata: list[dict[str, Any]]
    tensors: list[torch.Tensor]

    def as_loaded(self) -> tuple[dict[str, Any], list[torch.Tensor]]:
        """Metadata and tensors, as a download from a peer gives them."""
        metadata = {"epoch": self.epoch, "optimizer_metadata": self.optimizer_metadata}
        return metadata, self.tensors

    def is_sound(self, parameter_count: int) -> bool:
        """True if the parameters, the first tensors, are sound and the others finite."""
        parameters, others = self.tensors[:parameter_count], self.tensors[parameter_count:]
        return are_sound(parameters) and are_finite(others)


def are_finite(tensors: Sequence[torch.Tensor]) -> bool:
    """True if all floating-point tensors are finite."""
    return all(bool(t.isfinite().all()) for t in tensors if t.is_floating_point())


LARGEST_WEIGHT = 100.0  # root mean square of a tensor's elements; trained ones stay near 1


def are_sound(parameters: Sequence[torch.Tensor]) -> bool:
    """True if all weights are finite, and none of the tensors so large that it is broken."""
    if not all(p.is_floating_point() for p in parameters):
        return False
    sizes = [
        torch.linalg.vector_norm(p.detach(), dtype=torch.float32) / max(p.numel(), 1) ** 0.5
        for p in parameters
    ]
    return not sizes or bool((torch.stack(sizes) <= LARGEST_WEIGHT).all())  # false with NaN


def is_usable(
    metadata: dict[str, Any], tensors: Sequence[torch.Tensor], shapes: Sequence[torch.Size]
) -> bool:
    """True if a state from a peer is whole, of this model, and sound.

    A peer that dies in the middle of sending leaves the last tensors out.
    """
    entries = metadata.get("optimizer_metadata")
    if not isinstance(metadata.get("epoch"), int) or not isinstance(entries, Sequence):
        return False
    wanted = len(shapes) + sum(entry.get("type") == "tensor" for entry in entries)
    fits = [tensor.shape for tensor in tensors[: len(shapes)]] == list(shapes)
    sound = fits and are_sound(tensors[: len(shapes)]) and are_finite(tensors[len(shapes) :])
    return sound and len(tensors) == wanted


class StateDownload(DecentralizedAverager):
    """Fetches the newest state from a peer: within a deadline, and never a broken one.

    `shapes` are those of the model's parameters, `offered` is a state to load instead of a peer's.
    """

    shapes: Sequence[torch.Size] = ()
    offered: TrainingState | None = None
    callers: Sequence[PeerID] = ()  # peers behind routers that are connected with us
    ceiling: float = math.inf  # the furthest step that is credible

    @classmethod
    def _get_handle_name(cls, namespace: str | None, method_name: str) -> str:
        """Answer to the name of hivemind's own class, whatever the subclass is called."""
        return f"{namespace}::{TrainingStateAverager.__name__}.{method_name}"

    def load_state_from_peers(
        self, wait: bool = True, timeout: float | None = None
    ) -> tuple[dict[str, Any], list[torch.Tensor]] | None:
        """Give the metadata and the tensors of a state, None when nobody sent a usable one.

        Raises:
            TimeoutError: when it takes longer than `timeout` seconds.
        """
        if self.offered is not None:
            return self.offered.as_loaded()
        deadline = time.monotonic() + timeout if timeout is not None else float("inf")
        future: MPFuture[Any] = MPFuture()
        call = {"future": future, "timeout": timeout, "callers": self.callers}
        self._outer_pipe.send(("_load_state_from_peers", [], call | {"ceiling": self.ceiling}))
        while not future.done():
            if time.monotonic() > deadline + GRACE_SECONDS:
                raise TimeoutError(f"no state after {timeout:.0f} seconds")
            time.sleep(0.1)
        loaded: tuple[dict[str, Any], list[torch.Tensor]] | None = future.result()
        return loaded if loaded is not None and is_usable(*loaded, self.shapes) else None

    async def _load_state_from_peers(
        self,
        future: "MPFuture[Any]",
        timeout: float | None = None,
        callers: Sequence[PeerID] = (),
        ceiling: float = math.inf,
    ) -> None:
        """Look for a state, in the averager's process; at the deadline all of it is cancelled."""
        found = None
        try:
            async with asyncio.timeout(timeout):
                found = await Donors(
                    await self._list_donors(callers, ceiling),
                    lambda peer: self.get_stub(self._p2p, peer, namespace=self.prefix),
                    len(self._averaged_tensors),
                    4 * COPIES * self.total_size + LARGEST_METADATA + 2**20,
                    self.next_chunk_timeout or self.request_timeout,
                ).find()
        except TimeoutError:
            logger.warning("no state came within %.0f s", timeout)
        except Exception:
            logger.exception("the search for a state failed")
        finally:
            if not future.done():
                future.set_result(found)

    async def _list_donors(self, callers: Sequence[PeerID], ceiling: float) -> list[PeerID]:
        key = f"{self.prefix}.all_averagers"
        found = await self.dht.get(key, latest=True, return_future=True)
        return order_donors(read_offers(found), callers, self.peer_id, ceiling)


class StateAverager(GuardedAverager, TrainingStateAverager, StateDownload):
    """Hivemind's state averager, guarded, whose download is `StateDownload`'s.

    Whoever is behind a router can be called over the connections that it has opened itself: by
    the monitor and those who help, which hold them open. So it answers for its state as well.
    """

    def serve_callers(self) -> None:
        """Answer those we are connected with, though we are behind a router."""
        self._outer_pipe.send(("_serve_callers", [], {}))

    async def _serve_callers(self) -> None:
        await self.add_p2p_handlers(self._p2p, namespace=self.prefix)
        self._allow_state_sharing.value = True

    async def rpc_sketch_state(
        self, request: averaging_pb2.DownloadData, context: P2PContext
    ) -> averaging_pb2.DownloadData:
        """Sketch our state for somebody who compares it with another's."""
        if not await self._admits(context.remote_id) or len(request.metadata) != SEED_BYTES:
            return averaging_pb2.DownloadData()
        packed, tensors, _ = await self._get_current_state_from_host_process()
        epoch = int(self.serializer.loads(packed)["epoch"])
        parameters = tensors[: len(self._averaged_tensors)]
        sketch = await asyncio.to_thread(draw_sketch, epoch, parameters, request.metadata)
        return averaging_pb2.DownloadData(metadata=sketch.to_bytes())
