"""Payloads: what a peer publishes after its local steps, an update in a signed file."""

from dataclasses import asdict, dataclass
from typing import Any

from training.access import envelope
from training.access.envelope import FileError, SignedFile
from training.access.signatures import PeerKey
from training.sparse.codec import Update, decode
from training.sparse.layout import Layout
from training.sparse.store import is_digest

MOST = 2**40  # rounds, samples: more is no run
_KIND = "payload"


@dataclass(frozen=True, slots=True)
class Round:
    """A round of a run.

    Attributes:
        run: the run's name.
        number: counted from 0.
        start: digest of the shared state that it begins with.
    """

    run: str
    number: int
    start: str


@dataclass(frozen=True)
class Payload:
    """An update that its peer has signed, decoded.

    Attributes:
        peer: identity in base 58.
        samples: that it was computed from.
    """

    peer: str
    samples: int
    update: Update


def most_bytes(layout: Layout) -> int:
    """The largest file of a payload."""
    return layout.update_bytes + envelope.OVERHEAD_BYTES


def write(of: Round, samples: int, update: bytes, key: PeerKey) -> bytes:
    """The signed file of an encoded update."""
    return envelope.seal(_KIND, {**asdict(of), "samples": samples}, update, key)


def read(content: bytes, of: Round, layout: Layout, largest_norm: float) -> Payload:
    """Check a payload of a round and decode it: the signature first, the update last.

    Args:
        largest_norm: that its update may have.

    Raises:
        FileError: with the reason, when the round cannot take it.
    """
    file = envelope.open_file(_KIND, content, layout.update_bytes)
    samples = _check_fields(file, of)
    return Payload(file.signer, samples, decode(file.body, layout, largest_norm))


def _check_fields(file: SignedFile, of: Round) -> int:
    """The number of samples."""
    samples = file.fields.pop("samples", None)
    check_round(read_round(file.fields), of)
    if not is_count(samples) or not samples:
        raise FileError("its number of samples is none")
    return int(samples)


def read_round(fields: dict[str, Any]) -> Round:
    """The round in a file's fields, which name it and nothing else.

    Raises:
        FileError: when they do not.
    """
    try:
        of = Round(**fields)
    except TypeError as error:
        raise FileError("its header has other fields") from error
    if not (isinstance(of.run, str) and is_count(of.number) and is_digest(of.start)):
        raise FileError("its header names no round")
    return of


def check_round(found: Round, of: Round) -> None:
    """See that a file's round is the one that is wanted; raises FileError where it is not."""
    if found.run != of.run:
        raise FileError("made for another run")
    if found.number != of.number:
        raise FileError(f"made for round {found.number}, but this is {of.number}")
    if found.start != of.start:
        raise FileError("it starts from other weights than the round")


def is_count(value: object) -> bool:
    """True for a whole number of at least 0, within reason."""
    return type(value) is int and 0 <= value < MOST
