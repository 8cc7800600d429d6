import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from tests.training.doctor.conftest import MakeSetup, expect
from training.doctor import hardware
from training.doctor.findings import Verdict
from training.network.connection import alone_in
from training.optimizer import lamb
from training.run.recipes import PAPER
from training.volunteer import fitting


def test_a_folder_that_is_not_writable_is_a_problem(make_setup: MakeSetup, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    setup = make_setup(folder=tmp_path / "file" / "volunteer")
    expect(hardware.look_at_folder(setup), Verdict.PROBLEM, fix="--folder")


def test_a_folder_in_use_is_told_and_looking_at_it_does_not_take_it(make_setup: MakeSetup) -> None:
    setup = make_setup()
    expect(hardware.look_at_folder(setup), Verdict.FINE)
    with alone_in(setup.folder):
        expect(hardware.look_at_folder(setup), Verdict.WARNING, cause="already running")
    expect(hardware.look_at_folder(setup), Verdict.FINE)


def test_the_disk_must_hold_backups(make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = make_setup(run={"recipe": "paper"})
    needed = hardware.disk_bytes(setup)
    # 125,894,244 parameters: twice 4 + 1 + 1 bytes in backups, 4 in a checkpoint; on top the buffer
    assert 0 < needed - 125_894_244 * 16 < 0.05 * needed
    for free, verdict in ((needed, Verdict.FINE), (needed - 1, Verdict.PROBLEM)):
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _path, usage=usage: usage)
        expect(hardware.look_at_disk(setup), verdict)


def test_memory_is_judged_as_join_does(
    make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    setup = make_setup(run={"recipe": "paper"})
    one = fitting.step_bytes(PAPER, torch.device("cpu"), 1)
    monkeypatch.setattr(fitting, "free_bytes", lambda _device: one)
    finding = expect(hardware.look_at_memory(setup), Verdict.FINE)
    assert finding.cause.startswith("a step on 1 sequence at once needs ")
    for micro_batch, fix in ((0, "choose another value"), (2, "--micro-batch")):
        other = replace(setup, micro_batch=micro_batch)
        expect(hardware.look_at_memory(other), Verdict.PROBLEM, fix=fix)
    monkeypatch.setattr(fitting, "free_bytes", lambda _device: one - 1)
    expect(hardware.look_at_memory(setup), Verdict.PROBLEM, cause="must be")


def test_ram_holds_the_optimizer(make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    free = {"cuda": 2**40, "cpu": 2**20}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (9, 0))
    monkeypatch.setattr(fitting, "free_bytes", lambda device: free[device.type])
    on_gpu, in_main_memory = hardware.look_at_memory(make_setup(run={"recipe": "paper"}))
    assert on_gpu.verdict is Verdict.FINE
    assert "on this GPU" in on_gpu.cause
    assert in_main_memory.verdict is Verdict.PROBLEM
    assert "1.00 MiB free RAM" in in_main_memory.cause


def make_smi(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver's program that is found, on a machine where PyTorch finds no GPU."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_a_gpu_that_pytorch_was_not_built_for_is_a_problem(
    make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_smi(tmp_path, "echo 'Tesla T4, 550.54'", monkeypatch)
    monkeypatch.setattr(torch.version, "cuda", None)
    finding = expect(hardware.look_at_gpu(make_setup()), Verdict.PROBLEM)
    assert finding.cause.endswith("without CUDA, but there is a GPU: Tesla T4 with driver 550.54")


def test_a_gpu_is_tried(make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    real = torch.ones
    monkeypatch.setattr(hardware, "ask_driver", lambda: "Tesla T4 with driver 580.95")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    capability = {"now": (7, 5)}
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability["now"])
    monkeypatch.setattr(torch, "ones", lambda size, device: real(size))
    finding = expect(hardware.look_at_gpu(make_setup()), Verdict.FINE)
    assert finding.cause.startswith("Tesla T4, PyTorch for CUDA ")
    assert finding.cause.endswith(
        "computes in float16 with loss scaling, because it has no bfloat16 units"
    )
    capability["now"] = (8, 0)
    (finding,) = hardware.look_at_gpu(make_setup())
    assert finding.cause.endswith("; computes in bfloat16")
    error = RuntimeError("CUDA error: no kernel image is available\nfor execution")
    monkeypatch.setattr(torch, "ones", Mock(side_effect=error))
    cause = "(CUDA error: no kernel image is available)"
    expect(hardware.look_at_gpu(make_setup()), Verdict.PROBLEM, cause)


@pytest.mark.parametrize("script", ["exit 9", "echo 'No devices were found' >&2; exit 6"])
def test_a_machine_without_a_gpu_computes_on_the_processor(
    make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str
) -> None:
    make_smi(tmp_path, script, monkeypatch)
    expect(hardware.look_at_gpu(make_setup()), Verdict.FINE)


def test_bitsandbytes_is_tried(make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    expect(hardware.look_at_eight_bits(make_setup()), Verdict.FINE)
    error = RuntimeError(
        "\nAttempted to use bitsandbytes native library functionality but it's not available.\n"
        "Original error: libcudart.so.13: cannot open shared object file\n"
    )
    monkeypatch.setattr(lamb, "quantise", Mock(side_effect=error))
    expect(hardware.look_at_eight_bits(make_setup()), Verdict.PROBLEM, cause="libcudart.so.13")


def test_wrong_codes_are_a_problem(make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lamb, "dequantise", lambda tensor, **_: torch.zeros(len(tensor.codes)))
    expect(hardware.look_at_eight_bits(make_setup()), Verdict.PROBLEM, cause="errors of up to 1")
