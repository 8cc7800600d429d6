"""A whole training state from strangers: bounded in bytes and time, and compared with others'.

Whoever gives its state could give any. So the state of one peer is compared with a sketch of two
others': the norm of each of the model's tensors, and its values at places that are drawn after
the state has come, so that nobody can prepare for them.
"""

import asyncio
import logging
import random
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hivemind.compression import deserialize_torch_tensor
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import MSGPackSerializer
from hivemind.utils.asyncio import aiter_with_timeout
from hivemind.utils.streaming import combine_from_streaming

logger = logging.getLogger(__name__)

SKETCHES = 2  # beside the state itself: three peers are heard
MOST_DONORS = 6  # tried one after the other
PLACES = 256  # of each tensor, that a sketch tells the values at
SEED_BYTES = 16
SKETCH_SECONDS = 15.0
LARGEST_METADATA = 2**20
COPIES = 3  # parameters and two moments, all in 32 bits: no state of ours is larger
SAME_STEP, OTHER_STEP = 0.1, 0.3  # relative distance of honest peers' sketches, at most


class RefusedStateError(RuntimeError):
    """A state that is not taken; the message says why."""


@dataclass(frozen=True)
class Sketch:
    """The figures that are compared between two states.

    Attributes:
        epoch: the global step. norms: of each of the model's tensors. values: at the places drawn.
    """

    epoch: int
    norms: list[float]
    values: list[float]

    def to_bytes(self) -> bytes:
        """The sketch as it travels; `from_bytes` reads it back."""
        packed: bytes = MSGPackSerializer.dumps([self.epoch, self.norms, self.values])
        return packed

    @classmethod
    def from_bytes(cls, content: bytes) -> "Sketch":
        """Read a sketch from a stranger; raises ValueError when it is none."""
        try:
            epoch, norms, values = MSGPackSerializer.loads(content)
            lists = isinstance(norms, list) and isinstance(values, list)
        except Exception as error:
            raise ValueError("not shaped like a sketch") from error
        if not lists or not all(isinstance(n, float) for n in [*norms, *values]):
            raise ValueError("not shaped like a sketch")
        return cls(int(epoch), norms, values)

    def agrees_with(self, other: "Sketch") -> bool:
        """True if two honest peers could have these, at most a few steps apart."""
        if len(self.norms) != len(other.norms) or len(self.values) != len(other.values):
            return False
        most = SAME_STEP if self.epoch == other.epoch else OTHER_STEP
        values = torch.tensor([self.values, other.values], dtype=torch.float64)
        norms = torch.tensor([self.norms, other.norms], dtype=torch.float64)
        return _apart(values) <= most and _apart(norms) <= most


def _apart(pair: torch.Tensor) -> float:
    """The distance of two rows over the norm of the larger; infinite where one is not finite."""
    largest = float(pair.norm(dim=1).max())
    distance = float((pair[0] - pair[1]).norm())
    if not distance < float("inf"):
        return float("inf")
    return distance / largest if largest else 0.0


def draw_sketch(epoch: int, parameters: Sequence[torch.Tensor], seed: bytes) -> Sketch:
    """Sketch the model's tensors at the places that the seed gives."""
    generator = torch.Generator().manual_seed(int.from_bytes(seed[:8]) % 2**63)
    norms, values = [], []
    for tensor in parameters:
        flat = tensor.detach().reshape(-1).float()
        places = torch.randint(flat.numel(), (min(PLACES, flat.numel()),), generator=generator)
        norms.append(float(flat.norm()))
        values += [float(value) for value in flat[places]]
    return Sketch(epoch, norms, values)


@dataclass
class Donors:
    """Peers that may give their state, the furthest first.

    Args:
        peers: whom to ask. stub: makes the calls to a peer.
        parameters: how many of a state's tensors are the model's. most_bytes: of a whole state.
        chunk_seconds: longest wait for the next part.
    """

    peers: Sequence[PeerID]
    stub: Any
    parameters: int
    most_bytes: int
    chunk_seconds: float

    async def find(self) -> tuple[dict[str, Any], list[torch.Tensor]] | None:
        """Metadata and tensors of a state that is not one peer's word alone; None: there is none.

        Where a single peer can be asked, its word is taken.
        """
        for donor in self.peers[:MOST_DONORS]:
            try:
                metadata, tensors = await self.download(donor)
                await self._compare(donor, metadata, tensors)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # whatever a peer may send, the next one is asked
                logger.warning("the state of %s is not taken: %r", donor, error)
                continue
            return metadata, tensors
        return None

    async def download(self, donor: PeerID) -> tuple[dict[str, Any], list[torch.Tensor]]:
        """Take a donor's state.

        Raises:
            RefusedStateError: when it is longer than any state of this run, or empty.
        """
        stream = await self.stub(donor).rpc_download_state(averaging_pb2.DownloadRequest())
        received, metadata = 0, b""
        tensors: list[torch.Tensor] = []
        parts: list[Any] = []
        async for message in aiter_with_timeout(stream, timeout=self.chunk_seconds):
            received += message.ByteSize()
            if received > self.most_bytes or len(message.metadata) > LARGEST_METADATA:
                raise RefusedStateError(f"it is longer than {self.most_bytes:,} bytes")
            metadata = message.metadata or metadata
            if message.tensor_part.dtype and parts:
                tensors.append(await self._read(parts))
                parts = []
            parts.append(message.tensor_part)
        if not metadata or not parts:
            raise RefusedStateError("it sent none")
        tensors.append(await self._read(parts))
        return MSGPackSerializer.loads(metadata), tensors

    async def _read(self, parts: list[Any]) -> torch.Tensor:
        whole = combine_from_streaming(parts)
        size = 4 * int(torch.Size(whole.size).numel())
        if size > self.most_bytes:
            raise RefusedStateError(f"a tensor of {size:,} bytes")
        tensor: torch.Tensor = await asyncio.to_thread(deserialize_torch_tensor, whole)
        return tensor

    async def _compare(
        self, donor: PeerID, metadata: dict[str, Any], tensors: list[torch.Tensor]
    ) -> None:
        """Ask others for a sketch of theirs.

        Raises:
            RefusedStateError: when more of them disagree than agree with what the donor sent.
        """
        others = [peer for peer in self.peers if peer != donor]
        if not others:
            return
        seed = secrets.token_bytes(SEED_BYTES)
        asked = [self._ask_sketch(peer, seed) for peer in others[:MOST_DONORS]]
        heard = [sketch for sketch in await asyncio.gather(*asked) if sketch][:SKETCHES]
        own = draw_sketch(int(metadata["epoch"]), tensors[: self.parameters], seed)
        agree = sum(own.agrees_with(other) for other in heard)
        if 2 * agree < len(heard):
            raise RefusedStateError(f"{len(heard) - agree} of {len(heard)} others have another")

    async def _ask_sketch(self, peer: PeerID, seed: bytes) -> Sketch | None:
        try:
            request = averaging_pb2.DownloadData(metadata=seed)
            async with asyncio.timeout(SKETCH_SECONDS):
                answer = await self.stub(peer).rpc_sketch_state(request)
            return Sketch.from_bytes(answer.metadata)
        except Exception as error:  # a peer that says nothing is no witness
            logger.info("no sketch of the state of %s: %r", peer, error)
            return None


def read_offers(found: Any) -> list[tuple[PeerID, float]]:
    """The peers that offer their state, with the step that each declares; never raises.

    Args:
        found: what the hash table gave.
    """
    records = getattr(found, "value", None)
    return [
        (PeerID(subkey), float(value))
        for subkey, record in (records.items() if isinstance(records, dict) else ())
        if isinstance(value := getattr(record, "value", None), int | float)
        and isinstance(subkey, bytes)
    ]


def order_donors(
    declared: Iterable[tuple[PeerID, float]], callers: Iterable[PeerID], own: PeerID, ceiling: float
) -> list[PeerID]:
    """Whom to ask first: the furthest that can be, at random among equals, then the callers.

    Args:
        declared: peers that offer their state, with the step that they say it is of.
        callers: peers that cannot be called by others, but are connected with us.
        ceiling: steps beyond it are no reason to be asked first.
    """
    known = {peer: min(step, ceiling) for peer, step in declared if step == step}
    ranked = sorted(known, key=lambda peer: (known[peer], random.random()), reverse=True)
    others = [peer for peer in callers if peer not in known]
    random.shuffle(others)
    return [peer for peer in [*ranked, *others] if peer != own]
