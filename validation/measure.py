"""One configuration's training step as a row: what was alive when, in bytes."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from validation.configuration import Configuration
from validation.ledger import Ledger
from validation.rows import ORACLE, Row, measure_command
from validation.session import Session, session
from validation.storage import Moment, Part, block_bytes

VERSIONED: Final = ("torch", "transformers", "bitsandbytes")


def measure(configuration: Configuration, device: str) -> Row:
    """What a step of this configuration needs once the optimizer's states exist.

    `device` is ``fake``, ``cpu`` or ``cuda``; on a real GPU the peak is the allocator's.

    Raises:
        InputError: for a configuration that no real class or library can run.
    """
    with session(configuration, device) as made:
        static = made.ledger.parts()
        host = made.ledger.parts("cpu") if made.device != "cpu" else {}
        made.step()
        row: Row = {
            "configuration": configuration.as_dict(),
            "command": measure_command(configuration, device),
            "device": device,
            **_static(made, static),
            **_peaks(made.ledger),
            "ram": {
                "peak": made.ledger.host_peak if made.device != "cpu" else 0,
                "optimizer": host.get(Part.OPTIMIZER, 0),
            },
            "transfer": {"to_ram": made.updater.to_ram, "to_gpu": made.updater.to_gpu},
            "versions": versions(),
        }
        if device == "cuda":
            row |= {"ledger_peak": row["peak"]} | made.step_on_allocator()
        return row


def _static(made: Session, static: dict[Part, int]) -> dict[str, int]:
    """What lives from step to step, and what is kept from forward to backward."""
    parameters = list(made.task.model.parameters())
    trained = sum(block_bytes(item.nbytes) for item in parameters)
    return {
        "parameters": sum(item.numel() for item in parameters),
        "buffers": static[Part.WEIGHTS] - trained,
        "weights": static[Part.WEIGHTS],
        "gradients": made.watcher.gradients,
        "optimizer": static[Part.OPTIMIZER],
        "inputs": static[Part.INPUTS],
        "activations": made.watcher.kept[Part.ACTIVATIONS],
        "autocast_copies": made.watcher.kept[Part.COPIES],
    }


def _peaks(ledger: Ledger) -> dict[str, Any]:
    moment = max(ledger.peaks, key=lambda item: ledger.peaks[item].total)
    highest = ledger.peaks[moment]
    return {
        "peak": highest.total,
        "peak_without_rounding": highest.exact,
        "moment": moment.value,
        "operation": highest.operation,
        "module": highest.module,
        "moments": {item.value: _moment(ledger, item) for item in Moment},
    }


def _moment(ledger: Ledger, moment: Moment) -> dict[str, Any]:
    peak = ledger.peaks[moment]
    parts = {part.value: size for part, size in peak.parts.items()}
    where = {"operation": peak.operation, "module": peak.module}
    return {"peak": peak.total, **where, "parts": parts}


def versions() -> dict[str, str | int]:
    """What a measurement depends on."""
    found: dict[str, str | int] = {"oracle": ORACLE, "python": platform.python_version()}
    for package in VERSIONED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
