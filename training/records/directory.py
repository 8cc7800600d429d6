"""The run's list of grants: every peer announces its own in the DHT, signed with its key.

The averaging layer's calls carry no grant, but libp2p proves who calls. So whoever is called
looks the caller's grant up here; the DHT itself admits only peers with a grant to write it.
"""

import asyncio
import logging
import time
from typing import Any

from hivemind import DHT
from hivemind.utils import MPFuture, get_dht_time

from training.access.grants import Grant, GrantError, parse
from training.access.membership import Membership
from training.records.owners import BanList, entries

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
EXPIRATION_SECONDS = 600.0  # it is announced again long before
PAUSE_SECONDS = 1.0  # between two looks: strangers must not make us search without end


def announce(dht: DHT, subkey: bytes, grant: Grant) -> "MPFuture[bool]":
    """Publish our grant in the run; true once it has arrived, for callers that wait.

    Args:
        subkey: the peer's own, which carries its public key, so that nobody else can write it.
    """
    stored: MPFuture[bool] = dht.store(
        key=_key(grant.run),
        subkey=subkey,
        value=grant.to_bytes(),
        expiration_time=min(float(grant.expires), get_dht_time() + EXPIRATION_SECONDS),
        return_future=True,
    )
    return stored


class Directory:
    """Knows which peers hold a grant; for one process, and asked in its event loop.

    Args:
        dht: the run's. membership: our own access, by whose key others' grants are checked; None
            in a run without an authority. bans: of the organizers.
    """

    def __init__(self, dht: DHT, membership: Membership | None, bans: BanList) -> None:
        self.dht, self.membership, self._bans = dht, membership, bans
        self._grants: dict[str, Grant] = {}
        self._looked_at = -PAUSE_SECONDS

    async def find(self, peer_id: str) -> Grant | None:
        """The grant of a peer whose identity libp2p has proved; None where nobody needs one.

        Raises:
            GrantError: when it is banned, has announced none that holds, or we have no access
                ourselves.
        """
        if self._bans.is_banned(peer_id):
            raise GrantError(f"{peer_id} is banned")
        if self.membership is None:
            return None
        known = self._grants.get(peer_id)
        if known is None or known.seconds_left() <= 0:
            await self._look(self.membership)
            known = self._grants.get(peer_id)
        if known is None:
            raise GrantError(f"{peer_id} has announced no grant")
        self.membership.check(known)
        return known

    async def _look(self, membership: Membership) -> None:
        if time.monotonic() - self._looked_at < PAUSE_SECONDS:
            return
        self._looked_at = time.monotonic()
        future = self.dht.get(_key(membership.run), latest=True, return_future=True)
        try:
            found = await asyncio.wait_for(future, LOOK_SECONDS)
        except TimeoutError:
            logger.warning("the list of grants could not be read in %.0f s", LOOK_SECONDS)
            return
        self._grants = await asyncio.to_thread(self._read, membership, found)

    def _read(self, membership: Membership, found: Any) -> dict[str, Grant]:
        grants = {}
        for peer_id, grant in entries(found, parse).items():
            try:
                membership.check(grant)
                grants[peer_id] = grant
            except GrantError as error:
                logger.info("an announced grant does not hold: %s", error)
        return grants


def _key(run: str) -> str:
    return f"{run}_access"
