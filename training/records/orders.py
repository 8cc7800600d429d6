"""Orders of a run's moderators: return to a checkpoint, ban contributors, end the run.

An order is a record in the DHT, signed like every other. It is believed when its signer is one of
the run's entry points: the run file names them with their identities, which are hashes of their
keys, so that whoever trusts the run file knows the keys. The monitor is an entry point.
"""

from typing import Annotated, TypeVar

from hivemind import DHT
from hivemind.utils import get_dht_time
from pydantic import BaseModel, Field

from training.records.owners import entries
from training.records.reports import Amount, Contributor, Count
from training.run.runfile import RunFile

EXPIRATION_SECONDS = 600.0  # the monitor repeats an order as long as the run goes on
END_SECONDS = 120.0  # of the last one, so that the organizers can soon go on with the run

MOST_BANNED = 1000


class RollbackOrder(BaseModel, extra="forbid"):
    """Go on from the weights of an earlier step.

    Attributes:
        checkpoint: the step whose weights are taken.
        step: the number under which the run goes on, above all that were reached: everybody who
            misses the order finds itself behind and takes the state from those who did not.
        sha256: of the published file.
        time: of the order, seconds since 1970.
    """

    checkpoint: Count
    step: Count
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    time: Amount


class BanOrder(BaseModel, extra="forbid"):
    """The contributors that are banned now, by public name; `time` is the list's."""

    contributors: Annotated[list[Contributor], Field(max_length=MOST_BANNED)]
    time: Amount


class EndOrder(BaseModel, extra="forbid"):
    """The run is over, before its schedule is; `time` is the order's."""

    time: Amount


Order = TypeVar("Order", RollbackOrder, BanOrder, EndOrder)
_KEYS: dict[type[BaseModel], str] = {RollbackOrder: "orders", BanOrder: "bans", EndOrder: "end"}


def moderators_of(run: RunFile) -> frozenset[str]:
    """The identities whose orders are followed: those of the run's entry points."""
    return frozenset(address.rpartition("/p2p/")[2] for address in run.initial_peers)


def key_of(run: str, order: type[BaseModel]) -> str:
    """The key under which a run's orders of a kind are."""
    return f"{run}_{_KEYS[order]}"


def publish(dht: DHT, run: str, subkey: bytes, order: BaseModel) -> None:
    """Send an order on its way without waiting for it to arrive."""
    seconds = END_SECONDS if isinstance(order, EndOrder) else EXPIRATION_SECONDS
    dht.store(
        key=key_of(run, type(order)),
        subkey=subkey,
        value=order.model_dump(),
        expiration_time=get_dht_time() + seconds,
        return_future=True,
    )


def find(
    dht: DHT, run: str, kind: type[Order], moderators: frozenset[str], timeout: float
) -> Order | None:
    """The newest order of a kind of one of the moderators, None where there is none.

    Raises:
        TimeoutError: when the DHT does not answer in time.
    """
    found = dht.get(key_of(run, kind), latest=True, return_future=True).result(timeout)
    given = entries(found, kind.model_validate)
    orders = [order for peer_id, order in given.items() if peer_id in moderators]
    return max(orders, key=lambda order: order.time, default=None)
