"""One configuration measured on the reader's own machine, beside the prediction."""

from collections.abc import Iterator

from calculator.units import format_bytes
from validation.compare import Comparison, compare
from validation.configuration import Configuration
from validation.rows import Row

MOMENTS = ("forward", "loss", "backward", "update")


def check(configuration: Configuration, row: Row) -> Iterator[str]:
    """The lines that `python -m validation check` prints."""
    (comparison,) = compare([row])
    yield f"{configuration.command} on {row.get('gpu', {}).get('card', row['device'])}"
    yield f"{'':<22}{'predicted':>14}{'measured':>14}{'error':>10}"
    yield from _moments(comparison)
    yield _line("peak", comparison.predicted, comparison.measured)
    yield from _above(comparison)


def _moments(comparison: Comparison) -> Iterator[str]:
    predicted = {moment.value: memory.total for moment, memory in comparison.report.moments.items()}
    measured = {name: moment["peak"] for name, moment in comparison.row["moments"].items()}
    measured |= comparison.row.get("allocator_moments", {})
    for name in MOMENTS:
        yield _line(name, predicted[name], measured[name])


def _above(comparison: Comparison) -> Iterator[str]:
    """What a GPU holds on top of the peak; only a real one tells."""
    row = comparison.row
    if "reserved" in row:
        yield f"{'workspaces':<36}{format_bytes(row['workspaces']):>14}"
        yield f"{'reserved by PyTorch':<36}{format_bytes(row['reserved']):>14}"
    if row.get("driver_process") is not None:
        yield f"{'shown by nvidia-smi':<36}{format_bytes(row['driver_process']):>14}"


def _line(name: str, predicted: int, measured: int) -> str:
    error = f"{100 * (predicted / measured - 1):+.2f} %"
    return f"{name:<22}{format_bytes(predicted):>14}{format_bytes(measured):>14}{error:>10}"
