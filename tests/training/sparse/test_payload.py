"""training/sparse/payload.py and access/envelope.py: signed files, and what is none."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey
from hypothesis import given
from hypothesis import strategies as st

from training.access import envelope
from training.access.envelope import FileError
from training.sparse import payload
from training.sparse.codec import decode, encode
from training.sparse.layout import Layout
from training.sparse.payload import Round

LAYOUT = Layout((5000, 30))
ROUND = Round("our-run", 7, "ab" * 32)
KEY = RSAPrivateKey()
UPDATE = encode(torch.randn(5030, generator=torch.Generator().manual_seed(0)), LAYOUT)
FILE = payload.write(ROUND, 96, UPDATE, KEY)


def read(content: bytes, largest_norm: float = math.inf) -> payload.Payload:
    return payload.read(content, ROUND, LAYOUT, largest_norm)


def sign(fields: dict[str, Any], kind: str = "payload", body: bytes = UPDATE) -> bytes:
    """A file whose signature holds, whatever it says."""
    return envelope.seal(kind, fields, body, KEY)


FIELDS = {"run": "our-run", "number": 7, "start": "ab" * 32, "samples": 96}


def test_a_payload_says_who_did_what_in_two_kilobytes(
    keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    late = replace(ROUND, number=12_345)
    content = payload.write(late, 96, UPDATE, keys[0])
    found = payload.read(content, late, LAYOUT, math.inf)
    assert (found.peer, found.samples) == (identities[0], 96)
    assert torch.equal(found.update.values, decode(UPDATE, LAYOUT).values)
    assert len(content) - len(UPDATE) < 2000
    assert len(content) <= payload.most_bytes(LAYOUT)


@pytest.mark.parametrize(
    "fields",
    [
        *(
            FIELDS | {name: value}
            for name, values in {
                "samples": (0, -3, 9.5, True, "96", 2**40),
                "number": (7.0, True, -1),
                "run": (5,),
                "start": ("AB" * 32, None),
                "more": (1,),
            }.items()
            for value in values
        ),
        *({name: FIELDS[name] for name in FIELDS.keys() - {missing}} for missing in FIELDS),
    ],
)
def test_a_signed_header_must_be_a_payloads(fields: dict[str, Any]) -> None:
    read(sign(FIELDS))
    with pytest.raises(FileError, match=r"header|samples"):
        read(sign(fields))


def test_a_file_of_another_kind_or_length_is_no_payload() -> None:
    with pytest.raises(FileError, match="not a payload"):
        read(sign(FIELDS, kind="closing"))
    with pytest.raises(FileError, match="too many"):
        read(FILE + bytes(envelope.OVERHEAD_BYTES))
    with pytest.raises(FileError, match="header of"):
        sign(FIELDS | {"run": "a" * envelope.HEADER_BYTES})


def make_thief(shown: Any) -> Any:
    """A key that signs with its own half, and shows another public one."""
    return SimpleNamespace(sign=KEY.sign, get_public_key=lambda: shown)


def test_nobody_signs_with_the_key_of_another_or_of_no_peer(keys: list[RSAPrivateKey]) -> None:
    stolen = keys[0].get_public_key()
    content = payload.write(ROUND, 96, UPDATE, make_thief(stolen))
    assert stolen.to_bytes().decode().encode() in content
    with pytest.raises(FileError, match="did not sign"):
        read(content)
    nobodys = SimpleNamespace(to_bytes=lambda: b"ssh-rsa none")
    with pytest.raises(FileError, match="RSA key"):
        read(payload.write(ROUND, 96, UPDATE, make_thief(nobodys)))


@given(st.integers(0, len(FILE) - 1), st.integers(0, 7))
def test_one_turned_bit_or_a_missing_end_is_noticed(place: int, bit: int) -> None:
    spoilt = bytearray(FILE)
    spoilt[place] ^= 1 << bit
    for content in (bytes(spoilt), FILE[:place]):
        with pytest.raises(FileError):
            read(content)


@given(st.binary(max_size=300) | st.binary(max_size=300).map(lambda more: b"TTS1" + more))
def test_whatever_else_a_file_holds_is_refused_with_a_reason(content: bytes) -> None:
    with pytest.raises(FileError, match=r"\w"):
        envelope.open_file("payload", content, 1000)


@pytest.mark.parametrize(
    "header", [b"[]", b"{", b"[" * 10_000, b'{"a":NaN}', b'{"b":1,"a":2}', b'{"a": 1}', b"\xff"]
)
def test_a_header_has_one_form_alone(header: bytes) -> None:
    content = b"TTS1" + len(header).to_bytes(2, "little") + b"\0\0" + header
    with pytest.raises(FileError, match="header"):
        envelope.open_file("payload", content, 1000)
