"""A measured step beside the prediction, as lines to print."""

from collections.abc import Iterator

from calculator.cards import Card, find_card
from calculator.errors import InputError
from calculator.planner.pace import pace_of
from calculator.report import Phase
from calculator.units import GiB, format_bytes, format_seconds
from validation.answers import Answer, answer
from validation.compare import Comparison, compare
from validation.configuration import Configuration
from validation.rows import Row

HEADING = f"{'allocated':^31}{'reserved':^31}{'step':>8}"


def table(configuration: Configuration, row: Row) -> Iterator[str]:
    """One step by phase: the lines that `python -m validation measure MODEL` prints."""
    yield f"{configuration.command} on {row.get('gpu', {}).get('card', row['device'])}"
    if isinstance(refusal := configuration.subject.counted, InputError):
        yield f"not yet counted: {refusal}"
        yield from _measured(row)
        return
    (comparison,) = compare([row])
    yield f"{'':<22}{'predicted':>14}{'measured':>14}{'error':>10}"
    yield from _phases(comparison)
    yield _line("peak", comparison.predicted, comparison.measured)
    yield from _of_a_card(comparison)


def beside(row: Row) -> str:
    """One step in one line: predicted, measured and error of what a row has, and its seconds."""
    (found,) = compare([row])
    figures = [_pair(found.predicted, found.measured), f"{'':31}"]
    if "reserved" in row:
        ours = _answer(found)
        figures = [
            _pair(ours.allocated, row["allocated"]),
            _pair(ours.reserved, row["reserved"]),
        ]
    seconds = format_seconds(row["seconds"]) if "seconds" in row else ""
    return f"{''.join(figures)}{seconds:>8}"


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
        if name in measured:  # a stage that is not the last has no loss
            yield _line(name, predicted[name], measured[name])


def _of_a_card(comparison: Comparison) -> Iterator[str]:
    """The lines of a real card alone."""
    row = comparison.row
    if "reserved" not in row:
        return
    ours = _answer(comparison)
    yield _line("allocated", ours.allocated, row["allocated"])
    yield _line("reserved", ours.reserved, row["reserved"])
    if row.get("driver_process") is not None:
        yield _line("shown by nvidia-smi", ours.used, row["driver_process"])
    configuration = comparison.configuration
    clocked = pace_of(configuration.architecture, configuration.plan.on(_card(row)))
    yield _step(clocked.step if clocked else None, row["seconds"])


def _step(predicted: float | None, measured: float) -> str:
    """Seconds of a step beside the clock's, if it has any."""
    if predicted is None:
        return f"{'step':<36}{format_seconds(measured):>14}"
    times = f"{format_seconds(predicted):>14}{format_seconds(measured):>14}"
    return f"{'step':<22}{times}{100 * (predicted / measured - 1):>+8.2f} %"


def _answer(comparison: Comparison) -> Answer:
    """The answer for the card of a row."""
    configuration = comparison.configuration
    return answer(configuration.architecture, configuration.plan, _card(comparison.row))


def _card(row: Row) -> Card:
    """The card of a row, or one of as much memory."""
    gpu = row["gpu"]
    try:
        return find_card(gpu["card"])
    except InputError:
        return find_card(f"{int(gpu['memory']) // GiB}GiB")


def _line(name: str, predicted: int, measured: int) -> str:
    sizes = f"{format_bytes(predicted):>14}{format_bytes(measured):>14}"
    return f"{name:<22}{sizes}{_error(predicted, measured):>10}"


def _pair(predicted: int, measured: int) -> str:
    sizes = f"{format_bytes(predicted):>11}{format_bytes(measured):>11}"
    return f"{sizes}{_error(predicted, measured):>9}"


def _error(predicted: int, measured: int) -> str:
    return f"{100 * (predicted / measured - 1):+.2f} %"
