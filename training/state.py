"""Training states: what they are, how they are fetched from a peer, and which ones are usable."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.optim.state_averager import TrainingStateAverager

from training.guard import GuardedAverager
from training.network import Network


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

    def is_finite(self) -> bool:
        """Tell whether no floating-point tensor holds an infinity or NaN."""
        return are_finite(self.tensors)


def are_finite(tensors: Sequence[torch.Tensor]) -> bool:
    """Tell whether all floating-point tensors are finite."""
    return all(bool(t.isfinite().all()) for t in tensors if t.is_floating_point())


def is_usable(
    metadata: dict[str, Any], tensors: Sequence[torch.Tensor], shapes: Sequence[torch.Size]
) -> bool:
    """Tell whether a state from a peer is whole, of this model, and finite.

    A peer that dies in the middle of sending leaves the last tensors out.
    """
    entries = metadata.get("optimizer_metadata")
    if not isinstance(metadata.get("epoch"), int) or not isinstance(entries, Sequence):
        return False
    wanted = len(shapes) + sum(entry.get("type") == "tensor" for entry in entries)
    fits = [tensor.shape for tensor in tensors[: len(shapes)]] == list(shapes)
    return fits and len(tensors) == wanted and are_finite(tensors)


class StateDownload(DecentralizedAverager):
    """Fetches the newest state from a peer: within a deadline, and never a broken one.

    `shapes` are those of the model's parameters, `offered` is a state to take instead of a peer's.
    """

    shapes: Sequence[torch.Size] = ()
    offered: TrainingState | None = None
    took_offered = False  # the last time

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
        if (offer := self._take_offer()) is not None:
            return offer
        deadline = time.monotonic() + timeout if timeout is not None else float("inf")
        future = super().load_state_from_peers(wait=False, timeout=timeout)
        while not future.done():
            if (offer := self._take_offer()) is not None:  # while a peer was still sending
                return offer
            if time.monotonic() > deadline:
                raise TimeoutError(f"no state after {timeout:.0f} seconds")
            time.sleep(0.1)
        loaded: tuple[dict[str, Any], list[torch.Tensor]] | None = future.result()
        return loaded if loaded is not None and is_usable(*loaded, self.shapes) else None

    def _take_offer(self) -> tuple[dict[str, Any], list[torch.Tensor]] | None:
        self.took_offered = self.offered is not None
        return self.offered.as_loaded() if self.offered is not None else None


class StateAverager(GuardedAverager, TrainingStateAverager, StateDownload):
    """Hivemind's state averager, guarded, whose download is `StateDownload`'s."""


def state_prefix(run: str) -> str:
    """The DHT prefix under which peers offer their state."""
    return f"{run}_state_averager"


def open_download(network: Network, shapes: Sequence[torch.Size]) -> StateDownload:
    """Open a member of the run that fetches states and neither trains nor shares.

    `shapes` are those of the model's `ordered_parameters`.
    """
    download = StateDownload(
        averaged_tensors=[torch.zeros(1)],
        dht=network.dht,
        prefix=state_prefix(network.run),
        client_mode=True,
        next_chunk_timeout=15.0,
        start=True,
    )
    download.shapes = shapes
    return download
