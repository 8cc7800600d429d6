"""A volunteer's own account: a signed file that its host reads and does not keep."""

import math
import re
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from training.access.signatures import PeerKey
from training.run.live import PeerState
from training.run.milestones import Milestone
from training.sparse import envelope
from training.sparse.payload import is_count

MOST_BYTES = envelope.OVERHEAD_BYTES
OLDEST_SECONDS = 600.0
_KIND = "report"
_NAME = re.compile(r"[\w .@-]{1,40}")


class ReportError(ValueError):
    """A report that is none; the message says why."""


@dataclass(frozen=True, slots=True)
class Report:
    """A volunteer's own account; times in seconds since 1970.

    Nothing in it earns credit: the lists of what the rounds took do.

    Attributes:
        state: of `PeerState`.
        session: its start.
        number: the round that it is in.
        loss: mean of its local steps in that round, None before there is one.
        bytes_sent, bytes_received: of files, since its start.
        milestones: see `training.run.milestones`.
    """

    name: str
    state: str
    session: float
    time: float
    number: int
    loss: float | None
    bytes_sent: int
    bytes_received: int
    milestones: dict[str, float] = field(default_factory=dict)


def write(run: str, report: Report, key: PeerKey) -> bytes:
    """The signed file of a report."""
    return envelope.seal(_KIND, {**asdict(report), "run": run}, b"", key)


def read(content: bytes, run: str, now: float | None = None) -> tuple[str, Report]:
    """The identity of whoever signed a report, and what it says.

    Raises:
        ReportError: it is none of this run and time.
    """
    try:
        file = envelope.open_file(_KIND, content, 0)
    except envelope.FileError as error:
        raise ReportError(str(error)) from error
    fields = file.fields
    if fields.pop("run", None) != run:
        raise ReportError("made for another run")
    try:
        report = Report(**fields)
    except TypeError as error:
        raise ReportError("its header has other fields") from error
    for name, is_right in _RULES.items():
        if not is_right(getattr(report, name)):
            raise ReportError(f"its {name} is none")
    if abs(report.time - (time.time() if now is None else now)) > OLDEST_SECONDS:
        raise ReportError("made at another time")
    return file.signer, report


def is_name(value: object) -> bool:
    """True for what a volunteer may be called."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_amount(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]


def _are_milestones(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    known = {milestone.value for milestone in Milestone}
    return value.keys() <= known and all(map(_is_amount, value.values()))


_RULES: dict[str, Any] = {
    "name": is_name,
    "state": lambda value: value in [state.value for state in PeerState],
    "session": _is_amount,
    "time": _is_amount,
    "number": is_count,
    "loss": lambda value: value is None or _is_amount(value),
    "bytes_sent": is_count,
    "bytes_received": is_count,
    "milestones": _are_milestones,
}
