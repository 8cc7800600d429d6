"""A volunteer's own account: a signed file that its host reads and does not keep."""

import re
import time
from dataclasses import asdict, dataclass, field
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from training.access import envelope
from training.access.envelope import FileError
from training.access.signatures import PeerKey
from training.run.live import PeerState
from training.run.milestones import Milestone
from training.sparse.payload import MOST

MOST_BYTES = envelope.OVERHEAD_BYTES
OLDEST_SECONDS = 600.0
_KIND = "report"
_NAME = r"[\w .@-]{1,40}"


Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=0, lt=MOST)]


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

    name: Annotated[str, Field(pattern=rf"^{_NAME}$")]
    state: Annotated[str, Field(pattern=f"^({'|'.join(PeerState)})$")]
    session: Amount
    time: Amount
    number: Count
    loss: Amount | None
    bytes_sent: Count
    bytes_received: Count
    milestones: dict[Annotated[str, Field(pattern=f"^({'|'.join(Milestone)})$")], Amount] = field(
        default_factory=dict
    )

    __pydantic_config__ = ConfigDict(extra="forbid")


def write(run: str, report: Report, key: PeerKey) -> bytes:
    """The signed file of a report."""
    return envelope.seal(_KIND, {**asdict(report), "run": run}, b"", key)


def read(content: bytes, run: str, now: float | None = None) -> tuple[str, Report]:
    """The identity of whoever signed a report, and what it says.

    Raises:
        FileError: it is none of this run and time.
    """
    file = envelope.open_file(_KIND, content, 0)
    if file.fields.pop("run", None) != run:
        raise FileError("made for another run")
    try:
        report = _READER.validate_python(file.fields)
    except ValidationError as error:
        first = error.errors()[0]
        is_value = first["type"] not in ("missing", "unexpected_keyword_argument")
        raise FileError(
            f"its {first['loc'][0]} is none" if is_value else "its header has other fields"
        ) from error
    if abs(report.time - (time.time() if now is None else now)) > OLDEST_SECONDS:
        raise FileError("made at another time")
    return file.signer, report


def is_name(value: object) -> bool:
    """True for what a volunteer may be called."""
    return isinstance(value, str) and re.fullmatch(_NAME, value) is not None


_READER = TypeAdapter(Report)
