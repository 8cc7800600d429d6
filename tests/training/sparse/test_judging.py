"""training/sparse/judging: bad updates are left out by their effect, honest ones are not."""

import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey
from torch.nn import functional

from tests.training.sparse.attacks import ABSURD, ATTACKS, Attack, BadPeer, Material
from tests.training.sparse.rounds import SETTINGS, Student
from training.sparse import closing
from training.sparse.closing import Swarm
from training.sparse.codec import Update, decode, encode
from training.sparse.host import Closed, Host, NotTakenError
from training.sparse.judging import (
    BUCKETS,
    FIRST_ROUNDS,
    HARMFUL_NOW,
    SAMPLE,
    Effect,
    Judge,
    Sketcher,
    Sketches,
)
from training.sparse.layout import Layout
from training.sparse.peer import Peer
from training.sparse.shared import SharedState, load
from training.sparse.store import FolderStore

ROUNDS = 40
SOME = 20  # of them, after which it is seen whether training goes on
FEW = 12  # rounds, after which it is seen whether a blow counts
STEPS = 4  # local ones of a round
NOTHING = Update(torch.tensor([], dtype=torch.int64), torch.tensor([]), 0.0)
NO_SKETCH = torch.zeros(BUCKETS)


def new_student(seed: int) -> Student:
    return Student(seed, summed=10, count=16)


JUDGING = new_student(99)
FIRST = SharedState.of(JUDGING.parameters)
HELD_OUT = [JUDGING.draw(16) for _ in range(64)]


def losses(number: int, weights: torch.Tensor) -> list[float]:
    """On 8 of the batches for each round, and on all of them for rounds below 0."""
    load(weights, JUDGING.parameters)
    start = 8 * number % 64
    drawn = HELD_OUT[start : start + 8] if number >= 0 else HELD_OUT
    with torch.no_grad():
        return [float(JUDGING.loss(*batch)) for batch in drawn]


@dataclass
class Run:
    """A host and its peers, of which the first may be bad.

    Attributes:
        closed: its rounds. before: the weights that each began with.
        refused: rounds in which an upload was not taken at all.
    """

    host: Host
    peers: list[Peer]
    key: RSAPrivateKey
    closed: list[Closed]
    before: list[torch.Tensor] = field(default_factory=list)
    refused: int = 0

    def make_round(self) -> None:
        self.before.append(self.host.state.weights)
        for peer in self.peers:
            assert peer.learn(STEPS, clock=itertools.count().__next__) is not None
            try:
                self.host.take_payload(peer._content, b"")
            except NotTakenError:
                self.refused += 1
        self.host.judge_updates()
        closed = self.host.close_if_due(self.key)
        assert closed is not None
        self.closed.append(closed)
        for peer in self.peers:
            assert peer.follow() == 1

    def make_rounds(self, count: int) -> None:
        for _ in range(count):
            self.make_round()

    def left_out(self, *identities: str) -> int:
        """Updates of some peers, omitted from its rounds."""
        return sum(one in closed.left_out for closed in self.closed for one in identities)

    def loss(self, after: int = ROUNDS) -> float:
        found = losses(-1, [*self.before, self.host.state.weights][after])
        return sum(found) / len(found)


def make_run(
    folder: Path,
    keys: list[RSAPrivateKey],
    identities: list[str],
    attack: Attack | None = None,
    count: int = 4,
) -> Run:
    store = FolderStore(folder)
    swarm = Swarm("our-run", Layout.of(JUDGING.parameters), store, {identities[0]}, 1.0)
    peers = []
    for place, key in enumerate(keys[:count]):
        arguments = new_student(place).peer_arguments(swarm, FIRST, key, 4e-3)
        is_bad = attack is not None and not place
        peers.append(BadPeer(attack, *arguments) if is_bad else Peer(*arguments))
    hasty, clock = replace(SETTINGS, quorum=1, grace=0.0, longest=0.0), itertools.count().__next__
    host = Host(swarm, store, FIRST.copy(), hasty, clock=clock, judge=Judge(losses))
    return Run(host, peers, keys[0], [])


Begin = Callable[..., Run]


@pytest.fixture
def begin(tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str]) -> Begin:
    return partial(make_run, tmp_path, keys, identities)


@pytest.fixture
def judge() -> Judge:
    return Judge(losses)


@pytest.fixture(scope="module")
def honest(
    tmp_path_factory: pytest.TempPathFactory, keys: list[RSAPrivateKey], identities: list[str]
) -> Run:
    """A run of honest peers, judged."""
    run = make_run(tmp_path_factory.mktemp("honest"), keys, identities)
    run.make_rounds(ROUNDS)
    return run


def test_honest_updates_are_taken(honest: Run, identities: list[str]) -> None:
    assert honest.loss() < 0.5 * sum(losses(-1, FIRST.weights)) / 64
    assert honest.left_out(*identities) <= 0.02 * 4 * ROUNDS


def replay(honest: Run, identities: list[str], attack: Attack) -> Counter[str]:
    """Rounds of the honest run that leave out a peer, by peer, where the first one attacks."""
    judge, generator = Judge(losses), torch.Generator().manual_seed(13)
    swarm, count = honest.host.swarm, Counter[str]()
    layout = swarm.layout
    others = torch.zeros(layout.elements)
    for number in range(ROUNDS):
        closed = closing.find(swarm, number)
        effects = {}
        for one in closed.taken:
            update = closing.read_payload(swarm, closed.of, one).update
            if one.peer == identities[0]:
                material = Material(update.dense(layout.elements), others, generator)
                update = decode(encode(attack(material), layout), layout)
            if judge.must_measure(one.peer):
                effect = judge.measure(number, honest.before[number], update)
            else:
                effect = judge.trust(update, layout.elements)
            effects[one.peer] = effect, one.samples
        count.update(judge.weigh(effects).keys())
        others = update.dense(layout.elements)
    return count


@pytest.mark.parametrize("attack", [name for name in ATTACKS if name[:5] != "times"])
def test_a_bad_peer_is_left_out_and_the_others_are_not(
    identities: list[str], honest: Run, attack: str
) -> None:
    count = replay(honest, identities, ATTACKS[attack])
    assert count[identities[0]] >= 0.7 * ROUNDS
    assert count.total() - count[identities[0]] <= 0.03 * 3 * ROUNDS


def test_a_bad_peer_does_no_harm_and_everybody_follows_the_list_that_leaves_it_out(
    begin: Begin, identities: list[str], honest: Run
) -> None:
    run = begin(ATTACKS["times -10"])
    run.make_round()
    assert set(run.closed[0].left_out) == {identities[0]}
    assert "raises the loss by" in run.closed[0].left_out[identities[0]]
    assert [one.peer for one in closing.find(run.host.swarm, 0).taken] == identities[1:]
    assert {peer.state.digest() for peer in run.peers} == {run.host.state.digest()}
    assert [peer.rounds for peer in run.peers] == [0, 1, 1, 1]
    assert run.host.refused == 1
    run.make_rounds(SOME - 1)
    assert run.left_out(identities[0]) >= 0.7 * SOME
    assert run.left_out(*identities[1:]) <= 0.03 * 3 * SOME
    assert run.loss(SOME) < 1.15 * honest.loss(SOME)


def test_an_update_that_helps_and_is_far_too_long_is_shortened(
    begin: Begin, identities: list[str], honest: Run
) -> None:
    """Ten times an honest one counts like four: it is in the way, and training goes on."""
    run = begin(ATTACKS["times 10"])
    run.make_rounds(SOME)
    assert run.left_out(*identities[1:]) <= 0.03 * 3 * SOME
    assert run.loss(SOME) < 1.6 * honest.loss(SOME)


@pytest.mark.parametrize("attack", ABSURD)
def test_what_is_absurdly_long_is_refused_by_its_norm_or_left_out(
    begin: Begin, identities: list[str], honest: Run, attack: str
) -> None:
    run = begin(ABSURD[attack])
    run.make_rounds(FEW)
    assert run.refused > 0
    assert run.refused + run.left_out(identities[0]) == FEW
    assert run.left_out(*identities[1:]) <= 1
    assert run.loss(FEW) < 1.15 * honest.loss(FEW)


def test_a_round_of_bad_updates_alone_changes_nothing(begin: Begin) -> None:
    run = begin(ATTACKS["times -10"], count=1)
    before = run.host.state.weights.clone()
    run.make_round()
    assert run.closed[0].taken == ()
    assert run.host.state.round == 1
    assert torch.equal(run.host.state.weights, before)
    assert run.peers[0].state.digest() == run.host.state.digest()


def test_a_round_does_not_close_before_its_updates_are_judged(begin: Begin) -> None:
    run = begin(count=2)
    for peer in run.peers:
        peer.learn(STEPS, clock=itertools.count().__next__)
        run.host.take_payload(peer._content, b"")
    assert run.host.close_if_due(run.key) is None
    run.host.judge_updates()
    assert run.host.close_if_due(run.key) is not None


def test_an_effect_is_the_mean_change_and_the_variance_of_that_mean() -> None:
    effect = Effect.of([1.0, 2.0, 3.0], [1.5, 2.0, 4.0], NO_SKETCH)  # changes of 0.5, 0 and 1
    assert effect == Effect(0.5, pytest.approx(0.25 / 3))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_makes_the_loss_not_finite_is_left_out_and_forgotten(judge: Judge, bad: float) -> None:
    effect = Effect.of([1.0, 1.0], [1.0, bad], NO_SKETCH)
    assert judge.weigh({"a": (effect, 1)}) == {"a": "the loss with it is not finite"}
    assert judge.weigh({"a": (Effect(-1.0, 0.01), 1)}) == {}


def test_small_harm_adds_up_over_rounds(judge: Judge) -> None:
    """2 standard deviations a round: of the fifth record Z = 2 (1 - 0.9^5) / (1 - 0.9) / 1.9."""
    found = [judge.weigh({"a": (Effect(2e-3, 1e-6), 10)}) for _ in range(10)]
    assert found[0] == {}
    assert found[-1] == {"a": "its updates raise the loss"}


def test_credit_of_the_past_does_not_cover_a_blow(judge: Judge) -> None:
    for _ in range(50):
        judge.weigh({"a": (Effect(-1.0, 1e-6), 10)})
    assert judge.weigh({"a": (Effect(0.5, (0.5 / HARMFUL_NOW) ** 2 * 0.9), 10)}) != {}


def test_gain_is_compared_for_the_samples_that_are_claimed(judge: Judge) -> None:
    """The slow one gains a tenth with a tenth of the samples; the idle one claims as many."""

    def weigh() -> dict[str, str]:
        usual = (Effect(-1e-2, 1e-6), 100)
        slow, idle = (Effect(-1e-3, 1e-6), 10), (Effect(-1e-5, 1e-6), 100)
        return judge.weigh({"a": usual, "b": usual, "slow": slow, "idle": idle})

    found = [weigh() for _ in range(FIRST_ROUNDS + 1)]
    assert found[: FIRST_ROUNDS - 1] == [{}] * (FIRST_ROUNDS - 1)
    assert found[FIRST_ROUNDS] == {"idle": "its updates have hardly any effect on the loss"}


def test_nobody_is_idle_where_nobody_gains(judge: Judge) -> None:
    for _ in range(20):
        flat = {name: (Effect(gain, 1e-6), 10) for name, gain in [("a", -1e-5), ("b", 0.0)]}
        assert judge.weigh(flat) == {}


def test_the_base_is_measured_once_a_round() -> None:
    measure = Mock(side_effect=lambda _number, weights: [float(weights.sum())] * 2)
    judge = Judge(measure)
    weights = torch.ones(3)
    update = Update(torch.tensor([1]), torch.tensor([0.5]), 0.5)
    assert judge.measure(0, weights, update).mean == pytest.approx(-0.5)
    assert judge.measure(0, weights, NOTHING).mean == 0.0
    assert judge.measure(1, weights, NOTHING).mean == 0.0
    assert [call.args[0] for call in measure.call_args_list] == [0, 0, 0, 1, 1]
    assert torch.equal(weights, torch.ones(3))


def test_the_oldest_sketches_are_forgotten() -> None:
    sketches = Sketches(2)
    first, second, third = torch.eye(3, BUCKETS)
    sketches.add("alice", first)
    sketches.add("bob", second)
    assert sketches.alike(first) == {"alice"}
    sketches.add("carol", third)
    assert [sketches.alike(one) for one in (first, second, third)] == [set(), {"bob"}, {"carol"}]
    sketches.add("dave", third)
    assert sketches.alike(third) == {"carol", "dave"}


def test_cosines_of_sketches_are_nearly_those_of_updates() -> None:
    generator = torch.Generator().manual_seed(3)
    first, other = (torch.randn(200_000, generator=generator) for _ in range(2))
    sketcher = Sketcher()

    def draw_sketch(vector: torch.Tensor) -> torch.Tensor:
        everything = Update(torch.arange(len(vector)), vector, float(vector.norm()))
        return sketcher.draw(everything, len(vector))

    for mixed in (first, other, first + other, -first, 0.5 * first + other):
        cosine = float(functional.cosine_similarity(first, mixed, dim=0))
        assert float(draw_sketch(first) @ draw_sketch(mixed)) == pytest.approx(cosine, abs=0.1)
    assert float(draw_sketch(torch.zeros(200_000)).norm()) == 0


SKETCH = functional.one_hot(torch.tensor(3), BUCKETS).float()


def test_of_copies_in_one_round_the_first_counts_and_no_peer_copies_itself(judge: Judge) -> None:
    effect = Effect(-1e-2, 1e-6, SKETCH)
    both = {"a": (effect, 10), "b": (effect, 10)}
    assert judge.weigh(both) == {"b": "it is a copy of another peer's update"}
    (why,) = judge.weigh({"a": (effect, 10)}).values()
    assert "same peer" in why


def test_a_judge_started_again_knows_the_records(tmp_path: Path) -> None:
    before, after = Judge(losses), Judge(losses)
    for _ in range(4):
        before.weigh({"a": (Effect(2e-3, 1e-6), 10)})
    after.restore(json.loads(json.dumps(before.state())))
    assert after.weigh({"a": (Effect(2e-3, 1e-6), 10)}) == {"a": "its updates raise the loss"}


def test_what_is_foreseen_is_what_is_weighed_and_nothing_is_noted(judge: Judge) -> None:
    effects = {"a": (Effect(2e-3, 1e-6), 10), "b": (Effect(1.0, 1e-6), 10)}
    for _ in range(20):
        foreseen = judge.foresee(effects)
        assert foreseen.keys() == {"b"}
    assert judge.weigh(effects) == foreseen


def test_newcomers_and_whoever_was_left_out_are_always_measured() -> None:
    judge = Judge(losses, random.Random(0))
    for _ in range(FIRST_ROUNDS - 1):
        judge.weigh({"a": (Effect(-1.0, 1e-6), 10)})
        assert all(judge.must_measure("a") for _ in range(100))
    judge.weigh({"a": (Effect(-1.0, 1e-6), 10)})
    drawn = sum(judge.must_measure("a") for _ in range(1000))
    assert drawn == pytest.approx(1000 * SAMPLE, abs=4 * math.sqrt(1000 * SAMPLE * (1 - SAMPLE)))
    judge.weigh({"a": (Effect(1.0, 1e-6), 10)})
    assert all(judge.must_measure("a") for _ in range(100))


def test_an_update_that_is_not_measured_counts_as_its_peers_record_says(judge: Judge) -> None:
    for _ in range(10):
        judge.weigh({"good": (Effect(-1.0, 1e-6), 10), "bad": (Effect(2e-3, 1e-6), 10)})
    trusted = judge.trust(NOTHING, 3)
    found = judge.weigh({"good": (trusted, 10), "bad": (trusted, 10)})
    assert found == {"bad": "its updates raise the loss"}


def test_what_was_left_out_can_be_sent_again(judge: Judge) -> None:
    """An honest peer keeps what the round did not take, and sends it in the next one."""
    assert judge.weigh({"a": (Effect(1.0, 1e-6, SKETCH), 10)}) != {}
    assert judge.weigh({"a": (Effect(-9.0, 1e-6, SKETCH), 10)}) == {}
