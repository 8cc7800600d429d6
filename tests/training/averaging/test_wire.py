import pytest
import torch
from hivemind.compression import deserialize_torch_tensor
from hivemind.compression.base import CompressionInfo
from hypothesis import given
from hypothesis import strategies as st

from training.averaging.wire import WireCompression, WireFormat, expected_bytes

THRESHOLD = 2**16


def travel(tensor: torch.Tensor, wire: WireCompression) -> tuple[torch.Tensor, int]:
    message = wire.compress(tensor.clone(), CompressionInfo.from_tensor(tensor))
    return deserialize_torch_tensor(message), len(message.buffer)


@pytest.mark.parametrize(
    ("wire_format", "elements", "bytes_each"),
    [
        (WireFormat.ADAPTIVE, THRESHOLD, 1),
        (WireFormat.ADAPTIVE, THRESHOLD - 1, 2),
        (WireFormat.FLOAT16, THRESHOLD, 2),
        (WireFormat.EXACT, THRESHOLD, 4),
    ],
)
def test_large_tensors_take_8_bits(wire_format: WireFormat, elements: int, bytes_each: int) -> None:
    tensor = torch.randn(elements, generator=torch.Generator().manual_seed(0))
    wire = WireCompression(wire_format, THRESHOLD)
    arrived, size = travel(tensor, wire)
    assert expected_bytes([tensor], wire) == elements * bytes_each
    # 8-bit codes come with a table of 256 floats and its length
    assert size == pytest.approx(elements * bytes_each, abs=256 * 4 + 8)
    assert arrived.dtype == tensor.dtype
    # half a bucket of the 8-bit format is 6 sigma / 256 / 2; what lies outside is rare
    assert (arrived - tensor).abs().median() <= 6 / 256


def test_a_part_of_a_large_tensor_travels_as_the_whole_does() -> None:
    wire = WireCompression(WireFormat.ADAPTIVE, THRESHOLD)
    whole = CompressionInfo.from_tensor(torch.empty(THRESHOLD))
    message = wire.compress(torch.randn(100), whole.get_part(0, 100))
    assert len(message.buffer) == 100 + 256 * 4 + 8


@given(st.integers(1, 2**18))
def test_an_optimizers_codes_arrive_unchanged(elements: int) -> None:
    codes = torch.arange(elements, dtype=torch.uint8)
    arrived, size = travel(codes, WireCompression(WireFormat.ADAPTIVE, THRESHOLD))
    assert torch.equal(arrived, codes)
    assert size == elements


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_a_constant_tensor_arrives_unchanged(value: float) -> None:
    tensor = torch.full((THRESHOLD,), value)
    arrived, _ = travel(tensor, WireCompression(WireFormat.ADAPTIVE, THRESHOLD))
    assert torch.equal(arrived, tensor)
