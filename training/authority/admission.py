"""The decision: who is admitted, and why not."""

import time
from dataclasses import dataclass
from typing import Annotated

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict, Field

from calculator.errors import InputError
from training.access import grants
from training.access.causes import AccessRefusedError, Cause
from training.access.grants import Grant, GrantError
from training.access.limits import Buckets, Rate
from training.access.signatures import is_proved
from training.access.tokens import Token
from training.authority.books import Books, Decision
from training.authority.hub import Account, Hub

USER_RATE = Rate(burst=30, per_second=0.2)


@dataclass(frozen=True)
class Policy:
    """Whom an authority admits, and for how long.

    Attributes:
        run: the run's name.
        organisation: whose members are admitted; empty: everybody with an account.
        lifetime: seconds that a grant holds; so soon a ban takes effect.
        allowlist: admit those on the allowlist only.
    """

    run: str
    organisation: str
    lifetime: int = 600
    allowlist: bool = False


class AccessRequest(BaseModel):
    """A volunteer's request; the Hugging Face token comes in the header ``Authorization``.

    Attributes:
        organisation: as the volunteer's run file has it.
        peer_public_key: the peer's RSA key in OpenSSH's form, ``ssh-rsa AAAA...``.
        proof: that the peer has the private key, see `training.access.signatures`.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    run: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    organisation: Annotated[str, Field(max_length=96)]
    peer_public_key: Annotated[str, Field(max_length=2000)]
    proof: Annotated[str, Field(max_length=2000)]


class Admissions:
    """Decides, signs and keeps the books."""

    def __init__(
        self,
        policy: Policy,
        key: Ed25519PrivateKey,
        books: Books,
        hub: Hub,
        user_rate: Rate = USER_RATE,
    ) -> None:
        self.policy, self.key, self.books, self.hub = policy, key, books, hub
        self._users = Buckets(user_rate)

    async def admit(self, wanted: AccessRequest, token: Token | None) -> Grant:
        """Give a peer a grant, and note the decision either way.

        Raises:
            AccessRefusedError: with the cause.
            InputError: when the key is none or its proof is wrong.
        """
        peer_id = _read_peer(wanted.peer_public_key)
        username = ""
        try:
            self._check_run(wanted)
            account = await self.hub.whoami(_require_token(wanted, token))
            username = account.name
            self._check(account, peer_id)
            expires = self._hold_key(username, peer_id)
        except AccessRefusedError as error:
            self.books.note(username, peer_id, Decision.REFUSED, error.cause)
            raise
        self.books.note(username, peer_id, Decision.ADMITTED)
        key = wanted.peer_public_key
        return grants.issue(self.key, self.policy.run, username, key, expires)

    def _hold_key(self, username: str, peer_id: str) -> int:
        """Note which device the account takes part with; gives when its grant ends."""
        now = int(time.time())
        expires = now + self.policy.lifetime
        held = self.books.hold_key(username, peer_id, expires)
        if held is not None:
            raise AccessRefusedError(Cause.KEY_IN_USE, f"it ends in {max(1, held - now)} s")
        return expires

    def _check_run(self, wanted: AccessRequest) -> None:
        policy = self.policy
        if wanted.run != policy.run:
            raise AccessRefusedError(Cause.WRONG_RUN, f"it admits to {policy.run}")
        if wanted.organisation.casefold() != policy.organisation.casefold():
            here = policy.organisation or "no organisation"
            raise AccessRefusedError(Cause.WRONG_RUN, f"it asks for members of {here}")

    def _check(self, account: Account, peer_id: str) -> None:
        taken = self._users.take(account.name.casefold())
        if taken.wait > 0:
            raise RateLimitedError(taken.wait)
        ban = self.books.find_ban(account.name, peer_id)
        if ban is not None:
            raise AccessRefusedError(Cause.BANNED, ban.reason)
        organisation = self.policy.organisation
        if organisation and not account.is_member(organisation):
            detail = f"{account.name} is not in {organisation}"
            raise AccessRefusedError(Cause.NOT_A_MEMBER, detail)
        if self.policy.allowlist and not self.books.is_allowed(account.name):
            raise AccessRefusedError(Cause.NOT_ALLOWED, account.name)


class RateLimitedError(AccessRefusedError):
    """Too many requests; `wait` is the seconds until the next one will be answered."""

    def __init__(self, wait: float) -> None:
        self.wait = max(1.0, wait)
        super().__init__(Cause.RATE_LIMITED, f"the next one in {self.wait:.0f} s")


def _read_peer(peer_public_key: str) -> str:
    try:
        return grants.peer_id_of(peer_public_key)
    except GrantError as error:
        raise InputError("peer_public_key", peer_public_key, str(error)) from None


def _require_token(wanted: AccessRequest, token: Token | None) -> Token:
    if token is None:
        raise AccessRefusedError(Cause.TOKEN_MISSING)
    if not is_proved(wanted.proof, wanted.peer_public_key, wanted.run, token):
        rule = "must be made with the private key of peer_public_key, for this run and token"
        raise InputError("proof", wanted.proof, rule)
    return token
