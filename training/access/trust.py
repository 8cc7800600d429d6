"""Trust on first use: a stored token goes to an authority only after its owner has agreed.

A run file is written by strangers and names the server that gets the token. So whoever joins
sees that server's name first and says yes once; the answer is remembered for each server.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from training.access.causes import TOKENS_PAGE, AccessRefusedError, Cause
from training.access.tokens import Token, find_token
from training.run import atomic, download

FLAG = "--trust-authority"
_AGREED = "TRAINING_TRUSTED_AUTHORITY"  # tells the processes that this one starts
_YES = ("y", "yes")


def host_of(authority: str) -> str:
    """The server's name and port as the run file gives them, in lower case."""
    return urlparse(authority).netloc.lower()


def is_trusted(authority: str) -> bool:
    """True if this machine's user has agreed to send a token there."""
    host = host_of(authority)
    if download.is_local(authority) or os.environ.get(_AGREED) == host:
        return True
    known = atomic.read_json(_path())
    return isinstance(known, dict) and host in known


def token_for(authority: str) -> Token:
    """The stored token, for a server that is trusted.

    Raises:
        AccessRefusedError: when there is no token, or nobody has agreed to send it there.
    """
    if not is_trusted(authority):
        raise AccessRefusedError(Cause.NOT_TRUSTED, host_of(authority))
    return find_token()


def agree(authority: str, named: str | None = None) -> None:
    """See to it that sending the token is agreed to, by asking on the terminal if need be.

    Args:
        named: the server that the command line agrees to, see `FLAG`.

    Raises:
        AccessRefusedError: when the answer is no, another server is named, or nobody can be asked.
    """
    if is_trusted(authority):
        return
    host = host_of(authority)
    if named is not None and named.lower() != host:
        raise AccessRefusedError(Cause.NOT_TRUSTED, f"{host}; {FLAG} names {named}")
    _warn_of_rights()
    if named is None and not _says_yes(host):
        raise AccessRefusedError(Cause.NOT_TRUSTED, host)
    _remember(host)


def _says_yes(host: str) -> bool:
    if not sys.stdin.isatty():
        return False
    print(f"This run checks your Hugging Face account through {host}.", file=sys.stderr)
    print(
        "That server gets your token and can use it for anything the token allows.", file=sys.stderr
    )
    print(f"Send the token to {host}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in _YES


def _remember(host: str) -> None:
    os.environ[_AGREED] = host
    known = atomic.read_json(_path())
    entries = known if isinstance(known, dict) else {}
    _path().parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json(_path(), entries | {host: {"since": time.time()}})


def _path() -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "training-transformers-together" / "trusted-authorities.json"


def _warn_of_rights() -> None:
    """Say so where the token may do more than read; the Hub itself is asked."""
    from huggingface_hub import HfApi

    try:
        told = HfApi().whoami(find_token().reveal())
    except Exception:  # the Hub cannot be reached: the authority will say what is the matter
        return
    more = rights_beyond_reading(told)
    if more:
        print(f"warning: your token may do more than read: {more}.", file=sys.stderr)
        print(f"A token of the type 'read' is enough: {TOKENS_PAGE}", file=sys.stderr)


def rights_beyond_reading(whoami: dict[str, Any]) -> str:
    """Rights of a token besides reading, in words; empty if it can only read.

    Args:
        whoami: the Hub's answer about the token, as ``huggingface_hub.whoami`` gives it.
    """
    access = (whoami.get("auth") or {}).get("accessToken") or {}
    role = access.get("role")
    if role in (None, "read"):
        return ""
    if role != "fineGrained":
        return f"it is of the type {role!r}"
    fine = access.get("fineGrained") or {}
    scoped = [right for scope in fine.get("scoped", []) for right in scope.get("permissions", [])]
    rights = {str(right) for right in [*fine.get("global", []), *scoped]}
    return ", ".join(sorted(right for right in rights if not right.endswith(".read")))
