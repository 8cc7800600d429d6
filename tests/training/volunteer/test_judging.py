"""training/volunteer/judging: volunteers measure updates within their share of time."""

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.sparse.clocks import Clock
from tests.training.sparse.conftest import identity
from training.data import streaming
from training.model.transformer import build_model
from training.monitor.judging import HeldBatches
from training.monitor.web_host import WebHost
from training.run.recipes import TINY
from training.sparse import catching_up, closing, payload, web
from training.sparse.codec import encode
from training.sparse.host import Host
from training.sparse.judging import Judge
from training.sparse.layout import Layout
from training.sparse.open_round import ClosingPolicy
from training.sparse.panel import Panel, agree
from training.sparse.shared import OuterSettings, SharedState
from training.sparse.store import FolderStore
from training.sparse.swarm import Swarm
from training.sparse.web_store import WebStore
from training.volunteer.judging import Allowance, UpdateJudge

JUDGED = 8
NEVER = threading.Event()


class Unspotted(random.Random):
    """Chance by which the host measures nothing itself."""

    def random(self) -> float:
        return 0.99


@dataclass
class Scene:
    """A host, its key, volunteers' keys and their stores."""

    host: Host
    held: HeldBatches
    keys: list[RSAPrivateKey]
    stores: list[WebStore]

    @property
    def state(self) -> SharedState:
        return self.host.state

    def swarm_of(self, store: WebStore) -> Swarm:
        ours = self.host.swarm
        return Swarm(ours.run, ours.layout, store, ours.closers, ours.settings)

    def make_judge(self, place: int, share: float = 1000.0) -> UpdateJudge:
        store = self.stores[place]
        model = build_model(TINY).train()
        model.attend_in_lines()
        layout = model.config.layout
        return UpdateJudge(self.swarm_of(store), store, model, layout, self.keys[place], share)

    def upload(self) -> None:
        """Random updates, each in the direction of another one."""
        for place, (key, store) in enumerate(zip(self.keys, self.stores, strict=True)):
            generator = torch.Generator().manual_seed(place)
            layout = self.host.swarm.layout
            vector = 1e-3 * torch.randn(layout.elements, generator=generator)
            of = self.host.swarm.round_of(self.state)
            store.put(payload.write(of, 16, encode(vector, layout), key))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    data = str(streaming.prepare_shapes(TINY))
    keys = [RSAPrivateKey() for _ in range(3)]
    closer = identity(keys[0])
    parameters = [p for p in build_model(TINY).parameters() if p.requires_grad]
    store = FolderStore(tmp_path)
    swarm = Swarm("our-run", Layout.of(parameters), store, {closer}, OuterSettings(1.0, 0.0))
    first = SharedState.of(parameters)
    catching_up.publish(store, first)
    held = HeldBatches(TINY, data, JUDGED, secret=b"test")
    panel = Panel(held.disclose, 3, 60.0, Unspotted(1))
    policy = ClosingPolicy(quorum=3, grace=0.0, largest_norm=50.0)
    host = Host(swarm, store, first, policy, judge=Judge(held), panel=panel)
    served = WebHost(web.make_service(host), "127.0.0.1", 0)
    scene = Scene(host, held, keys, [WebStore(served.address) for _ in keys])
    yield scene
    for one in scene.stores:
        one.close()
    served.close()
    held.close()


def test_volunteers_measure_what_the_host_would_measure(scene: Scene) -> None:
    scene.upload()
    state = scene.state
    scene.host.judge_updates()
    assert scene.host.close_if_due(scene.keys[0]) is None
    judges = [scene.make_judge(place) for place in range(3)]
    for judge, store in zip(judges, scene.stores, strict=True):
        assert store.describe().judging
        judge.judge(state, NEVER)
        judge.judge(state, NEVER)  # it has answered already
        assert judge.judged == 2
        assert judge._model.training
    assert not scene.stores[0].describe().judging
    hearing = scene.host._hearing
    assert hearing is not None
    own = Judge(scene.held)
    for one in scene.host.taken():
        found = hearing.finding(one.sha256)
        assert found is not None
        update = closing.read_update(scene.host.swarm, hearing.of, one.sha256)
        assert agree(found, own.measure(state.round, state.weights, update).finding)
    scene.host.judge_updates()
    closed = scene.host.close_if_due(scene.keys[0])
    assert closed is not None
    assert (closed.believed, closed.liars) == (3, frozenset())


def test_judging_costs_the_sequences_and_no_update_is_downloaded_twice(scene: Scene) -> None:
    scene.upload()
    state, store = scene.state, scene.stores[0]
    scene.host.close_if_due(scene.keys[0])
    scene.make_judge(0).judge(state, NEVER)
    layout = scene.host.swarm.layout
    lengths = TINY.model.text_length + TINY.model.image_side**2
    sequences = 2 * JUDGED * lengths
    overhead = 2**11  # signatures, an announcement of three judges
    assert store.bytes_received < sequences + 2 * layout.update_bytes + 3 * overhead
    assert store.bytes_sent < layout.update_bytes + 2 * overhead
    for place in (1, 2):
        scene.make_judge(place).judge(state, NEVER)
    scene.host.judge_updates()
    assert scene.host.close_if_due(scene.keys[0]) is not None
    before = store.bytes_received
    assert catching_up.follow(scene.swarm_of(store), state).round == 1
    assert store.bytes_received - before < 2 * overhead, "the list alone"


def test_whoever_has_no_time_left_abstains_and_holds_nobody_up(scene: Scene) -> None:
    scene.upload()
    state = scene.state
    scene.host.close_if_due(scene.keys[0])
    for place in range(3):
        judge = scene.make_judge(place, share=0.0)
        judge.judge(state, NEVER)
        assert judge.judged == 0
        assert judge.allowance.spent == 0
    assert not scene.stores[0].describe().judging
    scene.host.judge_updates()
    closed = scene.host.close_if_due(scene.keys[0])
    assert closed is not None
    assert closed.believed == 0
    assert len(closed.taken) + len(closed.left_out) == 3


def test_whoever_is_told_to_stop_measures_no_more(scene: Scene) -> None:
    scene.upload()
    state, stop = scene.state, threading.Event()
    scene.host.close_if_due(scene.keys[0])
    stop.set()
    judge = scene.make_judge(0)
    judge.judge(state, stop)
    assert judge.judged == 0
    assert judge.allowance.spent > 0, "the losses without an update"


def test_an_update_that_is_gone_is_not_judged_and_the_others_are(scene: Scene) -> None:
    scene.upload()
    state = scene.state
    scene.host.close_if_due(scene.keys[0])
    own = identity(scene.keys[1])
    gone = next(one for one in scene.host.taken() if one.peer != own)
    path = scene.host.store.path_of(gone.sha256)
    assert path is not None
    content = path.read_bytes()
    path.unlink()
    judge = scene.make_judge(1)
    judge.judge(state, NEVER)
    path.write_bytes(content)
    assert judge.judged == 1
    hearing = scene.host._hearing
    assert hearing is not None
    assert own not in hearing.absent()


def test_a_failure_of_judging_is_no_failure_of_the_volunteer(scene: Scene) -> None:
    scene.upload()
    scene.host.close_if_due(scene.keys[0])
    judge = scene.make_judge(1)
    judge._layout = build_model(TINY).config.layout.__class__(TINY.model.text_length, 5)
    judge.judge(scene.state, NEVER)
    assert judge.judged == 0
    assert judge._model.training


def test_the_share_of_time_is_kept() -> None:
    """A part is begun only when one as long as the longest so far is within the share."""
    clock = Clock()
    allowance = Allowance(0.05, clock)
    assert not allowance.covers(1)
    spent = 0.0
    for second in range(1, 10_001):
        clock.now = max(clock.now, float(second))
        while allowance.covers(1):
            with allowance.part():
                clock.now += 0.4
            spent += 0.4
    assert allowance.spent == pytest.approx(spent)
    assert 0.045 < allowance.fraction <= 0.05


def test_the_first_part_may_be_longer_than_the_share_and_is_made_up_for() -> None:
    clock = Clock()
    allowance = Allowance(0.05, clock)
    clock.now = 1.0
    assert allowance.covers(1)
    with allowance.part():
        clock.now += 10.0
    for now in (100.0, 300.0, 399.0):
        clock.now = now
        assert not allowance.covers(1)
    clock.now = 401.0
    assert allowance.covers(1)
