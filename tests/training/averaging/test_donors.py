"""States from strangers: compared with others', bounded in bytes and in time."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hivemind.compression import serialize_torch_tensor
from hivemind.p2p import PeerID
from hivemind.proto import averaging_pb2
from hivemind.utils import MSGPackSerializer
from hypothesis import given
from hypothesis import strategies as st

from training.averaging.donors import Donors, RefusedStateError, Sketch, draw_sketch, order_donors

SEED = bytes(range(16))
NAMES = [PeerID(bytes([18, 32, *([n] * 32)])) for n in range(6)]


def weights(seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(40, 30, generator=generator), torch.randn(7, generator=generator)]


class Donor:
    """A peer that gives a state and sketches of it."""

    def __init__(self, tensors: list[torch.Tensor], epoch: int = 5, size: int = 0) -> None:
        self.tensors, self.epoch, self.size, self.asked = tensors, epoch, size, 0

    async def rpc_download_state(self, _request: object) -> AsyncIterator[Any]:
        self.asked += 1
        return self._send()

    async def _send(self) -> AsyncIterator[Any]:
        metadata = MSGPackSerializer.dumps({"epoch": self.epoch})
        for tensor in self.tensors:
            part = serialize_torch_tensor(tensor)
            yield averaging_pb2.DownloadData(tensor_part=part, metadata=metadata)
        while self.size:
            self.size -= 1
            yield averaging_pb2.DownloadData(metadata=bytes(1000))

    async def rpc_sketch_state(self, request: averaging_pb2.DownloadData) -> Any:
        sketch = draw_sketch(self.epoch, self.tensors, request.metadata)
        return averaging_pb2.DownloadData(metadata=sketch.to_bytes())


class Silent(Donor):
    """A peer that sends nothing and hangs up on nobody."""

    async def _send(self) -> AsyncIterator[Any]:
        await asyncio.sleep(3600)
        yield averaging_pb2.DownloadData()


def look(*donors: Donor) -> Any:
    """The state that is found, of 50,000 bytes at most, whose parts come within half a second."""
    by_name = dict(zip(NAMES, donors, strict=False))
    stub: Callable[[PeerID], Donor] = by_name.__getitem__
    return asyncio.run(Donors(list(by_name), stub, 2, 50_000, 0.5).find())


def broken(place: tuple[int, int], value: float) -> list[torch.Tensor]:
    tensors = weights()
    tensors[0][place] = value
    return tensors


@pytest.mark.parametrize(
    "states",
    [
        (weights(), [tensor + 0.01 for tensor in weights()], weights()),
        (weights(), weights(seed=1), weights()),
        (broken((3, 3), 1e6), weights(), weights()),
        (weights(),),
    ],
    ids=["others have it, too", "a witness lies", "the norm shows one element", "a single donor"],
)
def test_a_state_that_no_two_others_deny_is_taken(states: tuple[list[torch.Tensor], ...]) -> None:
    metadata, tensors = look(*map(Donor, states))
    assert metadata["epoch"] == 5
    torch.testing.assert_close(tensors, weights())


def test_two_who_disagree_give_no_state() -> None:
    assert look(Donor(weights()), Donor(weights(seed=1))) is None


@pytest.mark.parametrize(
    "bad",
    [Donor(weights(seed=1)), Donor(weights(), size=10**9), Silent(weights())],
    ids=["two others do not have its state", "no end", "silence"],
)
def test_a_bad_donor_is_left_for_the_next(bad: Donor) -> None:
    _, tensors = look(bad, Donor(weights()), Donor(weights()))
    assert bad.asked == 1
    torch.testing.assert_close(tensors, weights())


def test_the_step_before_agrees_and_another_run_or_what_is_not_finite_does_not() -> None:
    own = draw_sketch(5, weights(), SEED)
    moved = [tensor * 1.2 for tensor in weights()]
    assert own.agrees_with(draw_sketch(4, moved, SEED))
    assert not own.agrees_with(draw_sketch(5, moved, SEED))
    assert not own.agrees_with(draw_sketch(4, weights(seed=1), SEED))
    not_finite = draw_sketch(5, broken((0, 0), math.nan), SEED)
    assert not not_finite.agrees_with(own)
    assert not own.agrees_with(not_finite)


def test_a_tensor_that_claims_to_be_huge_is_not_unpacked() -> None:
    donors = Donors(NAMES[:1], lambda _peer: SimpleNamespace(), 2, 1000, 1.0)
    part = serialize_torch_tensor(torch.zeros(2))
    part.size[:] = [2**30, 4]
    with pytest.raises(RefusedStateError, match="a tensor of"):
        asyncio.run(donors._read([part]))


def test_the_deadline_cancels_everything() -> None:
    donors = Donors(NAMES[:1], lambda _peer: Silent(weights()), 2, 10**6, 3600.0)

    async def bounded() -> None:
        async with asyncio.timeout(0.2):
            await donors.find()

    with pytest.raises(TimeoutError):
        asyncio.run(bounded())


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_of_sketches_fail_otherwise(content: bytes) -> None:
    try:
        Sketch.from_bytes(content)
    except ValueError:
        return


def test_a_claim_to_be_far_ahead_is_no_reason_to_be_asked_first() -> None:
    liar, ahead, behind = NAMES[:3]
    declared = [(liar, 1e9), (ahead, 7.0), (behind, 3.0)]
    first = {order_donors(declared, [], NAMES[5], 7.0)[0] for _ in range(60)}
    assert first == {liar, ahead}
    assert order_donors(declared, [], NAMES[5], 7.0)[-1] == behind


def test_those_behind_routers_are_asked_last_and_we_ourselves_never() -> None:
    own, caller, other = NAMES[:3]
    assert order_donors([(own, 9.0), (other, math.nan)], [caller, own], own, 9.0) == [caller]
