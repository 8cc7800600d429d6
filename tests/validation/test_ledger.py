"""The counting device and the ledger: what is counted is what happens."""

from pathlib import Path

import pytest

from tests.validation.measurer import Measure
from validation import counting_device

pytestmark = pytest.mark.oracle

SMALL = "--layers 2 --batch-size 2 --sequence-length 96"
GPT2 = '{"model_type": "gpt2", "n_embd": 96, "n_head": 6, "vocab_size": 503}'
PLAIN = "--layers 2 --batch-size 2 --sequence-length 48 --precision fp32 --dropout 0"

# CPU kernels that allocate otherwise than CUDA's: partial sums of a norm's gradient, MKL's buffers.
CPU_BUFFERS = ("NativeLayerNormBackward0", "MmBackward0", "AddmmBackward0", "BmmBackward0")


def test_a_storage_is_counted_once_until_its_last_view_goes_and_a_kernel_is_not_decomposed(
    measure: Measure,
) -> None:
    assert measure("call storages") == [1, 1, 1, 0]
    assert measure("call silu") == [["aten::silu_backward", 4000]]


def test_gradients_are_added_in_place_as_in_real_memory(measure: Measure) -> None:
    counted, real = measure("call in_place_sums")
    assert counted == real
    # cos(x) and a product; sin(x), its negative and a product; a product: no sum makes new bytes
    assert counted == [4000] * 6


def test_kernels_allocate_what_pytorchs_sources_say(measure: Measure) -> None:
    found = measure("call workspaces")
    sizes = {name: [size for _, size in made] for name, made in found.items()}
    # 4,000 indices of 200 rows of 8: sorted twice, and 400 + 200 sums of ten rows in 32 bits; the
    # sums of 100 rows are added in place
    assert sizes["embedding"][0] == 200 * 8 * 4
    assert sizes["embedding"][1:4] == [4000 * 8] * 3
    assert sizes["embedding"][-2:] == [600 * 8, 600 * 8 * 4]
    assert sizes["small embedding"][-2:] == [500 * 8, 500 * 8]
    # the gradient of 6 x 200 scores, and the product before it is summed up
    assert sizes["softmax"] == [6 * 200 * 4] * 2
    # gradients of q, k, v; output times gradient, its sums twice; then the sums, tiles of 64 x 64
    row, whole = 2 * 3 * 200 * 4, 2 * 3 * 200 * 64 * 4
    tiles = 2 * 3 * 4 * (64 * 64 * 4 + 16)
    assert sizes["efficient"][:3] == [whole] * 3
    assert sizes["efficient"][3:8] == [whole, row, row, row, tiles]
    # the queries' gradient in 32 bits and one number per row, for lengths rounded up to 128
    assert sizes["flash"][-2:] == [2 * 3 * 256 * 4, 2 * 256 * 3 * 64 * 4]


@pytest.mark.parametrize(
    "options",
    [
        "{gpt2} --attention eager --optimizer sgd",
        "validation/configs/mt5.json --target-length 32 --attention eager --checkpointing full",
        "{gpt2} --attention math --reversible",
    ],
)
def test_a_step_allocates_what_real_memory_does(
    measure: Measure, tmp_path: Path, options: str
) -> None:
    path = tmp_path / "gpt2.json"
    path.write_text(GPT2)
    for counted, real in measure(f"call unlike {options.format(gpt2=path)} {PLAIN}"):
        assert counted == []
        assert all(node in CPU_BUFFERS or not operation for operation, node, _ in real), real


def test_marks_and_hooks_change_nothing(measure: Measure) -> None:
    for model in ("gpt2-s", "t5-small"):
        watched, alone = measure(f"call watched {model} {SMALL} --checkpointing full")
        assert watched == alone


def test_a_library_made_for_another_environment_is_not_loaded(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    first, second = tmp_path / "first/torch", tmp_path / "second/torch"
    assert counting_device.cached_library(first) != counting_device.cached_library(second)
    assert counting_device.cached_library(first) == counting_device.cached_library(first)
