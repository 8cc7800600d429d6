"""The list of a round: the payloads that it took, signed, so that everybody applies the same."""

import json
import math
from collections.abc import Collection
from dataclasses import asdict, astuple, dataclass
from functools import partial

from training.access import envelope
from training.access.envelope import FileError
from training.access.signatures import PeerKey
from training.run.recipes import MOST_PAYLOADS
from training.sparse import payload
from training.sparse.codec import decode
from training.sparse.layout import Layout
from training.sparse.payload import Payload, Round
from training.sparse.shared import Contribution, SharedState
from training.sparse.store import Store, StoreError, is_digest

_MOST_BYTES = 2**18  # of a list
_KIND = "closing"
HELD_BYTES = 2**30  # of decoded updates; the others are decoded twice
FOLDER = "closings"  # of the lists' names


@dataclass(frozen=True)
class Swarm:
    """A run as its peers see it.

    Attributes:
        run: the run's name.
        layout: of the model's parameters.
        store: where the files are.
        closers: identities that may close rounds.
        learning_rate: of the step that a round makes.
    """

    run: str
    layout: Layout
    store: Store
    closers: Collection[str]
    learning_rate: float

    def round_of(self, state: SharedState) -> Round:
        """The round that begins with a state."""
        return Round(self.run, state.round, state.digest())


class ClosingError(RuntimeError):
    """A list that cannot be followed; the message says why."""


class DivergedError(ClosingError):
    """The step of a round gave other bits here than where the round was closed."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A payload that a round took: its file's SHA-256, its peer's identity, its samples."""

    sha256: str
    peer: str
    samples: int


@dataclass(frozen=True, slots=True)
class Closing:
    """A round's list.

    Attributes:
        of: the round.
        taken: in the order in which all peers apply them; none where all were left out.
        end: digest of the shared state afterwards.
    """

    of: Round
    taken: tuple[Taken, ...]
    end: str


def publish(swarm: Swarm, closing: Closing, key: PeerKey) -> str:
    """Sign a list and publish it under its round's name; gives the file's SHA-256."""
    body = json.dumps([astuple(one) for one in closing.taken], separators=(",", ":")).encode()
    content = envelope.seal(_KIND, {**asdict(closing.of), "end": closing.end}, body, key)
    sha256 = swarm.store.put(content)
    swarm.store.point(_name(closing.of.number), sha256)
    return sha256


def find(swarm: Swarm, number: int) -> Closing | None:
    """The list of a round, checked; None while there is none.

    Raises:
        ClosingError: with the reason, when it cannot be had or does not hold.
    """
    try:
        sha256 = swarm.store.find(_name(number))
        if sha256 is None:
            return None
        content = swarm.store.get(sha256, _MOST_BYTES + envelope.OVERHEAD_BYTES)
        closing = _read(content, swarm)
    except (StoreError, FileError) as error:
        raise ClosingError(f"the list of round {number}: {error}") from error
    if closing.of.number != number:
        raise ClosingError(f"the list of round {number}: made for round {closing.of.number}")
    return closing


def apply(swarm: Swarm, closing: Closing, state: SharedState) -> SharedState:
    """The state after a round, from the payloads on its list; `state` stays as it is.

    Raises:
        ClosingError: the list is of another round, or a payload is not to be had as it says.
        DivergedError: the state afterwards is not the one that the list names.
    """
    try:
        payload.check_round(closing.of, swarm.round_of(state))
    except FileError as error:
        raise ClosingError(f"the list of round {closing.of.number}: {error}") from error
    after = step(swarm, closing.of, closing.taken, state)
    if after.digest() != closing.end:
        raise DivergedError(f"round {closing.of.number} ended with other weights here")
    return after


def step(swarm: Swarm, of: Round, taken: tuple[Taken, ...], state: SharedState) -> SharedState:
    """The state after a round's step on its payloads, most of which stay encoded until then.

    Raises:
        ClosingError: a payload cannot be had, or is not the one on the list.
    """
    parts: list[Contribution] = []
    held = 0
    for one in taken:
        content = _fetch(swarm, of, one.sha256)
        found = _open(swarm, of, one, content)
        held += found.update.places.nbytes + found.update.values.nbytes
        if held <= HELD_BYTES:
            parts.append(Contribution.of(found.samples, found.update))
        else:
            encoded = content[-swarm.layout.update_bytes :]
            read = partial(decode, encoded, swarm.layout)
            parts.append(Contribution(found.samples, found.update.norm, read))
    after = state.copy()
    after.step(parts, swarm.learning_rate)
    return after


def read_payload(swarm: Swarm, of: Round, taken: Taken) -> Payload:
    """A payload of a list.

    Raises:
        ClosingError: it cannot be had, or is not the one on the list.
    """
    return _open(swarm, of, taken, _fetch(swarm, of, taken.sha256))


def _fetch(swarm: Swarm, of: Round, sha256: str) -> bytes:
    try:
        return swarm.store.get(sha256, payload.most_bytes(swarm.layout))
    except StoreError as error:
        raise ClosingError(f"a payload of round {of.number}: {error}") from error


def _open(swarm: Swarm, of: Round, taken: Taken, content: bytes) -> Payload:
    try:
        found = payload.read(content, of, swarm.layout, math.inf)
    except FileError as error:
        raise ClosingError(f"a payload of round {of.number}: {error}") from error
    if (found.peer, found.samples) != (taken.peer, taken.samples):
        raise ClosingError(f"a payload of round {of.number} is not the one on the list")
    return found


def _read(content: bytes, swarm: Swarm) -> Closing:
    file = envelope.open_file(_KIND, content, _MOST_BYTES)
    end = file.fields.pop("end", None)
    of = payload.read_round(file.fields)
    if of.run != swarm.run:
        raise FileError("made for another run")
    if file.signer not in swarm.closers:
        raise FileError("signed by a stranger")
    if not isinstance(end, str) or not is_digest(end):
        raise FileError("it names no state afterwards")
    return Closing(of, _parse_taken(file.body), end)


def _parse_taken(body: bytes) -> tuple[Taken, ...]:
    try:
        entries = json.loads(body)
        taken = tuple(Taken(*entry) for entry in entries)
    except (ValueError, TypeError, RecursionError) as error:
        raise FileError("its body is no list of payloads") from error
    if not isinstance(entries, list) or len(taken) > MOST_PAYLOADS:
        raise FileError(f"its body is no list of at most {MOST_PAYLOADS} payloads")
    for one in taken:
        is_named = is_digest(one.sha256) and isinstance(one.peer, str)
        if not (is_named and payload.is_count(one.samples) and one.samples):
            raise FileError("it has a payload that is none")
    peers = [one.peer for one in taken]
    if peers != sorted(set(peers)):
        raise FileError("its payloads are not in the order of their peers")
    return taken


def _name(number: int) -> str:
    return f"{FOLDER}/{number:09d}"
