"""Volunteers judge each other's updates at a host; some lie, some vanish."""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.sparse.attacks import ATTACKS, Attack
from tests.training.sparse.clocks import Clock, ticking
from tests.training.sparse.jury import Jury, Manner
from tests.training.sparse.test_judging import STEPS, Run, losses, make_run
from training.sparse import assignment, catching_up, panel
from training.sparse.codec import Update
from training.sparse.host import Closed, Host, NotTakenError
from training.sparse.judging import Judge, applied, compare
from training.sparse.panel import Panel
from training.sparse.store import FolderStore
from training.sparse.verdict import Finding

ROUNDS = 25
WAIT = 30.0  # seconds for verdicts


@dataclass
class Scene:
    """A run whose peers judge each other."""

    run: Run
    jury: Jury
    clock: Clock
    panel: Panel

    @property
    def host(self) -> Host:
        return self.run.host

    def make_round(self) -> Closed:
        for place, peer in enumerate(self.run.peers):
            assert peer.learn(STEPS, clock=ticking()) is not None, place
            self.host.take_payload(peer._content, b"")
        closed = None
        while closed is None:
            self.host.judge_updates()
            closed = self.host.close_if_due(self.run.key)
            if closed is None and self.host.describe()["judging"]:
                self.jury.answer(self.host)
                if self.host.describe()["judging"]:
                    self.clock.now += WAIT
        for peer in self.run.peers:
            assert peer.follow() == 1
        self.run.closed.append(closed)
        return closed


def make_scene(
    folder: Path,
    keys: list[RSAPrivateKey],
    identities: list[str],
    attack: Attack | None = None,
    seed: int = 1,
) -> Scene:
    """Peers of which the first may be bad."""
    clock = Clock()
    jurors = Panel(lambda number: f"sequences {number}".encode(), 3, WAIT, random.Random(seed))
    run = make_run(folder, keys, identities, attack, Judge(losses), panel=jurors, clock=clock)

    def measure(update: Update) -> Finding:
        number, weights = run.host.state.round, run.host.state.weights
        return compare(losses(number, weights), losses(number, applied(weights, update)))

    return Scene(run, Jury(keys, measure), clock, jurors)


def left_out(scene: Scene, identity: str) -> list[int]:
    return [one.number for one in scene.run.closed if identity in one.left_out]


def test_the_jury_leaves_out_whom_the_host_would_leave_out(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    """The host measures a quarter of the updates itself, and believes the jury for the others."""
    scene = make_scene(tmp_path, keys, identities, ATTACKS["times -10"])
    for _ in range(ROUNDS):
        scene.make_round()
    assert len(left_out(scene, identities[0])) >= 0.9 * ROUNDS
    assert sum(len(left_out(scene, one)) for one in identities[1:]) <= 0.03 * 3 * ROUNDS
    believed = sum(one.believed for one in scene.run.closed)
    assert believed / (4 * ROUNDS) == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / 100) ** 0.5)
    assert scene.panel.liars == set()
    assert scene.clock.now == 0.0, "nobody was waited for in vain"


def test_a_minority_that_lies_changes_nothing_and_judges_once(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    """The bad peer slanders the others: for each of them two honest judges contradict it."""
    scene = make_scene(tmp_path, keys, identities, ATTACKS["times -10"])
    scene.jury.accomplices = scene.jury.friends = {identities[0]}
    first = scene.make_round()
    assert first.liars == {identities[0]}
    for _ in range(ROUNDS - 1):
        assert scene.make_round().liars == frozenset()
    assert scene.jury.lies <= 3
    assert len(left_out(scene, identities[0])) >= 0.9 * ROUNDS
    assert sum(len(left_out(scene, one)) for one in identities[1:]) <= 0.03 * 3 * ROUNDS


@pytest.mark.parametrize("seed", range(4))
def test_a_majority_that_lies_where_nobody_contradicts_is_found_out_by_the_spot_check(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str], seed: int
) -> None:
    """Three of four condemn the honest one's updates until the host measures one of those."""
    scene = make_scene(tmp_path, keys, identities, seed=seed)
    scene.jury.accomplices = scene.jury.friends = set(identities[1:])
    scene.jury.manner = Manner.ALONE
    for _ in range(ROUNDS):
        scene.make_round()
    assert scene.panel.liars == set(identities[1:])
    caught = next(one.number for one in scene.run.closed if one.liars)
    assert left_out(scene, identities[0])[:caught] == list(range(caught)), "each lie counted"
    assert len(left_out(scene, identities[0])) <= caught + 1
    assert caught <= 12  # of 4 seeds: 0.75 ** 12 is 3%
    assert scene.host.state.samples > 0


def test_where_everybody_lies_the_host_ends_up_judging_alone(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    scene = make_scene(tmp_path, keys, identities, ATTACKS["times -10"])
    scene.jury.accomplices, scene.jury.friends = set(identities), {identities[0]}
    for _ in range(ROUNDS):
        scene.make_round()
    assert scene.panel.liars == set(identities)
    caught = max(one.number for one in scene.run.closed if one.liars)
    after = [one for one in scene.run.closed if one.number > caught]
    assert after
    assert all(one.believed == 0 for one in after)
    assert sum(identities[0] in one.left_out for one in after) >= 0.9 * len(after)
    assert scene.clock.now == 0.0


def test_a_judge_that_vanishes_is_waited_for_once_in_a_while(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    """It rests for 10 rounds and then for 20: rounds 0 and 11 wait for it, of 25."""
    scene = make_scene(tmp_path, keys, identities, ATTACKS["times -10"])
    scene.jury.accomplices, scene.jury.manner = {identities[1]}, Manner.SILENT
    for _ in range(ROUNDS):
        scene.make_round()
    assert 0 < scene.clock.now <= 2 * WAIT
    assert len(left_out(scene, identities[0])) >= 0.9 * ROUNDS
    assert scene.panel.liars == set()


def test_without_any_verdict_the_host_judges_as_if_alone(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    scene = make_scene(tmp_path, keys, identities, ATTACKS["times -10"])
    scene.jury.accomplices, scene.jury.manner = set(identities), Manner.SILENT
    closed = scene.make_round()
    assert closed.believed == 0
    assert set(closed.left_out) == {identities[0]}
    assert scene.clock.now == WAIT
    assert scene.make_round().believed == 0
    assert scene.clock.now == WAIT, "nobody is asked"


def test_once_sequences_are_announced_a_round_takes_no_more(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    scene = make_scene(tmp_path, keys, identities)
    host = scene.host
    for peer in scene.run.peers[:3]:
        peer.learn(STEPS, clock=ticking())
        host.take_payload(peer._content, b"")
    assert host.close_if_due(keys[0]) is None
    assert host.describe()["judging"]
    assert assignment.find(host.swarm, host.swarm.round_of(host.state)) is not None
    late = scene.run.peers[3]
    late.learn(STEPS, clock=ticking())
    with pytest.raises(NotTakenError, match="takes no more"):
        host.take_payload(late._content, b"")
    first = scene.run.peers[0]
    assert host.take_payload(first._content, b""), "one that it has is confirmed again"


def test_nobody_says_anything_before_or_after(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    scene = make_scene(tmp_path, keys, identities)
    with pytest.raises(NotTakenError, match="no verdict is waited for"):
        scene.host.take_verdict(b"", b"")
    scene.make_round()
    with pytest.raises(NotTakenError, match="no verdict is waited for"):
        scene.host.take_verdict(b"", b"")


def test_the_files_of_the_judging_stay_as_long_as_those_of_the_round(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    scene = make_scene(tmp_path, keys, identities)
    store = scene.host.store
    assert isinstance(store, FolderStore)
    for _ in range(3):
        scene.make_round()
    files = [*panel.names_of_round(0), *store.names(panel.folder_of(0))]
    assert len(files) == 2 + 4, "announcement, sequences, a verdict of each"
    assert all(store.find(name) for name in files)
    catching_up.publish(store, scene.host.state)
    catching_up.forget_before(store, kept=1)
    assert not any(store.find(name) for name in files)
    assert store.names(panel.folder_of(0)) == []
    assert len(store.names(panel.folder_of(2))) == 4
