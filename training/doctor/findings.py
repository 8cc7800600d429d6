"""What the doctor looks at, and what it can find."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """How bad it is."""

    FINE = "fine"
    WARNING = "warning"  # joining works, with less or with luck
    PROBLEM = "problem"  # joining will fail


class PointName(StrEnum):
    """What is looked at; the names are those in the JSON."""

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
    """Something that is looked at.

    Attributes:
        title: as people read it.
        question: what is asked. reason: why it matters.
        needs_network: whether it can be answered only on line.
    """

    name: PointName
    title: str
    question: str
    reason: str
    needs_network: bool = False


@dataclass(frozen=True)
class Finding:
    """What came out at a point.

    Attributes:
        cause: what was found. fix: what to do about it; empty where all is fine.
        passes: whether waiting may fix it, so that it is no reason not to begin.
    """

    point: PointName
    verdict: Verdict
    cause: str
    fix: str = ""
    passes: bool = False

    def to_json(self) -> dict[str, Any]:
        """The finding as `--json` prints it."""
        return {
            "point": self.point.value,
            "title": POINTS[self.point].title,
            "verdict": self.verdict.value,
            "cause": self.cause,
            "fix": self.fix,
            "passes": self.passes,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Finding":
        """Read back what `to_json` gave."""
        return cls(
            PointName(value["point"]),
            Verdict(value["verdict"]),
            value["cause"],
            value["fix"],
            value["passes"],
        )


class NotFitError(Exception):
    """There is a problem that makes joining fail; what it is has been printed."""


def fine(point: PointName, cause: str) -> Finding:
    """A finding that needs nothing."""
    return Finding(point, Verdict.FINE, cause)


def worst(findings: list[Finding]) -> Verdict:
    """The worst verdict of all; fine where there is none."""
    order = list(Verdict)
    return max((finding.verdict for finding in findings), key=order.index, default=Verdict.FINE)


_ALL = (
    Point(
        PointName.SYSTEM,
        "System",
        "Is it Linux or macOS?",
        "hivemind, which carries the tensors, has no build for Windows; in WSL it runs.",
    ),
    Point(
        PointName.PYTHON,
        "Python",
        "Is its version one that is tested?",
        "Newer versions may lack packages, older ones cannot read this program.",
    ),
    Point(
        PointName.PACKAGES,
        "Packages",
        "Are their versions those of the extra `training`?",
        "Other versions may fail in ways that look like network errors.",
    ),
    Point(
        PointName.OPEN_FILES,
        "Open files",
        "May the process open enough files?",
        "Each connection counts as one, and the network keeps up to 512.",
    ),
    Point(
        PointName.FOLDER,
        "Folder",
        "Can the volunteer's folder be written, and does nobody else use it?",
        "It keeps the identity and the backup.",
    ),
    Point(
        PointName.DISK,
        "Disk",
        "Is there room for the backup and a checkpoint?",
        "A full disk ends the training hours later.",
    ),
    Point(
        PointName.MEMORY,
        "Memory",
        "Does a training step fit, by the calculator?",
        "What does not fit ends with an out-of-memory error in the first step.",
    ),
    Point(
        PointName.GPU,
        "GPU",
        "If there is one: do driver, PyTorch and GPU work together?",
        "If they do not, the processor would compute instead, far slower.",
    ),
    Point(
        PointName.EIGHT_BITS,
        "8-bit library",
        "Does bitsandbytes load its library, and compute what it should?",
        "The optimizer keeps its states in 8 bits.",
    ),
    Point(
        PointName.PORT,
        "Port",
        "Is the port to listen on free?",
        "Others connect to it.",
    ),
    Point(
        PointName.ENTRY_POINTS,
        "Entry points",
        "Does each entry point of the run answer?",
        "A newcomer finds the others through them.",
        needs_network=True,
    ),
    Point(
        PointName.REACHABILITY,
        "Reachability",
        "Can others connect to this machine? (The run's monitor tries.)",
        "Whoever cannot be reached has to call all others, and cannot pass gradients on.",
        needs_network=True,
    ),
    Point(
        PointName.CLOCK,
        "Clock",
        "Is it within 3 seconds of the others' clocks?",
        "Records in the network expire by the clock; one that is off sees them too early or late.",
        needs_network=True,
    ),
    Point(
        PointName.ACCESS,
        "Access",
        "If the run has an authority: does it admit you?",
        "Without access the entry points do not answer.",
        needs_network=True,
    ),
    Point(
        PointName.DATA,
        "Training data",
        "Can the data set and the tokenizer be read?",
        "They are streamed while training.",
        needs_network=True,
    ),
    Point(
        PointName.LIVE,
        "Live data",
        "Does the address of the run's live data answer?",
        "Checkpoints are there: the second source of the weights, beside other volunteers.",
        needs_network=True,
    ),
)

POINTS: dict[PointName, Point] = {point.name: point for point in _ALL}
