"""A real GPU's allocator and driver figures for a step that the ledger has recorded too."""

import os
import subprocess
from typing import Any

import torch

from validation.storage import Phase, block_bytes


class AllocatorWatcher:
    """The caching allocator's highest figure in each phase of a step."""

    def __init__(self) -> None:
        self.phase = Phase.FORWARD
        self.peaks = dict.fromkeys(Phase, 0)
        self.gradients: dict[int, int] = {}  # bytes by address
        torch.cuda.reset_peak_memory_stats()

    def start_micro_step(self) -> None:
        """A forward pass begins."""
        self.start_phase(Phase.FORWARD)

    def start_phase(self, phase: Phase) -> None:
        """Close the books of the phase that ends."""
        self.close()
        self.phase = phase

    def close(self) -> None:
        """Note the highest figure since the last call."""
        highest = torch.cuda.max_memory_allocated()
        self.peaks[self.phase] = max(self.peaks[self.phase], highest)
        torch.cuda.reset_peak_memory_stats()

    def keep(self) -> None:
        """The allocator does not know what is kept."""

    def gradient(self, parameter: torch.Tensor) -> None:
        """Note the bytes of a gradient that is complete."""
        assert parameter.grad is not None
        storage = parameter.grad.untyped_storage()
        self.gradients[storage.data_ptr()] = block_bytes(storage.nbytes())

    def backward_done(self) -> None:
        """Backward's figure is noted when the update starts."""


def card() -> dict[str, str]:
    """The GPU, its driver and the CUDA version, for a row."""
    properties = torch.cuda.get_device_properties(0)
    return {
        "card": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory": str(properties.total_memory),
        "driver": _nvidia_smi("--query-gpu=driver_version").partition("\n")[0],
        "cuda": str(torch.version.cuda),
    }


def process_bytes() -> int | None:
    """The driver's figure for this process; None if it has none (some containers)."""
    for line in _nvidia_smi("--query-compute-apps=pid,used_memory").splitlines():
        pid, _, mebibytes = line.partition(",")
        if pid.strip() == str(os.getpid()) and mebibytes.strip().isdecimal():
            return int(mebibytes) * 2**20
    return None


def _nvidia_smi(query: str) -> str:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def emptied_card() -> tuple[int, int]:
    """Give back all that earlier steps of this process left, as if it began now.

    Gives the bytes that stay, allocated and reserved: some libraries never return theirs.
    """
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()


def allocator_figures(watcher: AllocatorWatcher, alive: int, left: int) -> dict[str, Any]:
    """A row's figures of the allocator and the driver, in bytes.

    `allocated` is the most that PyTorch reports, less what was `left` by other steps. `alive` are
    weights, states and inputs; what the allocator holds beyond them after the step are the
    libraries' workspaces (cuBLAS) and what it did not split off its blocks, which `peak` leaves out
    and `workspaces` reports.
    """
    watcher.close()
    beyond = torch.cuda.memory_allocated() - alive
    peaks = {phase.value: peak - beyond for phase, peak in watcher.peaks.items()}
    phase = max(peaks, key=lambda name: peaks[name])
    return {
        "gradients": sum(watcher.gradients.values()),
        "peak": peaks[phase],
        "phase": phase,
        "phases": {name: {"peak": peak} for name, peak in peaks.items()},
        "allocated": max(watcher.peaks.values()) - left,
        "workspaces": beyond - left,
        "driver_process": process_bytes(),
        "gpu": card(),
    }
