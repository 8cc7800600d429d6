"""Every kind of record that a run keeps in the hash table: its keys, its owner, its values.

Some are ours, some are hivemind's own: the peers' progress, who offers a state, who looks for a
group. Each owner has one record under a key. Whatever is not listed here is not stored.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, StrictBool, StrictBytes

from training.access.grants import MAX_BYTES, parse
from training.records.orders import BanOrder, EndOrder, RollbackOrder, key_of
from training.records.owners import identity_of
from training.records.reports import MOST, Amount, Count

LONGEST_SECONDS = 900.0  # a record expires at most so long after it is written
MATCHMAKING_SECONDS = 300.0
AVERAGERS = ("grad_averager", "state_averager")  # hivemind's names
MOST_GROUP_BITS = 12  # 4,096 groups at once

Check = Callable[[Any, str], object]  # of a value and its owner's identity; raises ValueError


@dataclass(frozen=True)
class Kind:
    """One kind of record.

    Attributes:
        name: in messages.
        tagged: the subkey is the owner's tag; else it is the owner's identity.
        check: gives the value as its reader takes it.
        seconds: the furthest ahead that it expires.
    """

    name: str
    tagged: bool
    check: Check
    seconds: float = LONGEST_SECONDS


class Progress(BaseModel, extra="forbid"):
    """A peer's progress, as hivemind's tracker writes it."""

    peer_id: StrictBytes
    epoch: Count
    samples_accumulated: Count
    samples_per_second: Amount
    time: Amount
    client_mode: StrictBool


def kinds_of(run: str, averagers: Iterable[str] = AVERAGERS) -> Iterator[tuple[str, Kind]]:
    """The keys of a run's records, each with its kind."""
    yield key_of(run, RollbackOrder), ORDER
    yield key_of(run, BanOrder), BANS
    yield key_of(run, EndOrder), END
    yield f"{run}_progress", PROGRESS
    yield f"{run}_access", ACCESS
    for prefix in (f"{run}_{averager}" for averager in averagers):
        yield f"{prefix}.all_averagers", OFFER
        for length in range(MOST_GROUP_BITS + 1):
            for group in range(2**length):
                bits = f"{group:0{length}b}" if length else ""
                yield f"{prefix}.0b{bits}", SEARCH


def _exactly(model: type[BaseModel]) -> Check:
    """A check that a value is a model's, with nothing to convert, to add or to leave out."""

    def check(value: Any, _owner: str) -> BaseModel:
        parsed = model.model_validate(value)
        if parsed.model_dump() != value:
            raise ValueError(f"not exactly a {model.__name__}")
        return parsed

    return check


def _check_progress(value: Any, owner: str) -> Progress | None:
    if value is None:  # a goodbye
        return None
    progress = _exact_progress(value, owner)
    assert isinstance(progress, Progress)
    if progress.peer_id != identity_of(owner):
        raise ValueError("another peer's progress")
    return progress


def _check_access(value: Any, owner: str) -> object:
    if not isinstance(value, bytes) or len(value) > MAX_BYTES:
        raise ValueError("not a grant")
    grant = parse(value)
    if grant.peer_id != owner:
        raise ValueError("another peer's grant")
    return grant


def _check_offer(value: Any, _owner: str) -> object:
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value < MOST:
        raise ValueError("not a priority")
    return value


def _check_search(value: Any, _owner: str) -> object:
    if type(value) is not bool:
        raise ValueError("neither True nor False")
    return value


_exact_progress = _exactly(Progress)

ORDER = Kind("order", tagged=True, check=_exactly(RollbackOrder))
BANS = Kind("list of bans", tagged=True, check=_exactly(BanOrder))
END = Kind("end", tagged=True, check=_exactly(EndOrder))
PROGRESS = Kind("progress", tagged=True, check=_check_progress)
ACCESS = Kind("grant", tagged=True, check=_check_access)
OFFER = Kind("offer of a state", tagged=False, check=_check_offer)
SEARCH = Kind("search for a group", False, _check_search, MATCHMAKING_SECONDS)
