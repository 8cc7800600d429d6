from typing import Any

import pytest
from hivemind.utils import ValueWithExpiration, get_dht_time
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.records.sealing import progress as record
from tests.training.records.sealing import subkey_of
from training.averaging.paces import FASTEST, Paces
from training.averaging.progress import believe, credible_step, read_progress
from training.averaging.reduction import Round, WeightBounds
from training.records.kinds import Progress
from training.records.owners import peer_id_of

TARGET = 64
PEER: Any = "a"
KEYS = [RSAPrivateKey() for _ in range(4)]
PEERS = [peer_id_of(subkey_of(key)) for key in KEYS]


def read(
    *records: tuple[RSAPrivateKey, dict[str, Any]],
    floor: int = 0,
    limits: dict[str, float] | None = None,
    paces: dict[str, float] | None = None,
) -> list[Progress]:
    """The progress believed from the records in the DHT."""
    entries = {
        subkey_of(key): ValueWithExpiration(value=value, expiration_time=1e10)
        for key, value in records
    }
    found = read_progress(entries)
    limits, paces = limits or dict.fromkeys(found, 1e9), paces or dict.fromkeys(found, 1e9)
    return list(believe(found, paces, limits, TARGET, floor).values())


@pytest.mark.parametrize(
    ("claimed", "floor", "steps"),
    [(10, 0, [10] * 4), (10**9, 0, [10] * 3), (11, 0, [10] * 3 + [11]), (50, 50, [10] * 3 + [50])],
    ids=["honest", "a step that is not there", "the first at the next step", "ordered"],
)
def test_one_of_four_is_believed_where_its_step_can_be(
    claimed: int, floor: int, steps: list[int]
) -> None:
    honest = [(key, record(key)) for key in KEYS[1:]]
    believed = read((KEYS[0], record(KEYS[0], epoch=claimed)), *honest, floor=floor)
    assert sorted(r.epoch for r in believed) == steps
    assert {r.samples_accumulated for r in believed} == {8}


def test_a_record_that_names_another_peer_or_says_goodbye_is_left_out() -> None:
    assert read((KEYS[0], record(KEYS[1]))) == []  # stolen: under the key of another
    entries = {subkey_of(KEYS[0]): ValueWithExpiration(value=None, expiration_time=1e10)}
    assert read_progress(entries) == {}


@pytest.mark.parametrize(
    ("steps", "furthest"),
    [([], 0), ([3], 4), ([0, 900], 901), ([5, 5, 5, 10**9], 6), ([7, 7, 9, 9, 10**9], 10)],
)
def test_a_quarter_of_the_peers_may_be_wrong_about_the_step(
    steps: list[int], furthest: int
) -> None:
    assert credible_step(steps) == furthest


@pytest.mark.parametrize(("limit", "samples"), [(24.5, 24), (1e9, TARGET)])
def test_samples_and_paces_are_cut_to_what_can_be(limit: float, samples: int) -> None:
    claim = record(KEYS[0], samples_accumulated=10**9, samples_per_second=1e12)
    (believed,) = read((KEYS[0], claim), limits={PEERS[0]: limit}, paces={PEERS[0]: 2.0})
    assert (believed.samples_accumulated, believed.samples_per_second) == (samples, 2.0)


@pytest.mark.parametrize("told", [0.0, 1e300])
def test_a_report_that_claims_to_be_old_or_to_come_does_not_fill_a_batch(told: float) -> None:
    (believed,) = read((KEYS[0], record(KEYS[0], time=told)))
    assert abs(believed.time - get_dht_time()) < 40


def test_a_declared_pace_counts_for_four_times_the_middle_one_at_most() -> None:
    paces = Paces().credible({"a": 2.0, "b": 2.0, "c": 3.0, "liar": 1e12})
    assert paces["liar"] == FASTEST * 2.0
    assert all(paces[peer] >= 2.0 for peer in "abc")


def test_a_newcomer_counts_like_the_middle_one_until_it_is_seen_in_a_round() -> None:
    paces = Paces()
    paces.witness(Round({"a": 20.0, "b": 40.0}, seconds=10.0))
    declared = {"a": 1e6, "b": 4.0, "newcomer": 1e6, "us": 3.0}
    credible = paces.credible(declared, "us")
    assert credible == {"a": 8.0, "b": 12.0, "newcomer": 3.0, "us": 12.0}  # the middle made 3
    paces.witness(Round({"newcomer": 20.0}, seconds=10.0))
    assert paces.credible(declared, "us")["newcomer"] == 8.0


def test_a_first_round_and_one_that_weighed_nobody_witness_nothing() -> None:
    paces = Paces()
    paces.witness(Round({"a": 20.0}))
    paces.witness(Round({"a": None}, seconds=10.0))
    assert paces.credible({"a": 5.0, "b": 6.0}) == {"a": 20.0, "b": 20.0}


def test_an_honest_peer_may_be_faster_for_a_while() -> None:
    """As on a busy machine: 64 samples in 14 seconds, then 96 in 3.5."""
    paces = Paces()
    paces.witness(Round({"a": 64.0, "b": 64.0}, seconds=14.0))
    pace = paces.credible({"a": 27.0, "b": 27.0})["a"]
    assert WeightBounds(1e9, 64.0, {PEER: pace}, 3.5).of(PEER) > 96


def test_a_liar_that_was_witnessed_for_long_still_counts_for_little() -> None:
    paces = Paces()
    for _ in range(50):
        paces.witness(Round({"a": 20.0, "b": 20.0, "c": 20.0, "liar": 1e9}, seconds=10.0))
    credible = paces.credible(dict.fromkeys(["a", "b", "c", "liar"], 1e12))
    assert credible["liar"] == FASTEST * 2.0 == credible["a"]
