import math
from dataclasses import replace
from typing import Any

import pytest
from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.dht.validation import CompositeValidator, DHTRecord
from hivemind.utils.crypto import RSAPrivateKey

from training.contribution import Contribution
from training.live import PeerState
from training.metrics import RECENT_STEPS, make_validators
from training.subkeys import contributor_id
from training.traffic import Traffic

OURS, THEIRS = RSAPrivateKey(), RSAPrivateKey()


def make_subkey(key: RSAPrivateKey) -> bytes:
    return b"[owner:" + key.get_public_key().to_bytes() + b"]"


def make_record(value: dict[str, Any], owner: RSAPrivateKey) -> DHTRecord:
    serialize = DHTProtocol.serializer.dumps
    key = DHTID.generate("run_metrics").to_bytes()
    return DHTRecord(key, serialize(make_subkey(owner)), serialize(value), 1e10)


def is_accepted(record: DHTRecord, signer: RSAPrivateKey) -> bool:
    signed = replace(
        record, value=CompositeValidator(make_validators("run", signer)).sign_value(record)
    )
    return CompositeValidator(make_validators("run", RSAPrivateKey())).validate(signed)


def report(name: str = "alice") -> dict[str, Any]:
    contribution = Contribution(name)
    contribution.add(16, 4.5)
    contribution.finish_step(3, Traffic(100, 90))
    return contribution.report(PeerState.TRAINING, 3, 12.5).dict()


def test_a_signed_report_is_accepted_by_everybody() -> None:
    assert is_accepted(make_record(report(), OURS), OURS)


def test_nobody_can_report_for_another() -> None:
    assert not is_accepted(make_record(report(), THEIRS), OURS)


def test_a_signed_report_cannot_be_kept_alive_by_another() -> None:
    record = make_record(report(), OURS)
    validators = CompositeValidator(make_validators("run", OURS))
    signed = replace(record, value=validators.sign_value(record))
    assert validators.validate(signed)
    assert not validators.validate(replace(signed, expiration_time=signed.expiration_time + 600))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("samples", -1),
        ("samples", 1.0),
        ("samples_per_second", math.nan),
        ("samples_per_second", math.inf),
        ("name", ""),
        ("name", "<script>"),
        ("name", "x" * 41),
        ("state", "sleeping"),
        ("recent", [{"step": 1}]),
        ("milestones", {"lunch": 3.0}),
        ("milestones", {"connect": -1.0}),
    ],
)
def test_a_report_of_another_shape_is_refused(field: str, value: object) -> None:
    assert not is_accepted(make_record(report() | {field: value}, OURS), OURS)


def test_a_report_with_a_field_too_many_is_refused() -> None:
    assert not is_accepted(make_record(report() | {"note": "hello"}, OURS), OURS)


@pytest.mark.parametrize("name", ["Ada Lovelace", "user_1", "d.e@f-g", "Grażyna", "名前"])
def test_names_of_people_are_accepted(name: str) -> None:
    assert is_accepted(make_record(report(name), OURS), OURS)


def test_a_contribution_counts_only_what_went_into_a_step() -> None:
    contribution = Contribution("alice")
    contribution.add(16, 4.0)
    contribution.discard()
    contribution.add(16, 3.0)
    contribution.add(16, 5.0)
    assert (contribution.samples, contribution.pending_samples) == (0, 32)
    contribution.finish_step(1, Traffic(100, 90))
    contribution.add(16, 2.0)
    contribution.finish_step(2, Traffic(130, 100))
    sent = contribution.report(PeerState.TRAINING, 2, 1.0)
    assert (sent.samples, sent.steps) == (48, 2)
    assert [(s.samples, s.loss, s.mini_steps) for s in sent.recent] == [(32, 8.0, 2), (16, 2.0, 1)]
    assert [(s.bytes_sent, s.bytes_received) for s in sent.recent] == [(100, 90), (30, 10)]


def test_a_step_made_without_us_is_no_contribution() -> None:
    contribution = Contribution("alice")
    contribution.finish_step(1, Traffic(0, 0))
    assert (contribution.steps, list(contribution.recent)) == (0, [])


def test_a_report_tells_the_last_few_steps() -> None:
    contribution = Contribution("alice")
    for step in range(1, 2 * RECENT_STEPS):
        contribution.add(16, 4.0)
        contribution.finish_step(step, Traffic(0, 0))
    steps = [entry.step for entry in contribution.report(PeerState.TRAINING, step, 1.0).recent]
    assert steps == list(range(RECENT_STEPS, 2 * RECENT_STEPS))


def test_contributors_are_told_apart_by_their_keys() -> None:
    assert contributor_id(make_subkey(OURS)) != contributor_id(make_subkey(THEIRS))
    assert len(contributor_id(make_subkey(OURS))) == 12
