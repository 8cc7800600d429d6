from typing import Any

import pytest
from hivemind.optim.progress_tracker import LocalTrainingProgress
from hivemind.p2p import PeerID
from hivemind.utils import ValueWithExpiration
from hivemind.utils.crypto import RSAPrivateKey

from training.progress import believe, credible_step
from training.subkeys import peer_id_of

TARGET = 64
KEYS = [RSAPrivateKey() for _ in range(4)]


def subkey_of(key: RSAPrivateKey) -> bytes:
    return b"[owner:" + key.get_public_key().to_bytes() + b"]"


def record(key: RSAPrivateKey, **values: Any) -> dict[str, Any]:
    peer = PeerID.from_base58(peer_id_of(subkey_of(key)))
    content = {
        "peer_id": peer.to_bytes(),
        "epoch": 10,
        "samples_accumulated": 8,
        "samples_per_second": 2.0,
        "time": 1000.0,
        "client_mode": False,
    }
    return content | values


def read(
    *records: tuple[RSAPrivateKey, dict[str, Any]], floor: int = 0
) -> list[LocalTrainingProgress]:
    """What is believed of the records in the DHT."""
    entries = {
        subkey_of(key): ValueWithExpiration(value=value, expiration_time=1e10)
        for key, value in records
    }
    return list(believe(entries, TARGET, floor).values())


def test_honest_peers_are_believed() -> None:
    believed = read(*[(key, record(key)) for key in KEYS])
    assert [(r.epoch, r.samples_accumulated) for r in believed] == [(10, 8)] * 4


def test_one_of_four_cannot_send_the_others_after_a_step_that_is_not_there() -> None:
    honest = [(key, record(key)) for key in KEYS[1:]]
    believed = read((KEYS[0], record(KEYS[0], epoch=10**9)), *honest)
    assert [r.epoch for r in believed] == [10] * 3


def test_whoever_is_first_at_the_next_step_is_believed() -> None:
    honest = [(key, record(key)) for key in KEYS[1:]]
    believed = read((KEYS[0], record(KEYS[0], epoch=11)), *honest)
    assert max(r.epoch for r in believed) == 11


def test_a_step_that_the_moderators_ordered_is_believed() -> None:
    honest = [(key, record(key)) for key in KEYS[1:]]
    believed = read((KEYS[0], record(KEYS[0], epoch=50)), *honest, floor=50)
    assert max(r.epoch for r in believed) == 50


def test_a_billion_samples_count_as_one_step() -> None:
    (believed,) = read((KEYS[0], record(KEYS[0], samples_accumulated=10**9)))
    assert believed.samples_accumulated == TARGET


def test_a_record_that_names_another_peer_is_left_out() -> None:
    stolen = record(KEYS[1])  # under the key of another
    assert read((KEYS[0], stolen)) == []


def test_a_peer_that_said_goodbye_is_left_out() -> None:
    entries = {subkey_of(KEYS[0]): ValueWithExpiration(value=None, expiration_time=1e10)}
    assert believe(entries, TARGET) == {}


@pytest.mark.parametrize(
    ("steps", "furthest"),
    [([], 0), ([3], 4), ([0, 900], 901), ([5, 5, 5, 10**9], 6), ([7, 7, 9, 9, 10**9], 10)],
)
def test_a_quarter_of_the_peers_may_be_wrong_about_the_step(
    steps: list[int], furthest: int
) -> None:
    assert credible_step(steps) == furthest
