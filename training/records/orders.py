"""Orders of a run's moderators: return to a checkpoint.

An order is a record in the DHT, signed like every other. It is believed when its signer is one of
the run's entry points: the run file names them with their identities, which are hashes of their
keys, so that whoever trusts the run file knows the keys. The monitor is an entry point.
"""

import math

from hivemind import DHT
from hivemind.utils import get_dht_time
from pydantic.v1 import BaseModel, confloat, conint, constr

from training.records.owners import entries
from training.run.runfile import RunFile

EXPIRATION_SECONDS = 600.0  # the monitor repeats an order as long as the run goes on

_Count = conint(ge=0, strict=True)


class RollbackOrder(BaseModel):
    """Go on from the weights of an earlier step.

    Attributes:
        checkpoint: the step whose weights are taken.
        step: the number under which the run goes on, above all that were reached: everybody who
            misses the order finds itself behind and takes the state from those who did not.
        sha256: of the published file.
        time: of the order, seconds since 1970.
    """

    checkpoint: _Count  # type: ignore[valid-type]
    step: _Count  # type: ignore[valid-type]
    sha256: constr(regex=r"^[0-9a-f]{64}\Z", strict=True)  # type: ignore[valid-type]
    time: confloat(ge=0.0, lt=math.inf, strict=True)  # type: ignore[valid-type]


def moderators_of(run: RunFile) -> frozenset[str]:
    """The identities whose orders are followed: those of the run's entry points."""
    return frozenset(address.rpartition("/p2p/")[2] for address in run.initial_peers)


def publish(dht: DHT, run: str, subkey: bytes, order: RollbackOrder) -> None:
    """Send an order on its way without waiting for it to arrive."""
    dht.store(
        key=f"{run}_orders",
        subkey=subkey,
        value=order.dict(),
        expiration_time=get_dht_time() + EXPIRATION_SECONDS,
        return_future=True,
    )


def find(dht: DHT, run: str, moderators: frozenset[str], timeout: float) -> RollbackOrder | None:
    """The newest order of one of the moderators, None where there is none.

    Raises:
        TimeoutError: when the DHT does not answer in time.
    """
    found = dht.get(f"{run}_orders", latest=True, return_future=True).result(timeout)
    given = entries(found, RollbackOrder.parse_obj)
    orders = [order for peer_id, order in given.items() if peer_id in moderators]
    return max(orders, key=lambda order: order.time, default=None)
