r"""Addresses that carry a permission: an object store takes one request there, until a time.

Signed as version 4 of AWS's signature says, in the query; other makers' stores know it too.
Anyone who has such an address may use it without a key, but for nothing else.
Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, unquote, urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"
_SERVICE = "s3"
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True, slots=True)
class Keys:
    """An owner's keys to an object store.

    Attributes:
        identity: of the access key. secret: that belongs to it.
        region: that the store expects in signatures.
        session: token of temporary keys; empty: they are permanent.
    """

    identity: str
    secret: str = field(repr=False)
    region: str = "us-east-1"
    session: str = field(default="", repr=False)


def presign(method: str, address: str, keys: Keys, seconds: int, now: float) -> str:
    """An address for one kind of request.

    Args:
        address: of the object, without a query.
        seconds: for which it holds, from `now`, in seconds since 1970.
    """
    parts = urlsplit(address)
    time = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{time[:8]}/{keys.region}/{_SERVICE}/aws4_request"
    query = {
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.identity}/{scope}",
        "X-Amz-Date": time,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
    }
    if keys.session:
        query["X-Amz-Security-Token"] = keys.session
    path = quote(unquote(parts.path), safe="/-_.~")
    asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in sorted(query.items()))
    host = f"host:{_host_of(parts.scheme, parts.netloc)}\n"
    request = "\n".join((method, path, asked, host, "host", "UNSIGNED-PAYLOAD"))
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join((_ALGORITHM, time, scope, digest))
    signature = hmac.new(_signing_key(keys.secret, scope), text.encode(), "sha256").hexdigest()
    return f"{parts.scheme}://{parts.netloc}{path}?{asked}&X-Amz-Signature={signature}"


def _host_of(scheme: str, netloc: str) -> str:
    """The header with which a client names the host: without its scheme's own port."""
    return netloc.lower().removesuffix(_DEFAULT_PORTS[scheme])


def _signing_key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key
