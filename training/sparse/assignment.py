"""The announcement of a round's judging: who measures which updates, and on which sequences.

The monitor makes it once the round takes no more updates, and draws the judges at random. A hash
of the round would not do for the draw: whoever uploads last could vary an update until the hash
suits it. The monitor could choose judges that suit itself, but gains nothing by that, since it
signs the list of the round anyway. Nobody knows the judges or the sequences before all updates
are in.

The sequences are a file of their own: for each one its text ids, then its image codes, as
unsigned 16-bit little-endian numbers.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

from training.access.signatures import PeerKey
from training.sparse import envelope, payload
from training.sparse.closing import MOST_PAYLOADS
from training.sparse.envelope import FileError
from training.sparse.payload import PayloadError, Round
from training.sparse.store import StoreError, is_digest
from training.sparse.swarm import Swarm

FOLDER = "assignments"  # of the announcements' names
SEQUENCES_FOLDER = "sequences"
MOST_ASSIGNED = 64  # updates of a judge
SEQUENCES = 4  # of a batch
MOST_SEQUENCES = 1024
_MOST_BYTES = 2**19  # of an announcement
_KIND = "assignment"

Batch = dict[str, torch.Tensor]  # text_ids, int64 [B, T], and image_codes, int64 [B, I]


class AssignmentError(RuntimeError):
    """An announcement that cannot be followed; the message says why."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A round's announcement.

    Attributes:
        of: the round.
        sequences: SHA-256 of the file with the sequences.
        shares: by judge, the SHA-256 of the payloads that it is to measure.
    """

    of: Round
    sequences: str
    shares: Mapping[str, Sequence[str]]


def publish(swarm: Swarm, assignment: Assignment, key: PeerKey) -> str:
    """Sign an announcement and publish it under its round's name; gives the file's SHA-256."""
    body = json.dumps(
        {judge: list(share) for judge, share in assignment.shares.items()},
        sort_keys=True,
        separators=(",", ":"),
    )
    fields = {**asdict(assignment.of), "sequences": assignment.sequences}
    sha256 = swarm.store.put(envelope.seal(_KIND, fields, body.encode(), key))
    number = assignment.of.number
    swarm.store.point(name_of(SEQUENCES_FOLDER, number), assignment.sequences)
    swarm.store.point(name_of(FOLDER, number), sha256)
    return sha256


def find(swarm: Swarm, of: Round) -> tuple[str, Assignment] | None:
    """The announcement of a round, checked, and its SHA-256; None while there is none.

    Raises:
        AssignmentError: with the reason, when it cannot be had or does not hold.
    """
    try:
        sha256 = swarm.store.find(name_of(FOLDER, of.number))
        if sha256 is None:
            return None
        content = swarm.store.get(sha256, _MOST_BYTES + envelope.OVERHEAD_BYTES)
        return sha256, _read(content, swarm, of)
    except (StoreError, FileError, PayloadError) as error:
        raise AssignmentError(f"the judging of round {of.number}: {error}") from error


def pack_sequences(batches: Sequence[Batch]) -> bytes:
    """The file of a round's sequences."""
    rows = torch.cat([torch.cat([b["text_ids"], b["image_codes"]], dim=1) for b in batches])
    return rows.numpy().astype("<u2").tobytes()


def most_sequence_bytes(text_length: int, image_length: int) -> int:
    """The largest file of sequences of that many text ids and image codes."""
    return 2 * MOST_SEQUENCES * (text_length + image_length)


def unpack_sequences(content: bytes, text_length: int, image_length: int) -> list[Batch]:
    """Batches from the file of a round's sequences.

    Raises:
        AssignmentError: it does not hold two or more whole batches.
    """
    numbers = np.frombuffer(content[: len(content) // 2 * 2], "<u2").astype(np.int64)
    length = text_length + image_length
    count = len(numbers) // length
    if 2 * count * length != len(content) or count < 2 * SEQUENCES or count % SEQUENCES:
        raise AssignmentError("the sequences are not those of this run's model")
    rows = torch.from_numpy(numbers.reshape(count, length))
    return [
        {"text_ids": part[:, :text_length], "image_codes": part[:, text_length:]}
        for part in rows.split(SEQUENCES)
    ]


def name_of(folder: str, number: int) -> str:
    """The name of a round's file, or of its files' folder."""
    return f"{folder}/{number:09d}"


def _read(content: bytes, swarm: Swarm, of: Round) -> Assignment:
    file = envelope.open_file(_KIND, content, _MOST_BYTES)
    sequences = file.fields.pop("sequences", None)
    payload.check_round(payload.read_round(file.fields), of)
    if file.signer not in swarm.closers:
        raise FileError("signed by a stranger")
    if not is_digest(sequences):
        raise FileError("it names no sequences")
    return Assignment(of, sequences, _parse_shares(file.body))


def _parse_shares(body: bytes) -> dict[str, tuple[str, ...]]:
    try:
        shares = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FileError("its body is no list of judges") from error
    if not isinstance(shares, dict) or len(shares) > MOST_PAYLOADS:
        raise FileError(f"its body is no list of at most {MOST_PAYLOADS} judges")
    for share in shares.values():
        is_share = isinstance(share, list) and 0 < len(share) <= MOST_ASSIGNED
        if not is_share or not all(map(is_digest, share)):
            raise FileError("a judge's share is none")
    return {judge: tuple(share) for judge, share in shares.items()}
