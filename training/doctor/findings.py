"""The doctor's checks, and its findings."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

NEWEST_FILE = "ask the organizers for the newest run file"  # a fix


class Verdict(StrEnum):
    """Severity of a finding."""

    FINE = "fine"
    WARNING = "warning"  # joining works, with limits or with luck
    PROBLEM = "problem"  # joining will fail


class PointName(StrEnum):
    """The checks, by their names in the JSON."""

    SYSTEM = "system"
    PYTHON = "python"
    PACKAGES = "packages"
    OPEN_FILES = "open-files"
    FOLDER = "folder"
    DISK = "disk"
    MEMORY = "memory"
    GPU = "gpu"
    EIGHT_BITS = "eight-bits"
    PORT = "port"
    ENTRY_POINTS = "entry-points"
    REACHABILITY = "reachability"
    CLOCK = "clock"
    ACCESS = "access"
    DATA = "data"
    LIVE = "live"


@dataclass(frozen=True)
class Point:
    """One check.

    Attributes:
        title: its name in words.
        question: the question it answers. reason: why the answer matters.
    """

    name: PointName
    title: str
    question: str
    reason: str


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    Attributes:
        cause: what was found. fix: what to do about it; empty if all is fine.
        passes: True if waiting may fix it, so that it need not prevent joining.
    """

    point: PointName
    verdict: Verdict
    cause: str
    fix: str = ""
    passes: bool = False

    def to_json(self) -> dict[str, Any]:
        """The finding as `--json` prints it."""
        return asdict(self) | {"title": POINTS[self.point].title}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Finding":
        """Restore a finding from the output of `to_json`."""
        known = {name: value[name] for name in ("cause", "fix", "passes")}
        return cls(PointName(value["point"]), Verdict(value["verdict"]), **known)


class NotFitError(Exception):
    """A problem makes joining fail; it has already been printed."""


def unchecked(point: PointName, package: str) -> Finding:
    """A finding of a check that needs a package."""
    cause = f"not checked: {package} does not import"
    return Finding(point, Verdict.PROBLEM, cause, "fix the packages first")


def fine(point: PointName, cause: str) -> Finding:
    """A finding that needs no action."""
    return Finding(point, Verdict.FINE, cause)


def worst(findings: list[Finding]) -> Verdict:
    """The worst verdict; fine if there are no findings."""
    order = list(Verdict)
    return max((finding.verdict for finding in findings), key=order.index, default=Verdict.FINE)


_ALL = (
    Point(
        PointName.SYSTEM,
        "System",
        "Is it Linux or macOS?",
        "hivemind, which transfers the tensors, has no build for Windows, but it runs in WSL.",
    ),
    Point(
        PointName.PYTHON,
        "Python",
        "Do we test this version?",
        "Newer versions may lack packages; older ones cannot run this program.",
    ),
    Point(
        PointName.PACKAGES,
        "Packages",
        "Do their versions match those that this program requires?",
        "Other versions may fail in ways that look like network errors.",
    ),
    Point(
        PointName.OPEN_FILES,
        "Open files",
        "Can the process open enough files?",
        "Each connection counts as a file, and the network keeps up to 512.",
    ),
    Point(
        PointName.FOLDER,
        "Folder",
        "Is the volunteer's folder writable, and not in use by another program?",
        "It holds the identity and the backup.",
    ),
    Point(
        PointName.DISK,
        "Disk",
        "Is there room for the backup and a checkpoint?",
        "A full disk would end the training hours later.",
    ),
    Point(
        PointName.MEMORY,
        "Memory",
        "According to the calculator, does a training step fit?",
        "If it does not, the first step ends with an out-of-memory error.",
    ),
    Point(
        PointName.GPU,
        "GPU",
        "If there is one, do driver, PyTorch and GPU work together?",
        "Otherwise the processor computes instead, far more slowly.",
    ),
    Point(
        PointName.EIGHT_BITS,
        "8-bit library",
        "Does bitsandbytes load its library and compute correctly?",
        "The optimizer keeps its states in 8 bits.",
    ),
    Point(PointName.PORT, "Port", "Is the port to listen on free?", "Others connect to it."),
    Point(
        PointName.ENTRY_POINTS,
        "Entry points",
        "Does each entry point of the run answer?",
        "A newcomer finds the others through them.",
    ),
    Point(
        PointName.REACHABILITY,
        "Reachability",
        "Can others connect to this machine? (The run's monitor tries.)",
        "If they can't, this machine has to connect to all others and cannot average gradients.",
    ),
    Point(
        PointName.CLOCK,
        "Clock",
        "Is it within 3 seconds of the others' clocks?",
        "Records in the network expire by the clock; a wrong clock drops them too early or late.",
    ),
    Point(
        PointName.ACCESS,
        "Access",
        "If the run has an authority, does it admit you?",
        "Without access the entry points do not answer.",
    ),
    Point(
        PointName.DATA,
        "Training data",
        "Can the data set and the tokenizer be read?",
        "The training data is streamed during training.",
    ),
    Point(
        PointName.LIVE,
        "Live data",
        "Does the address of the run's live data respond?",
        "It has the checkpoints, the second source of weights besides other volunteers.",
    ),
)

POINTS: dict[PointName, Point] = {point.name: point for point in _ALL}
