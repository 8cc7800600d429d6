"""The calculator's figures beside the measured ones: no PyTorch needed."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.evidence import ALL_LINEAR
from calculator.report import Report
from calculator.techniques.collectives import BROADCAST
from validation.configuration import Configuration
from validation.rows import Row

EXACT: Final = ("weights", "gradients", "optimizer")
CLOSE_PHASES: Final = 0.01  # below this difference of the two highest, either may be the peak
NEARLY_EXACT: Final = 0.0001  # a hundredth of a percent, the bound of every phase


@dataclass(frozen=True, slots=True)
class Comparison:
    """One configuration, measured and calculated; sizes in bytes."""

    configuration: Configuration
    row: Row
    report: Report

    @property
    def measured(self) -> int:
        """The measured peak."""
        return int(self.row["peak"])

    @property
    def predicted(self) -> int:
        """The calculated peak."""
        return self.report.gpu.total

    @property
    def error(self) -> float:
        """Relative error of the peak."""
        return self.predicted / self.measured - 1

    @property
    def family(self) -> str:
        """The model's family."""
        return self.configuration.subject.kind

    def phase_errors(self) -> dict[str, float]:
        """Relative error of the most that is alive in each phase."""
        found = {phase.value: memory.total for phase, memory in self.report.phases.items()}
        return {
            name: found[name] / measured["peak"] - 1
            for name, measured in self.row["phases"].items()
        }

    def phases_beyond(self) -> dict[str, float]:
        """The phases whose error exceeds a hundredth of a percent, and the errors."""
        errors = self.phase_errors().items()
        return {name: error for name, error in errors if abs(error) > NEARLY_EXACT}

    def part_errors(self) -> dict[str, float]:
        """Error of each part at the measured peak's phase, relative to the whole peak.

        What is computed for the step and for no longer (activations, 16-bit copies, inputs,
        temporaries) is one part, `step`. A real card's allocator knows no parts.
        """
        phase = self.row["phase"]
        memory = next(item for key, item in self.report.phases.items() if key.value == phase)
        parts = self.row["phases"][phase].get("parts")
        if parts is None:
            return {}
        exact = {name: getattr(memory, name) - parts[name] for name in EXACT}
        step = sum(size for name, size in parts.items() if name not in EXACT)
        errors = {**exact, "step": memory.activations + memory.temporaries - step}
        return {name: error / self.measured for name, error in errors.items()}

    def static_errors(self) -> dict[str, int]:
        """Bytes by which what lives from step to step is off; to be zero."""
        update = next(item for key, item in self.report.phases.items() if key.value == "update")
        errors = {name: getattr(update, name) - self.row[name] for name in EXACT}
        return {**errors, "paged": self.report.paged - self.row.get("paged", {}).get("bytes", 0)}

    def collective_errors(self) -> dict[str, tuple[list[int], list[int]]]:
        """Collectives whose calls differ, in any order: their bytes as measured, and as calculated.

        DDP's broadcast of tables before a step is left out; those of updated weights come last.
        """
        measured = dict(self.row.get("collectives", {}))
        ours = {item.name: list(item.sizes) for item in self.report.collectives}
        sent = measured.pop(BROADCAST, [])
        if BROADCAST in ours:
            measured[BROADCAST] = sent[-len(ours[BROADCAST]) :]
        names = ours.keys() | measured.keys()
        pairs = {name: (measured.get(name, []), ours.get(name, [])) for name in sorted(names)}
        return {name: pair for name, pair in pairs.items() if sorted(pair[0]) != sorted(pair[1])}

    @property
    def phase_is_right(self) -> bool:
        """True if the highest phase is the measured one, or one that is nearly as high."""
        peaks = {name: item["peak"] for name, item in self.row["phases"].items()}
        named = peaks[self.report.peak_phase.value]
        return bool(named >= self.measured * (1 - CLOSE_PHASES))

    def techniques(self) -> list[str]:
        """The options that differ from the defaults, as `name=value`.

        Several GPUs are one technique, however many they are, and so are some layers, whatever
        their names are. The micro-batches of a pipeline belong to it.
        """
        skipped = ("model", "batch_size", "sequence_length", "target_length", "layers", "gpus")
        options = self.configuration.as_dict()
        if "gpus" in options:
            options["data_parallel"] = str(self.configuration.plan.data_parallel)
        if "pipeline_parallel" in options:
            options["pipeline_schedule"] = str(self.configuration.plan.pipeline_schedule)
            options.pop("accumulation", None)
        some = (
            *("tensor_parallel", "expert_parallel", "context_parallel"),
            *("pipeline_parallel", "checkpoint_every"),
        )
        options |= {name: "N" for name in some if name in options}
        if options.get("lora_targets", ALL_LINEAR) != ALL_LINEAR:
            options["lora_targets"] = "NAMES"
        named = [f"{name}={value}" for name, value in options.items() if name not in skipped]
        return named or ["defaults"]


def compare(rows: Iterable[Row]) -> list[Comparison]:
    """Each row with the calculator's report for the same configuration.

    Rows that the calculator has no option for (a padding mask), refuses or cannot count yet are
    left out.
    """
    comparisons = []
    for row in rows:
        configuration = Configuration.from_dict(row["configuration"])
        if not configuration.padding and not refused(configuration):
            report = estimate(configuration.architecture, configuration.resolved)
            comparisons.append(Comparison(configuration, row, report))
    return comparisons


def refused(configuration: Configuration) -> bool:
    """True if the calculator cannot count the model yet, or has a rule against the plan."""
    try:
        _ = configuration.architecture, configuration.resolved
    except InputError:
        return True
    return False


Keys = Callable[[Comparison], list[str]]


@dataclass(frozen=True, slots=True)
class Spread:
    """Absolute relative errors of a group: how many, median, 90th percentile, worst."""

    count: int
    median: float
    ninetieth: float
    worst: float


def spread(errors: Sequence[float]) -> Spread:
    """The spread of at least one error; the 90th percentile is the nearest rank."""
    ordered = sorted(abs(error) for error in errors)
    rank = max(0, -(-9 * len(ordered) // 10) - 1)
    return Spread(len(ordered), statistics.median(ordered), ordered[rank], ordered[-1])


def summary(comparisons: Sequence[Comparison], worst: int = 20) -> Iterator[str]:
    """The lines that `python -m validation compare` prints."""
    yield f"{len(comparisons)} configurations; relative errors of the peak, in %"
    yield f"{'':<34}{'rows':>6}{'median':>9}{'90 %':>9}{'worst':>9}"
    yield _line("all", [item.error for item in comparisons])
    yield from _groups(comparisons, lambda item: [item.family])
    yield from _groups(comparisons, lambda item: item.techniques())
    yield "\nof the most alive in each phase"
    for name in ("forward", "loss", "backward", "update"):
        yield _line(name, _errors_in(name, comparisons))
    yield from _phases_beyond(comparisons)
    parts = [errors for item in comparisons if (errors := item.part_errors())]
    if parts:
        yield "\nof each part at the peak, relative to the peak"
        for name in (*EXACT, "step"):
            yield _line(name, [errors[name] for errors in parts])
    yield "\n" + _static_line(comparisons)
    right = sum(item.phase_is_right for item in comparisons)
    yield f"phase of the peak right: {right} of {len(comparisons)}"
    yield f"\nworst {worst}:"
    for item in sorted(comparisons, key=lambda item: -abs(item.error))[:worst]:
        phases = f"{item.row['phase']} / {item.report.peak_phase.value}"
        command = item.configuration.command
        yield f"{100 * item.error:+8.3f} {item.measured:>16,} {phases:<20} {command}"


def as_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The same for a page: spreads by family and technique, and every configuration."""
    return {
        "families": _spreads(comparisons, lambda item: [item.family]),
        "techniques": _spreads(comparisons, lambda item: item.techniques()),
        "all": asdict(spread([item.error for item in comparisons])),
        "phases_right": sum(item.phase_is_right for item in comparisons),
        "phases_nearly_exact": sum(not item.phases_beyond() for item in comparisons),
        "statics_exact": sum(not any(item.static_errors().values()) for item in comparisons),
        "rows": [
            {
                "command": item.configuration.command,
                "family": item.family,
                "measured": item.measured,
                "predicted": item.predicted,
            }
            for item in comparisons
        ],
    }


def _spreads(comparisons: Sequence[Comparison], keys: Keys) -> dict[str, dict[str, Any]]:
    groups = _grouped(comparisons, keys)
    return {key: asdict(spread(errors)) for key, errors in sorted(groups.items())}


def _grouped(comparisons: Sequence[Comparison], keys: Keys) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = defaultdict(list)
    for item in comparisons:
        for key in keys(item):
            groups[key].append(item.error)
    return groups


def _errors_in(phase: str, comparisons: Sequence[Comparison]) -> list[float]:
    """Errors in a phase, which not every stage of a pipeline has."""
    found = (item.phase_errors() for item in comparisons)
    return [errors[phase] for errors in found if phase in errors]


def _phases_beyond(comparisons: Sequence[Comparison]) -> Iterator[str]:
    beyond = [(item, found) for item in comparisons if (found := item.phases_beyond())]
    exact = len(comparisons) - len(beyond)
    others = "; the others:" if beyond else ""
    yield f"all phases within {NEARLY_EXACT:.2%}: {exact} of {len(comparisons)}{others}"
    for item, found in beyond:
        errors = ", ".join(f"{name} {100 * error:+.3f}" for name, error in found.items())
        yield f"{errors}  {item.configuration.command}"


def _static_line(comparisons: Sequence[Comparison]) -> str:
    wrong = [item for item in comparisons if any(item.static_errors().values())]
    exact = len(comparisons) - len(wrong)
    return f"weights, gradients and states exact to the byte: {exact} of {len(comparisons)}"


def _groups(comparisons: Sequence[Comparison], keys: Keys) -> Iterator[str]:
    yield ""
    for key, errors in sorted(_grouped(comparisons, keys).items()):
        yield _line(key, errors)


def _line(name: str, errors: Sequence[float]) -> str:
    found = spread(errors)
    figures = "".join(
        f"{100 * value:>9.3f}" for value in (found.median, found.ninetieth, found.worst)
    )
    return f"{name:<34}{found.count:>6}{figures}"
