"""One configuration measured on the reader's own machine, beside the prediction."""

from collections.abc import Iterator

from calculator.errors import InputError
from calculator.report import Phase
from calculator.units import format_bytes
from validation.compare import Comparison, compare
from validation.configuration import Configuration
from validation.rows import Row


def check(configuration: Configuration, row: Row) -> Iterator[str]:
    """The lines that `python -m validation check` prints."""
    yield f"{configuration.command} on {row.get('gpu', {}).get('card', row['device'])}"
    if isinstance(refusal := configuration.subject.counted, InputError):
        yield f"not yet counted: {refusal}"
        yield from _measured(row)
        return
    (comparison,) = compare([row])
    yield f"{'':<22}{'predicted':>14}{'measured':>14}{'error':>10}"
    yield from _phases(comparison)
    yield _line("peak", comparison.predicted, comparison.measured)
    yield from _above(comparison)


def _measured(row: Row) -> Iterator[str]:
    """The measurement, if there is no prediction to compare it with."""
    for name, phase in row["phases"].items():
        yield f"{name:<22}{format_bytes(phase['peak']):>14}"
    yield f"{'peak':<22}{format_bytes(row['peak']):>14}"
    yield f"{'parameters':<22}{row['parameters']:>14,}"


def _phases(comparison: Comparison) -> Iterator[str]:
    predicted = {phase.value: memory.total for phase, memory in comparison.report.phases.items()}
    measured = {name: phase["peak"] for name, phase in comparison.row["phases"].items()}
    for name in map(str, Phase):
        yield _line(name, predicted[name], measured[name])


def _above(comparison: Comparison) -> Iterator[str]:
    """Memory that a GPU holds beyond the peak; only a real one reports it."""
    row = comparison.row
    if "reserved" in row:
        yield f"{'workspaces':<36}{format_bytes(row['workspaces']):>14}"
        yield f"{'reserved by PyTorch':<36}{format_bytes(row['reserved']):>14}"
    if row.get("driver_process") is not None:
        yield f"{'shown by nvidia-smi':<36}{format_bytes(row['driver_process']):>14}"


def _line(name: str, predicted: int, measured: int) -> str:
    error = f"{100 * (predicted / measured - 1):+.2f} %"
    return f"{name:<22}{format_bytes(predicted):>14}{format_bytes(measured):>14}{error:>10}"
