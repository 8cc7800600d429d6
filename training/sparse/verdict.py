"""A judge's verdict on the updates that a round assigned to it: a small signed file."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from training.access.signatures import PeerKey
from training.sparse import envelope, payload
from training.sparse.envelope import FileError
from training.sparse.payload import PayloadError, Round
from training.sparse.store import is_digest

FOLDER = "verdicts"  # of the folders of a round's verdicts
_MOST_BODY = 2**14
MOST_BYTES = _MOST_BODY + envelope.OVERHEAD_BYTES
LARGEST = 1e3  # nats by which a loss may change; beyond, it is as good as infinite
_KIND = "verdict"


class VerdictError(ValueError):
    """A verdict that does not count; the message says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A measurement: the change of the loss by an update alone.

    Attributes:
        mean: over the batches, in nats; infinite where a loss is not finite.
        variance: of that mean.
    """

    mean: float
    variance: float

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return math.sqrt(self.variance)


def write(of: Round, assignment: str, findings: Mapping[str, Finding], key: PeerKey) -> bytes:
    """The signed file of a judge's findings by payload; without any, it abstains.

    Args:
        assignment: SHA-256 of the announcement.
    """
    body = json.dumps(
        [[sha256, *_figures(one)] for sha256, one in sorted(findings.items())],
        separators=(",", ":"),
        allow_nan=False,
    )
    fields = {**asdict(of), "assignment": assignment}
    return envelope.seal(_KIND, fields, body.encode(), key)


def read(
    content: bytes, of: Round, assignment: str, shares: Mapping[str, Collection[str]]
) -> tuple[str, dict[str, Finding]]:
    """A verdict's judge and its findings by payload.

    Args:
        shares: by judge, the payloads that it is to measure. Nobody's own is among them.

    Raises:
        VerdictError: with the reason, when it does not count.
    """
    try:
        file = envelope.open_file(_KIND, content, _MOST_BODY)
        named = file.fields.pop("assignment", None)
        payload.check_round(payload.read_round(file.fields), of)
    except (FileError, PayloadError) as error:
        raise VerdictError(str(error)) from error
    if named != assignment:
        raise VerdictError("made for another announcement")
    if file.signer not in shares:
        raise VerdictError("its signer is no judge of this round")
    findings = _parse(file.body)
    if not findings.keys() <= set(shares[file.signer]):
        raise VerdictError("it names an update that is not its judge's to measure")
    return file.signer, findings


def _figures(finding: Finding) -> Sequence[float | None]:
    known = abs(finding.mean) <= LARGEST and finding.variance <= LARGEST**2
    return (finding.mean, finding.variance) if known else (None, None)


def _parse(body: bytes) -> dict[str, Finding]:
    try:
        entries = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise VerdictError("its body is no list of findings") from error
    if not isinstance(entries, list):
        raise VerdictError("its body is no list of findings")
    findings: dict[str, Finding] = {}
    for entry in entries:
        if not (isinstance(entry, list) and len(entry) == 3 and is_digest(entry[0])):
            raise VerdictError("a finding is none")
        if entry[0] in findings:
            raise VerdictError("it judges an update twice")
        findings[entry[0]] = _read_figures(entry[1], entry[2])
    return findings


def _read_figures(mean: Any, variance: Any) -> Finding:
    if mean is None and variance is None:
        return Finding(math.inf, math.inf)
    if not all(type(value) in (int, float) for value in (mean, variance)):
        raise VerdictError("a figure is no number")
    if not (abs(mean) <= LARGEST and 0 <= variance <= LARGEST**2):
        raise VerdictError("a figure is out of range")
    return Finding(float(mean), float(variance))
