"""training/sparse: rounds from beginning to end, in one process and a folder."""

import itertools
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.sparse.rounds import Student, make_payload
from training.access import envelope
from training.access.envelope import FileError
from training.sparse import catching_up, closing
from training.sparse.catching_up import follow, join
from training.sparse.closing import Closing, ClosingError, DivergedError, Swarm
from training.sparse.codec import decode
from training.sparse.layout import Layout
from training.sparse.open_round import OpenRound
from training.sparse.peer import Peer, published
from training.sparse.shared import SharedState, load
from training.sparse.store import FolderStore, StoreError

FIRST = SharedState.of(Student().parameters)
LAYOUT = Layout.of(Student().parameters)


@pytest.fixture
def swarm(tmp_path: Path, identities: list[str]) -> Swarm:
    """A run whose rounds the first key closes."""
    return Swarm("our-run", LAYOUT, FolderStore(tmp_path), {identities[0]}, 1.0)


def make_peer(swarm: Swarm, key: RSAPrivateKey, state: SharedState, seed: int) -> Peer:
    """A peer that learns a sum of 70 numbers, from data of its own."""
    return Peer(*Student(seed).peer_arguments(swarm, state, key, 1e-2))


def contribute(peer: Peer, steps: int) -> None:
    assert peer.learn(steps, clock=itertools.count().__next__) is not None
    peer.publish()


def make_round(swarm: Swarm, peers: list[Peer], key: RSAPrivateKey, number: int) -> None:
    """Let all peers contribute and the closer close the round."""
    for place, peer in enumerate(peers):
        contribute(peer, 2 + (number + place) % 3)
    close_round(swarm, peers[0].state, published(swarm.store, number), key)
    for peer in peers:
        assert peer.follow() == 1


def close_round(swarm: Swarm, state: SharedState, sums: list[str], key: RSAPrivateKey) -> None:
    """Close a round with the payloads that are offered."""
    open_round = OpenRound(swarm, state, 100.0)
    for sha256 in sums:
        open_round.offer(sha256)
    open_round.close(key)


def offer(swarm: Swarm, key: RSAPrivateKey, **changes: Any) -> str:
    """Publish a payload of the first round."""
    return swarm.store.put(make_payload(swarm, FIRST, key, **changes))


def test_peers_of_uneven_pace_learn_the_same_bits(swarm: Swarm, keys: list[RSAPrivateKey]) -> None:
    peers = [make_peer(swarm, key, FIRST, seed) for seed, key in enumerate(keys[:3])]
    for number in range(40):
        make_round(swarm, peers, keys[0], number)
        assert len({peer.state.digest() for peer in peers}) == 1
    steps = [2 + (number + place) % 3 for number in range(40) for place in range(3)]
    assert peers[0].state.samples == 8 * sum(steps)
    student = Student(99)
    drawn = student.draw(256)
    before = student.loss(*drawn)
    load(peers[1].state.weights, student.parameters)
    assert student.loss(*drawn) < before / 2


def test_a_latecomer_has_the_bits_of_the_others(swarm: Swarm, keys: list[RSAPrivateKey]) -> None:
    peers = [make_peer(swarm, key, FIRST, seed) for seed, key in enumerate(keys[:2])]
    catching_up.publish(swarm.store, FIRST)
    for number in range(3):
        make_round(swarm, peers, keys[0], number)
    assert join(swarm).digest() == peers[0].state.digest()  # three rounds again
    catching_up.publish(swarm.store, peers[0].state)
    assert join(swarm).digest() == peers[0].state.digest()  # none
    for number in range(3, 5):
        make_round(swarm, peers, keys[0], number)
    late = join(swarm)  # two
    assert late.digest() == peers[0].state.digest()
    peers.append(make_peer(swarm, keys[2], late, 2))
    make_round(swarm, peers, keys[0], 5)
    assert len({peer.state.digest() for peer in peers}) == 1
    assert follow(swarm, FIRST.copy()).digest() == peers[0].state.digest()


def test_what_a_round_missed_goes_into_the_next(swarm: Swarm, keys: list[RSAPrivateKey]) -> None:
    slow = make_peer(swarm, keys[1], FIRST, 1)
    assert slow.learn(2, clock=itertools.count().__next__)  # too late to hand it in
    offered = slow._feedback.residual.clone()
    close_round(swarm, FIRST, [offer(swarm, keys[2])], keys[0])
    assert slow.follow() == 1
    assert torch.equal(slow._feedback.residual, offered)
    contribute(slow, 2)
    close_round(swarm, slow.state, published(swarm.store, 1), keys[0])
    before = slow._feedback.residual.clone()
    assert slow.follow() == 1
    assert slow._feedback.residual.norm() < before.norm()


def test_what_a_round_had_and_left_out_is_given_up(swarm: Swarm, keys: list[RSAPrivateKey]) -> None:
    peer = make_peer(swarm, keys[1], FIRST, 1)
    contribute(peer, 2)
    close_round(swarm, FIRST, [offer(swarm, keys[2])], keys[0])
    assert peer.follow() == 1
    assert (peer.left_out, peer.rounds) == (1, 0)
    assert not peer._feedback.residual.any()
    contribute(peer, 2)  # goes on
    drift = torch.cat([parameter.flatten() for parameter in peer._parameters]).detach()
    assert torch.equal(peer._feedback.residual, peer.state.weights - drift)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"run": "another"}, "another run"),
        ({"number": 1}, "made for round 1"),
        ({"start": "ab" * 32}, "other weights"),
        ({"size": 1e3}, "norm"),
    ],
)
def test_a_bad_payload_is_left_out_with_a_reason(
    swarm: Swarm, keys: list[RSAPrivateKey], changes: dict[str, Any], reason: str
) -> None:
    open_round = OpenRound(swarm, FIRST, 100.0)
    with pytest.raises(FileError, match=reason):
        open_round.offer(offer(swarm, keys[1], **changes))
    with pytest.raises(StoreError, match="cannot be read"):
        open_round.offer("ab" * 32)
    assert open_round.taken == ()


@pytest.fixture
def closed(swarm: Swarm, keys: list[RSAPrivateKey]) -> Closing:
    """The first round's list, published."""
    close_round(swarm, FIRST, [offer(swarm, key) for key in keys[1:3]], keys[0])
    return closing.find(swarm, 0)


def test_no_strangers_list_counts(swarm: Swarm, keys: list[RSAPrivateKey], closed: Closing) -> None:
    closing.publish(swarm, closed, keys[3])
    with pytest.raises(ClosingError, match="stranger"):
        follow(swarm, FIRST)
    closing.publish(swarm, closed, keys[0])
    assert follow(swarm, FIRST).digest() == closed.end


def test_a_list_is_for_one_round(swarm: Swarm, keys: list[RSAPrivateKey], closed: Closing) -> None:
    sha256 = closing.publish(swarm, closed, keys[0])
    swarm.store.point("closings/000000001", sha256)
    with pytest.raises(ClosingError, match="made for round 0"):
        follow(swarm, FIRST)
    with pytest.raises(ClosingError, match="another run"):
        follow(replace(swarm, run="another"), FIRST)
    other = FIRST.copy()
    other.weights[0] += 1
    with pytest.raises(ClosingError, match="other weights"):
        follow(swarm, other)


def test_other_bits_are_noticed(swarm: Swarm, keys: list[RSAPrivateKey], closed: Closing) -> None:
    closing.publish(swarm, replace(closed, end="ab" * 32), keys[0])
    before = FIRST.digest()
    with pytest.raises(DivergedError, match="other weights here"):
        follow(swarm, FIRST)
    assert FIRST.digest() == before


def test_a_list_names_payloads_as_they_are(
    swarm: Swarm, keys: list[RSAPrivateKey], closed: Closing
) -> None:
    first, second = closed.taken
    for taken, reason in (
        ((replace(first, samples=17), second), "not the one"),
        ((replace(first, sha256=second.sha256), second), "not the one"),
        ((replace(first, sha256="ab" * 32), second), "cannot be read"),
        ((second, first), "order"),
        ((first, first), "order"),
        ((), "other weights here"),
        ((replace(first, samples=0), second), "that is none"),
        ((replace(first, sha256="../a"), second), "that is none"),
    ):
        closing.publish(swarm, replace(closed, taken=taken), keys[0])
        with pytest.raises(ClosingError, match=reason):
            follow(swarm, FIRST)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"5", b"[5]", b"{}", b"[[1]]", b"[[1,2,3,4]]", b"[" * 9999]
)
def test_a_body_that_is_no_list_is_refused(
    swarm: Swarm, keys: list[RSAPrivateKey], closed: Closing, body: bytes
) -> None:
    content = envelope.seal("closing", {**asdict(closed.of), "end": closed.end}, body, keys[0])
    swarm.store.point("closings/000000000", swarm.store.put(content))
    with pytest.raises(ClosingError, match="no list"):
        follow(swarm, FIRST)


def test_a_checkpoint_that_no_list_vouches_for_is_refused(swarm: Swarm, closed: Closing) -> None:
    with pytest.raises(ClosingError, match="no checkpoint"):
        join(swarm)
    after = follow(swarm, FIRST)
    catching_up.publish(swarm.store, after)
    assert join(swarm).digest() == closed.end
    after.weights[0] += 1
    for after.round in (1, 5):
        catching_up.publish(swarm.store, after)
        with pytest.raises(ClosingError, match="vouches"):
            join(swarm)


def test_a_file_that_is_no_checkpoint_is_refused(swarm: Swarm) -> None:
    bad = FIRST.copy()
    bad.weights[0] = float("nan")
    good, not_finite = (
        swarm.store.get(catching_up.publish(swarm.store, one), 10**6) for one in (FIRST, bad)
    )
    for content, reason in (
        (good[:-1], "another model"),
        (good + b"\0", "more than"),
        (b"????" + good[4:], "is none"),
        (not_finite, "not finite"),
    ):
        swarm.store.point("checkpoints/000000000", swarm.store.put(content))
        with pytest.raises(ClosingError, match=reason):
            join(swarm)


def test_a_step_on_encoded_updates_has_the_same_bits(
    swarm: Swarm, closed: Closing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no room for decoded updates, each is decoded when its turn comes."""
    decoding = Mock(side_effect=decode)
    monkeypatch.setattr(closing, "HELD_BYTES", 0)
    monkeypatch.setattr(closing, "decode", decoding)
    assert follow(swarm, FIRST).digest() == closed.end
    assert decoding.call_count == len(closed.taken) > 1, "none was held until then"
