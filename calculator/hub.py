"""A model's config.json on the Hugging Face Hub: for the command line; no page imports this."""

import os
import time
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from calculator import configuration
from calculator.errors import InputError

ENDPOINT: Final = "https://huggingface.co"
LARGEST: Final = 4 * configuration.LONGEST_TEXT
# seconds: for a connection and between two parts of an answer, and for the whole answer
TIMEOUT, LONGEST_WAIT = 10.0, 30.0
_PASTE: Final = "or give the path of a config.json"
_LATER: Final = f"try again, {_PASTE}"


def read_hub_config(name: str, offline: bool = False) -> dict[str, Any]:
    """The keys and values of a model's config.json, from this machine's cache or from the Hub.

    The environment can name another server (``HF_ENDPOINT``), a token for gated models
    (``HF_TOKEN``), and forbid requests (``HF_HUB_OFFLINE=1``), as it can for Hugging Face's own
    libraries. What is read once is kept in ``$XDG_CACHE_HOME/training-transformers-together``.

    Raises:
        InputError: when there is none, or it cannot be read.
    """
    kept = _cache() / f"{name.replace('/', '--')}.json"
    try:
        return configuration.parse(kept.read_text("utf-8"), name)
    except (OSError, ValueError):  # none is kept, or it is damaged
        pass
    if offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        raise InputError("model", name, f"is not in the cache; leave --offline out, {_PASTE}")
    text = _fetch(name)
    values = configuration.parse(text, name)
    _keep(text, kept)
    return values


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "training-transformers-together" / "configs"


def _keep(text: str, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(text, "utf-8")
        temporary.replace(path)
    except OSError:  # a full or read-only disk costs the next command a request
        return


def _fetch(name: str) -> str:
    """The text of a config.json on the Hub.

    Raises:
        InputError: with the reason in the rule.
    """
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or ENDPOINT
    if not endpoint.startswith(("https://", "http://")):
        raise InputError("HF_ENDPOINT", endpoint, "must begin with https:// or http://")
    request = Request(f"{endpoint}/{name}/resolve/main/config.json")
    if token := os.environ.get("HF_TOKEN", "").strip():
        # not sent on to another host that the Hub names
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urlopen(request, timeout=TIMEOUT) as answer:
            return _read(answer, name)
    except HTTPError as error:
        with error:  # it holds the answer
            raise InputError("model", name, _refusal(error, endpoint, name)) from None
    except TimeoutError:
        raise InputError("model", name, f"the Hub did not answer in time; {_LATER}") from None
    except (OSError, HTTPException, URLError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            raise InputError("model", name, f"the Hub did not answer in time; {_LATER}") from None
        rule = f"is not in the catalog, and the Hub cannot be reached ({reason}); {_LATER}"
        raise InputError("model", name, rule) from None


def _read(answer: HTTPResponse, name: str) -> str:
    """The answer's text, part by part: neither a large nor a slow one may take forever."""
    start, parts, size = time.monotonic(), list[bytes](), 0
    while part := answer.read1(65_536):
        parts.append(part)
        size += len(part)
        if size > LARGEST:
            raise InputError("model", name, f"its config.json must have at most {LARGEST:,} bytes")
        if time.monotonic() - start > LONGEST_WAIT:
            raise TimeoutError
    try:
        return b"".join(parts).decode("utf-8-sig")
    except ValueError:
        raise InputError("model", name, "its config.json must be text in UTF-8") from None


def _refusal(error: HTTPError, endpoint: str, name: str) -> str:
    """The rule for a status of the Hub, which names its reason in a header."""
    reason = error.headers.get("X-Error-Code", "")
    if reason == "EntryNotFound":
        made = "name the model that it was made from"
        return f"has no config.json on the Hub (an adapter, or GGUF alone?); {made}"
    if reason == "RepoNotFound" or error.code == 404:
        return "is neither in the catalog nor on the Hub; `models` lists the catalog"
    if reason == "GatedRepo" or error.code in (401, 403):
        return (
            f"is gated: accept its terms at {endpoint}/{name} and set HF_TOKEN to a token of "
            f"yours, {_PASTE}"
        )
    return f"the Hub answered with status {error.code}; {_LATER}"
