"""Asking the Hugging Face Hub whose a token is."""

import hashlib
import re
import time
from collections import OrderedDict
from dataclasses import dataclass

import httpx
from pydantic import BaseModel, ValidationError

from calculator.errors import InputError
from training.access.causes import AccessRefusedError, Cause
from training.access.tokens import Token
from training.run import download

DEFAULT_ENDPOINT = "https://huggingface.co"
ANSWER_SECONDS = 10.0
REMEMBER_SECONDS = 600.0  # the Hub limits how often one may ask it whose a token is
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


@dataclass(frozen=True)
class Account:
    """A user of the Hub and the names of the organisations that the token may see."""

    name: str
    organisations: frozenset[str]

    def is_member(self, organisation: str) -> bool:
        """True if the user is in an organization; the Hub ignores case."""
        return organisation.casefold() in {name.casefold() for name in self.organisations}


class HubUnreachableError(AccessRefusedError):
    """The Hub gave no answer of use.

    Attributes:
        answered: whether it answered at all.
    """

    def __init__(self, detail: str, answered: bool) -> None:
        super().__init__(Cause.HUB_UNREACHABLE, detail)
        self.answered = answered


class _Organisation(BaseModel):
    name: str


class _WhoAmI(BaseModel):
    """The fields that we read from the response of ``/api/whoami-v2``."""

    type: str
    name: str
    orgs: list[_Organisation] = []


class Hub:
    """The Hub as far as the authority needs it.

    Args:
        endpoint: its address, without a slash at the end.
        remember_seconds: an answer is kept for so long, under the SHA-256 of the token and in
            memory only: the Hub limits how often it may be asked.

    Raises:
        InputError: when others could listen in on the way to that address.
    """

    def __init__(self, endpoint: str, remember_seconds: float = REMEMBER_SECONDS) -> None:
        if not download.is_private(endpoint):
            rule = "must be an https address, or http on this machine: tokens travel there"
            raise InputError("hub", endpoint, rule)
        self.endpoint, self.remember_seconds = endpoint.rstrip("/"), remember_seconds
        self._known: OrderedDict[bytes, tuple[float, Account]] = OrderedDict()
        self._client = httpx.AsyncClient(timeout=ANSWER_SECONDS, follow_redirects=False)

    async def whoami(self, token: Token) -> Account:
        """The owner of a token.

        Raises:
            AccessRefusedError: token-invalid, when it is no user's.
            HubUnreachableError: when the Hub does not answer, or not as it should.
        """
        digest = hashlib.sha256(token.reveal().encode()).digest()
        until, account = self._known.get(digest, (0.0, None))
        if account is not None and time.monotonic() < until:
            return account
        account = await self._ask(token)
        self._known[digest] = (time.monotonic() + self.remember_seconds, account)
        self._known.move_to_end(digest)
        if len(self._known) > 10_000:
            self._known.popitem(last=False)
        return account

    async def close(self) -> None:
        """End the connections."""
        await self._client.aclose()

    async def _ask(self, token: Token) -> Account:
        try:
            answer = await self._client.get(
                f"{self.endpoint}/api/whoami-v2", headers=token.headers()
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HubUnreachableError(type(error).__name__, answered=False) from None
        if answer.status_code in (401, 403):
            raise AccessRefusedError(Cause.TOKEN_INVALID)
        if answer.status_code != httpx.codes.OK:
            overloaded = answer.status_code == 429 or answer.status_code >= 500
            detail = f"it returned status {answer.status_code}"
            raise HubUnreachableError(detail, answered=not overloaded)
        try:
            told = _WhoAmI.model_validate_json(answer.content)
        except ValidationError:
            raise HubUnreachableError("its answer was not understood", answered=True) from None
        if told.type != "user" or not _NAME.fullmatch(told.name):
            raise AccessRefusedError(Cause.TOKEN_INVALID)
        return Account(told.name, frozenset(organisation.name for organisation in told.orgs))
