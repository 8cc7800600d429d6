"""One check for every record: what holds, and that nothing at all makes it or a reader raise."""

import asyncio
import math
import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hivemind.averaging.key_manager import GroupKeyManager
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.schema import SchemaValidator
from hivemind.dht.storage import DictionaryDHTValue
from hivemind.dht.validation import CompositeValidator, DHTRecord
from hivemind.optim.progress_tracker import TrainingProgressSchema
from hivemind.utils import ValueWithExpiration, get_dht_time
from hivemind.utils.crypto import RSAPrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.records.sealing import (
    RUN,
    Forger,
    identity,
    make_record,
    order,
    progress,
    sealed,
    serialize,
    subkey_of,
)
from training.access import grants
from training.access.client import Admission
from training.access.membership import Membership
from training.averaging.donors import read_offers
from training.averaging.progress import read_progress
from training.records import validator
from training.records.kinds import LONGEST_SECONDS, Progress
from training.records.orders import (
    END_SECONDS,
    EXPIRATION_SECONDS,
    BanOrder,
    EndOrder,
    RollbackOrder,
    find,
    publish,
)
from training.records.owners import BanList, contributor_id, entries, peer_id_of
from training.records.validator import (
    CLOCK_SECONDS,
    MOST_BYTES,
    RecordValidator,
    drop_invalid_entries,
    refused_records,
)

OURS, THEIRS = RSAPrivateKey(), RSAPrivateKey()
CHECK = RecordValidator(RUN, RSAPrivateKey())
TAG = subkey_of(OURS)


def grant() -> bytes:
    key = OURS.get_public_key().to_bytes().decode()
    return grants.issue(Ed25519PrivateKey.generate(), RUN, "alice", key, 2**31).to_bytes()


# Each kind of record as its owner writes it: the key, the subkey, and a value of it.
KINDS: dict[str, tuple[bytes, Callable[[], object]]] = {
    "_orders": (TAG, order),
    "_bans": (TAG, lambda: {"contributors": ["0123456789ab"], "time": 1.0}),
    "_end": (TAG, lambda: {"time": 1.0}),
    "_access": (TAG, grant),
    "_progress": (TAG, lambda: progress(OURS)),
    "_grad_averager.0b": (identity(OURS), lambda: True),
    "_grad_averager.0b0110": (identity(OURS), lambda: False),
    "_state_averager.0b": (identity(OURS), lambda: True),
    "_grad_averager.all_averagers": (identity(OURS), lambda: 3),
    "_state_averager.all_averagers": (identity(OURS), lambda: None),
}
PARSERS: tuple[Callable[[Any], object], ...] = (
    RollbackOrder.model_validate,
    Progress.model_validate,
    grants.parse,
)
every_kind = pytest.mark.parametrize("name", KINDS)


def ours(name: str, **changes: Any) -> DHTRecord:
    """A sealed record of ours; `subkey`, `value` and `seconds` may be others."""
    subkey, make_value = KINDS[name]
    options = {"subkey": subkey, "value": make_value()} | changes
    return sealed(make_record(name, **options), OURS)


@every_kind
def test_what_its_owner_wrote_is_accepted_and_read_unless_banned(name: str, tmp_path: Path) -> None:
    value, bans = KINDS[name][1](), BanList(tmp_path)
    record, check = ours(name, value=value), RecordValidator(RUN, RSAPrivateKey(), bans=bans)
    assert CHECK.strip_value(record) == serialize(value)
    for banned in ([], [contributor_id(TAG)], []):
        bans.write(banned)
        assert check.validate(record) is (banned == [])


@every_kind
def test_what_its_owner_did_not_write_is_refused(name: str) -> None:
    record = ours(name)
    subkey, make_value = KINDS[name]
    unsigned = make_record(name, subkey, make_value())
    assert not CHECK.validate(unsigned)
    assert not CHECK.validate(sealed(unsigned, THEIRS))
    assert not CHECK.validate(replace(record, expiration_time=record.expiration_time + 1))
    other_key = make_record("_progress" if name != "_progress" else "_orders", subkey, None).key
    assert not CHECK.validate(replace(record, key=other_key))
    for plain in (DHTProtocol.IS_REGULAR_VALUE, DHTProtocol.IS_DICTIONARY):  # without an owner
        assert not CHECK.validate(replace(make_record(name, None, 1), subkey=plain))


@every_kind
def test_an_owner_has_one_subkey(name: str) -> None:
    subkey, make_value = KINDS[name]
    forger = Forger(OURS)
    for other in (subkey + subkey, subkey + b"1", b" " + subkey, str(subkey)):
        record = make_record(name, other, make_value())
        assert not CHECK.validate(replace(record, value=forger.sign_value(record)))
        assert not CHECK.validate(sealed(record, OURS))


@every_kind
def test_a_record_for_long_is_refused(name: str) -> None:
    for seconds in (LONGEST_SECONDS + CLOCK_SECONDS + 5, 1e9, math.inf, math.nan):
        assert not CHECK.validate(ours(name, seconds=seconds))


@every_kind
def test_a_value_of_another_kind_is_refused(name: str) -> None:
    for value in ("x", 1.5, -1, [True], {"a": 1}, b"x", b"x" * MOST_BYTES, math.nan, 2**63):
        fits = name.endswith("all_averagers") and value == 1.5
        assert CHECK.validate(ours(name, value=value)) is fits, value


def test_large_records_are_refused() -> None:
    """All of a record counts, its subkey too."""
    huge = order() | {"sha256": "x" * MOST_BYTES}
    assert not CHECK.validate(ours("_orders", value=huge))
    record = ours("_orders")
    for spare, found in ((0, "does not begin"), (1, f"a record of {MOST_BYTES + 1} bytes")):
        size = MOST_BYTES - len(record.subkey) + spare
        with pytest.raises(ValueError, match=found):
            CHECK._check(replace(record, value=b"x" * size))


@pytest.mark.parametrize(
    "name",
    ["", "_other", "_metrics", "_grad_averager.0b2", f"_grad_averager.0b1{0:012b}", "_averager.0b"],
)
def test_keys_that_the_run_does_not_have_are_refused(name: str) -> None:
    record = make_record(name, TAG, b"anything")
    forger = Forger(OURS)
    assert not CHECK.validate(replace(record, value=forger.sign_value(record)))


def test_only_what_is_ours_is_sealed() -> None:
    record = make_record("_progress", TAG, progress(OURS))
    for other in (
        replace(record, subkey=serialize(subkey_of(THEIRS))),
        make_record("_grad_averager.0b", TAG, True),  # an identity's
        make_record("_other", TAG, 1),
    ):
        assert RecordValidator(RUN, OURS).sign_value(other) == other.value


def test_each_refused_record_is_counted_once_and_a_flood_does_not_fill_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(validator, "_refused", multiprocessing.Value("q", 0))
    for _ in range(17):
        CHECK.validate(make_record("_other", TAG, 1))
    CHECK.validate(ours("_end"))
    assert refused_records() == 17
    said = "a record was refused: a key that the run does not have ({} refused so far)"
    assert caplog.messages == [said.format(count) for count in (1, 2, 4, 8, 16)]


def test_an_entry_that_does_not_hold_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DHTProtocol, "_validate_dictionary", None)
    drop_invalid_entries()
    protocol: Any = SimpleNamespace(
        serializer=DHTProtocol.serializer,
        _validate_record=lambda *parts: CHECK.validate(DHTRecord(*parts)),
    )
    record, found = ours("_progress"), DictionaryDHTValue()
    for subkey in (TAG, subkey_of(THEIRS)):  # the same value under both
        found.store(subkey, record.value, record.expiration_time)
    assert DHTProtocol._validate_dictionary(protocol, record.key, found)
    assert [subkey for subkey, _ in found.items()] == [TAG]


AUTHORITY = Ed25519PrivateKey.generate()


def member(key: RSAPrivateKey, *, lifetime: float = 60.0, **changes: Any) -> Any:
    """Access as a peer reads it: its own, another's, or one that does not hold."""
    values = {"authority": AUTHORITY, "run": RUN, "peer": key} | changes
    public_key = values["peer"].get_public_key().to_bytes().decode()
    expires = int(get_dht_time() + lifetime)
    grant = grants.issue(values["authority"], values["run"], "alice", public_key, expires)
    admission = Admission(grant, grants.public_key_text(AUTHORITY))
    return SimpleNamespace(read=lambda: admission)


def written(name: str, key: RSAPrivateKey, membership: Any, **changes: Any) -> DHTRecord:
    record = make_record(name, KINDS[name][0], KINDS[name][1]())
    return sealed(replace(record, **changes), key, membership)


@every_kind
def test_where_there_is_an_authority_a_record_shows_access(name: str, tmp_path: Path) -> None:
    check = RecordValidator(RUN, THEIRS, member(THEIRS))
    record = written(name, OURS, member(OURS))
    assert check.validate(record)
    assert check.validate(record)  # as well the second time, when it is known
    plain = serialize(7)
    assert check.strip_value(written(name, OURS, member(OURS), value=plain)) == plain
    nobody: Any = Membership(tmp_path, RUN, "nobody's key")
    assert not check.validate(written(name, OURS, None))
    assert not check.validate(written(name, OURS, nobody))
    assert not RecordValidator(RUN, THEIRS, nobody).validate(record)


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({"lifetime": 60 - LONGEST_SECONDS}, True),  # a record written before its end
        ({"lifetime": -60 - LONGEST_SECONDS}, False),
        ({"run": "another"}, False),
        ({"authority": Ed25519PrivateKey.generate()}, False),
    ],
)
def test_access_is_to_this_run_and_ends(changes: dict[str, Any], holds: bool) -> None:
    check = RecordValidator(RUN, THEIRS, member(THEIRS))
    assert check.validate(written("_orders", OURS, member(OURS, **changes))) is holds


def test_nobody_writes_by_the_right_of_another() -> None:
    check = RecordValidator(RUN, RSAPrivateKey(), member(THEIRS))
    for key, other in permutations((OURS, THEIRS)):
        subkey = serialize(subkey_of(key))
        assert check.validate(written("_orders", key, member(key), subkey=subkey))
        borrowed = written("_orders", key, member(key, peer=other), subkey=subkey)
        assert not check.validate(borrowed)


@pytest.mark.parametrize(
    ("name", "given", "seconds"),
    [
        ("_orders", RollbackOrder(**order()), EXPIRATION_SECONDS),
        ("_bans", BanOrder(contributors=[], time=1.0), EXPIRATION_SECONDS),
        ("_end", EndOrder(time=1.0), END_SECONDS),
    ],
)
def test_an_order_is_a_record_held_for_its_time(name: str, given: Any, seconds: float) -> None:
    table: Any = Mock()
    publish(table, RUN, TAG, given)
    sent = table.store.call_args.kwargs
    assert (sent["key"], sent["subkey"]) == (f"{RUN}{name}", TAG)
    assert sent["return_future"], "nobody waits"
    ahead = sent["expiration_time"] - get_dht_time()
    assert seconds - 60 < ahead <= seconds
    assert CHECK.validate(ours(name, value=sent["value"], seconds=ahead))


def test_the_newest_order_of_a_moderator_is_followed() -> None:
    expires = get_dht_time() + 60
    given = {
        subkey_of(key): ValueWithExpiration(order() | {"step": step, "time": time}, expires)
        for key, step, time in ((OURS, 11, 100.0), (THEIRS, 22, 200.0))
    }
    table: Any = Mock()
    table.get.return_value.result.return_value = ValueWithExpiration(given, expires)
    ours_alone = {peer_id_of(TAG)}
    both = {peer_id_of(subkey) for subkey in given}
    for moderators, step in ((ours_alone, 11), (both, 22)):
        found = find(table, RUN, RollbackOrder, frozenset(moderators), 1.0)
        assert found.step == step
    assert find(table, RUN, RollbackOrder, frozenset(), 1.0) is None
    table.get.assert_called_with(f"{RUN}_orders", latest=True, return_future=True)


def test_progress_of_another_peer_is_refused() -> None:
    assert not CHECK.validate(ours("_progress", value=progress(THEIRS)))


def test_it_stands_in_for_the_validators_that_the_tracker_adds() -> None:
    validators = CompositeValidator([CHECK])
    validators.extend([SchemaValidator(TrainingProgressSchema, RUN), RSASignatureValidator(OURS)])
    assert validators.validate(ours("_progress"))
    assert not validators.validate(ours("_progress", seconds=1e6))


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)
sealed_once = cache(ours)
patient = settings(max_examples=60)


@given(
    key=st.sampled_from([make_record(name, TAG, 1).key for name in KINDS]) | st.binary(max_size=24),
    subkey=st.binary(max_size=60) | st.builds(serialize, anything),
    value=st.binary(max_size=60) | st.builds(serialize, anything),
    expiration=st.floats(),
)
@patient
def test_no_bytes_make_it_raise(key: bytes, subkey: bytes, value: bytes, expiration: float) -> None:
    assert CHECK.validate(DHTRecord(key, subkey, value, expiration)) is False


@given(
    name=st.sampled_from(list(KINDS)),
    place=st.integers(0, 10**6),
    byte=st.integers(0, 255),
    part=st.sampled_from(["key", "subkey", "value"]),
)
@patient
def test_no_byte_of_a_record_can_be_changed(name: str, place: int, byte: int, part: str) -> None:
    record = sealed_once(name)
    content = bytearray(getattr(record, part))
    before = content[place % len(content)]
    content[place % len(content)] = byte
    changed = replace(record, **{part: bytes(content)})
    if before != byte:
        assert not CHECK.validate(changed)


@given(name=st.sampled_from(list(KINDS)), value=anything)
@patient
def test_what_is_accepted_can_be_read(name: str, value: object) -> None:
    """Whatever a member signs: if it is stored, all readers take it or leave it out."""
    record = ours(name, value=value)
    if CHECK.validate(record):
        _read_all({KINDS[name][0]: DHTProtocol.serializer.loads(CHECK.strip_value(record))})


@given(records=st.dictionaries(st.binary(max_size=20) | st.just(TAG), anything, max_size=3))
@patient
def test_readers_never_raise(records: dict[Any, Any]) -> None:
    _read_all(records)


@given(found=anything | st.dictionaries(st.binary(max_size=20) | st.just(TAG), anything))
@patient
def test_readers_take_whatever_the_table_gives(found: object) -> None:
    answer = ValueWithExpiration(found, get_dht_time() + 10)
    for parse in PARSERS:
        assert entries(answer, parse) == {}
        assert entries(found, parse) == {}
    assert read_progress(found) == {}
    assert read_offers(answer) == read_offers(found) == read_searches(found) == []


def read_searches(found: object) -> list[Any]:
    """Peers that look for a group, as the library reads them."""

    async def get(*_: object, **__: object) -> object:
        return ValueWithExpiration(found, get_dht_time() + 10)

    table: Any = SimpleNamespace(get=get, peer_id=None)
    manager = GroupKeyManager(table, f"{RUN}_grad_averager", "", None)
    return asyncio.run(manager.get_averagers(manager.current_key, only_active=True))


def _read_all(values: dict[Any, Any]) -> None:
    records = {s: ValueWithExpiration(v, get_dht_time() + 10) for s, v in values.items()}
    answer = ValueWithExpiration(records, get_dht_time() + 10)
    for parse in PARSERS:
        assert entries(answer, parse).keys() <= {peer_id_of(TAG)}
    assert read_progress(records).keys() <= {peer_id_of(TAG)}
    assert len(read_offers(answer)) <= len(values)
    assert len(read_searches(records)) <= len(values)
