"""training/sparse/verdict: which verdicts count."""

import json
import math

import pytest
from hivemind.utils.crypto import RSAPrivateKey

from training.sparse import envelope, verdict
from training.sparse.payload import Round
from training.sparse.verdict import MOST_BYTES, Finding, VerdictError

OF = Round("our-run", 7, "0" * 64)
ANNOUNCED = "c" * 64
FIRST, SECOND = "a" * 64, "b" * 64
FINDINGS = {FIRST: Finding(-0.25, 1e-4), SECOND: Finding(math.inf, math.inf)}


@pytest.fixture
def shares(identities: list[str]) -> dict[str, tuple[str, ...]]:
    return {identities[0]: (FIRST, SECOND), identities[1]: (FIRST,)}


def seal(key: RSAPrivateKey, body: bytes, **fields: object) -> bytes:
    usual = {"run": "our-run", "number": 7, "start": "0" * 64, "assignment": ANNOUNCED}
    return envelope.seal("verdict", usual | fields, body, key)


def test_a_verdict_is_read_as_it_was_written(
    keys: list[RSAPrivateKey], identities: list[str], shares: dict[str, tuple[str, ...]]
) -> None:
    content = verdict.write(OF, ANNOUNCED, FINDINGS, keys[0])
    assert verdict.read(content, OF, ANNOUNCED, shares) == (identities[0], FINDINGS)
    nothing = verdict.write(OF, ANNOUNCED, {}, keys[1])
    assert verdict.read(nothing, OF, ANNOUNCED, shares) == (identities[1], {})


def test_a_verdict_on_as_many_updates_as_a_judge_can_have_is_small_enough(
    keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    share = tuple(f"{number:064x}" for number in range(64))
    findings = {one: Finding(-1.2345678901234567e-8, 1.2345678901234567e-8) for one in share}
    content = verdict.write(OF, ANNOUNCED, findings, keys[0])
    assert len(content) <= MOST_BYTES
    assert verdict.read(content, OF, ANNOUNCED, {identities[0]: share})[1] == findings


def test_a_change_beyond_reason_is_as_good_as_infinite(
    keys: list[RSAPrivateKey], shares: dict[str, tuple[str, ...]]
) -> None:
    content = verdict.write(OF, ANNOUNCED, {FIRST: Finding(math.nan, 1.0)}, keys[0])
    _, found = verdict.read(content, OF, ANNOUNCED, shares)
    assert found == {FIRST: Finding(math.inf, math.inf)}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "no list of findings"),
        (b"{}", "no list of findings"),
        (b"[" * 9000, "no list of findings"),
        (b"[1]", "a finding is none"),
        (json.dumps([["x", 0, 0]]).encode(), "a finding is none"),
        (json.dumps([[FIRST, 0]]).encode(), "a finding is none"),
        (json.dumps([[FIRST, 0, 0], [FIRST, 1, 0]]).encode(), "judges an update twice"),
        (json.dumps([[FIRST, "0", 0]]).encode(), "no number"),
        (json.dumps([[FIRST, True, 0]]).encode(), "no number"),
        (json.dumps([[FIRST, None, 0]]).encode(), "no number"),
        (f'[["{FIRST}", NaN, 0]]'.encode(), "out of range"),
        (f'[["{FIRST}", Infinity, 0]]'.encode(), "out of range"),
        (f'[["{FIRST}", 1e4, 0]]'.encode(), "out of range"),
        (f'[["{FIRST}", 0, -1]]'.encode(), "out of range"),
        (json.dumps([["d" * 64, 0, 0]]).encode(), "not its judge's to measure"),
        (bytes(2**15), "not the one that was signed"),
        (bytes(2**16), "too many"),
    ],
)
def test_a_verdict_that_says_something_else_is_refused(
    keys: list[RSAPrivateKey], shares: dict[str, tuple[str, ...]], body: bytes, words: str
) -> None:
    with pytest.raises(VerdictError, match=words):
        verdict.read(seal(keys[0], body), OF, ANNOUNCED, shares)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"number": 6}, "made for round 6, but this is 7"),
        ({"start": "1" * 64}, "starts from other weights"),
        ({"run": "their-run"}, "another run"),
        ({"assignment": "d" * 64}, "another announcement"),
        ({"more": 1}, "other fields"),
    ],
)
def test_a_verdict_for_something_else_is_refused(
    keys: list[RSAPrivateKey],
    shares: dict[str, tuple[str, ...]],
    fields: dict[str, object],
    words: str,
) -> None:
    with pytest.raises(VerdictError, match=words):
        verdict.read(seal(keys[0], b"[]", **fields), OF, ANNOUNCED, shares)


def test_only_a_judge_is_heard_and_only_on_its_own_share(
    keys: list[RSAPrivateKey], shares: dict[str, tuple[str, ...]]
) -> None:
    with pytest.raises(VerdictError, match="no judge of this round"):
        verdict.read(verdict.write(OF, ANNOUNCED, {}, keys[2]), OF, ANNOUNCED, shares)
    with pytest.raises(VerdictError, match="not its judge's to measure"):
        verdict.read(verdict.write(OF, ANNOUNCED, FINDINGS, keys[1]), OF, ANNOUNCED, shares)
    content = verdict.write(OF, ANNOUNCED, FINDINGS, keys[0])
    with pytest.raises(VerdictError):
        verdict.read(content[:-1] + b" ", OF, ANNOUNCED, shares)
