"""One rank alone holds what it holds beside real others, which talk over gloo."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.oracle

Measure = Callable[..., dict[str, Any]]
WORDS = (
    "validation/configs/llama.json --layers 3 --sequence-length 64 --precision fp32 "
    "--attention eager --gpus 2"
)
ATTEMPTS = 3  # on a busy machine gloo's threads may keep a tensor a moment longer


def peaks(row: dict[str, Any]) -> dict[str, float]:
    """The peak of each phase, in bytes."""
    return {phase: measured["peak"] for phase, measured in row["phases"].items()}


def beside_another(words: str, folder: Path) -> dict[str, Any]:
    """The row of the first of two real processes."""
    command = (sys.executable, "-m", "tests.validation.gloo")
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(folder / "store"), *words.split()],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    first, _ = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    return dict(first)


@pytest.mark.parametrize("way", ["ddp", "ddp-view"])
def test_a_replica_alone_needs_what_it_needs_beside_another(
    measure: Measure, tmp_path: Path, way: str
) -> None:
    words = f"{WORDS} --data-parallel {way}"
    alone = peaks(measure(words, "cpu"))
    least = dict.fromkeys(alone, math.inf)
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        real = peaks(beside_another(words, folder))
        least = {phase: min(least[phase], peak) for phase, peak in real.items()}
        if least == alone:
            break
    assert least == alone


def test_a_shard_alone_is_what_it_is_beside_another(measure: Measure, tmp_path: Path) -> None:
    # gloo's threads keep work tensors in the same memory for a while, so peaks are not compared
    words = f"{WORDS} --data-parallel fsdp"
    real, alone = beside_another(words, tmp_path), measure(words, "cpu")
    for name in ("gradients", "optimizer"):
        assert alone[name] == real[name]
    # what a first pass left behind counts as buffers, those tensors too
    assert alone["weights"] - alone["buffers"] == real["weights"] - real["buffers"]


def test_what_a_layer_gathers_is_what_the_calculator_says(measure: Measure) -> None:
    # 3 GPUs divide few of this model's rows
    from validation.compare import compare

    for way in (
        *("ddp --precision amp", "fsdp --precision mixed"),
        *("zero1 --precision amp", "zero2 --precision mixed"),
        *("fsdp --precision half --lora 4", "fsdp --precision mixed --lora 4"),
    ):
        words = f"validation/configs/qwen3.json --gpus 3 --data-parallel {way}"
        (found,) = compare([measure(f"{words} --sequence-length 80")])
        assert found.error == 0
        assert found.collective_errors() == {}


@pytest.mark.parametrize("gpus", [2, 3, 8, 64])
@pytest.mark.parametrize("model", ["gpt2-s", "validation/configs/mixtral.json"])
def test_zero_hands_each_rank_the_weights_that_torch_does(
    measure: Measure, model: str, gpus: int
) -> None:
    from calculator.parameters import parameter_tensors
    from calculator.techniques.zero import parts_of
    from validation.configuration import parse

    words = f"{model} --gpus {gpus} --data-parallel zero1 --sequence-length 32"
    configuration = parse(words.split())
    tensors = parameter_tensors(configuration.architecture, configuration.resolved)
    ours = [[item.elements for item in part] for part in parts_of(tensors, gpus)]
    assert ours == measure(f"call parts_by_torch {words}")


def test_a_share_of_layers_alone_is_what_it_is_beside_another(
    measure: Measure, tmp_path: Path
) -> None:
    words = (
        "validation/configs/mistral.json --layers 3 --sequence-length 64 --precision fp32 "
        "--attention eager --tensor-parallel 2"
    )
    real, alone = beside_another(words, tmp_path), measure(words, "cpu")
    for name in ("weights", "gradients", "optimizer"):
        assert alone[name] == real[name]
