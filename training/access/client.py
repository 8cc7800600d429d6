"""Asking a run's authority for access."""

import re
import time
from dataclasses import dataclass
from typing import Any

import httpx

from training.access import grants
from training.access.causes import AccessRefusedError, Cause
from training.access.grants import Grant, GrantError
from training.access.signatures import PeerKey, prove
from training.access.tokens import Token
from training.run.runfile import RunFile

ANSWER_SECONDS = 20.0
LARGEST_ANSWER = 64 * 1024
CLOCK_TOLERANCE = 3.0  # seconds; hivemind's DHT refuses peers beyond it


@dataclass(frozen=True)
class Admission:
    """The authority's answer: a grant, and the key for checking others' grants.

    Attributes:
        grant: ours.
        authority_key: the authority's public key, as `grants.public_key_text` writes it.
    """

    grant: Grant
    authority_key: str


def ask(run: RunFile, key: PeerKey, token: Token) -> Admission:
    """Ask the run's authority to admit the peer with this key.

    Raises:
        AccessRefusedError: with the cause, when it does not or cannot.
    """
    peer_public_key = key.get_public_key().to_bytes().decode()
    wanted = {
        "run": run.name,
        "organisation": run.organisation,
        "peer_public_key": peer_public_key,
        "proof": prove(key, run.name, token),
    }
    before = time.time()
    status, answer = _put(f"{run.authority.rstrip('/')}/access", wanted, token)
    after = time.time()
    if status != httpx.codes.OK:
        raise _refusal(status, answer.get("error"))
    _check_clock(answer.get("time"), before, after)
    return _read(answer, run, peer_public_key)


def _put(address: str, wanted: dict[str, str], token: Token) -> tuple[int, dict[str, Any]]:
    """Give the status and the body of the answer; redirections are not followed with a token."""
    try:
        options: dict[str, Any] = {"headers": token.headers(), "timeout": ANSWER_SECONDS}
        with httpx.stream("PUT", address, json=wanted, **options) as answer:
            content = b""
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > LARGEST_ANSWER:
                    raise _unreachable(f"its answer is longer than {LARGEST_ANSWER} bytes")
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _unreachable(in_words(error, address)) from None
    try:
        body = httpx.Response(status, content=content).json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise _unreachable(f"{address} returned status {status} and nothing of use")
    return status, body


def in_words(error: Exception, address: str) -> str:
    """The reason why there was no answer; `address` is shown, so it must hold no secret."""
    match error:
        case httpx.TimeoutException():
            return f"{address} did not answer in time"
        case httpx.ConnectError():
            return f"no connection to {address}"
        case _:
            return f"{address}: {type(error).__name__}"


def _unreachable(detail: str) -> AccessRefusedError:
    return AccessRefusedError(Cause.AUTHORITY_UNREACHABLE, detail)


def _refusal(status: int, error: object) -> AccessRefusedError:
    """The refusal that the authority's answer describes."""
    told = error if isinstance(error, dict) else {}
    try:
        cause = Cause(str(told.get("cause")))
    except ValueError:
        return _unreachable(f"it returned status {status} and no cause that we know")
    return AccessRefusedError(cause, printable(told.get("detail")))


def printable(text: object) -> str:
    """Text from another machine, shortened and without characters that would steer a terminal."""
    kept = re.sub(r"[^\x20-\x7e\u00a0-\uffff]", " ", text) if isinstance(text, str) else ""
    return kept if len(kept) <= 300 else kept[:299] + "…"


def _check_clock(theirs: object, before: float, after: float) -> None:
    """Compare the authority's clock, read between `before` and `after` on ours.

    Raises:
        AccessRefusedError: when ours is certainly further off than peers tolerate.
    """
    if not isinstance(theirs, int | float):
        return
    behind = max(theirs - after, 0.0) or min(theirs - before, 0.0)
    if abs(behind) > CLOCK_TOLERANCE:
        way = "behind" if behind > 0 else "ahead of"
        detail = f"it is {abs(behind):.1f} s {way} the authority's"
        raise AccessRefusedError(Cause.CLOCK_OFF, detail)


def _read(answer: dict[str, Any], run: RunFile, peer_public_key: str) -> Admission:
    token, key = answer.get("grant"), answer.get("authority_key")
    if not isinstance(token, str) or not isinstance(key, str):
        raise _unreachable("its answer holds no grant")
    if run.authority_key and key != run.authority_key:
        raise AccessRefusedError(Cause.ANOTHER_KEY, printable(key))
    peer_id = grants.peer_id_of(peer_public_key)
    try:
        return Admission(grants.verify(token.encode(), key, run.name, peer_id), key)
    except GrantError as error:
        raise _unreachable(f"its grant is of no use: {error}") from error
