"""training/volunteer/rounds: a volunteer with local steps and its host, in one process."""

import io
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey

from calculator.errors import InputError
from tests.training.sparse.rounds import SETTINGS as SLOW
from training.access.grants import peer_id_of
from training.model.build import build_model
from training.monitor.web_host import WebHost
from training.run.live import PeerState
from training.run.recipes import RECIPES, TINY
from training.run.runfile import RunFile
from training.run.status import StatusBoard
from training.sparse import catching_up, web
from training.sparse.closing import Swarm
from training.sparse.host import Host
from training.sparse.layout import Layout
from training.sparse.peer import Peer
from training.sparse.shared import SharedState
from training.sparse.store import FolderStore, RefusedError, UnreachableError
from training.volunteer import backup, rounds, rounds_reporter
from training.volunteer.peer import PeerOptions
from training.volunteer.rounds import RoundsVolunteer

SETTINGS = replace(SLOW, seconds=0.05, quorum=1, grace=0.1, longest=1.0, poll_seconds=0.02)


@dataclass
class Run:
    """A host, its key and address, and a volunteer that has not begun."""

    host: Host
    key: RSAPrivateKey
    volunteer: RoundsVolunteer
    terminal: io.StringIO

    def make_peer(self, stop: threading.Event) -> Peer:
        """The volunteer's part in the rounds, with the host's newest state."""
        self.volunteer._batches = self.volunteer.stream.until(stop)
        return self.volunteer._make_peer(catching_up.join(self.volunteer.swarm))

    def make_rounds(self, until: int, stop: threading.Event) -> None:
        while self.host.state.round < until and not stop.wait(0.01):
            self.host.close_if_due(self.key)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setitem(RECIPES, "quick", replace(TINY, name="quick", sparse=SETTINGS))
    monkeypatch.setattr(rounds, "FIRST_PAUSE", 0.01)
    key = RSAPrivateKey()
    closer = peer_id_of(key.get_public_key().to_bytes().decode())
    parameters = [p for p in build_model(TINY).parameters() if p.requires_grad]
    store = FolderStore(tmp_path / "exchange")
    layout = Layout.of(parameters)
    swarm = Swarm("our-run", layout, store, {closer}, SETTINGS.outer_learning_rate)
    first = SharedState.of(parameters)
    catching_up.publish(store, first)
    host = Host(swarm, store, first, SETTINGS)
    served = WebHost(web.make_service(host), "127.0.0.1", 0)
    terminal = io.StringIO()
    file = RunFile(
        name="our-run", recipe="quick", initial_peers=(f"/p2p/{closer}",), exchange=served.address
    )
    folder = tmp_path / "volunteer"
    options = PeerOptions(name="ada", folder=folder, micro_batch_size=4)
    volunteer = RoundsVolunteer(file, options, StatusBoard(folder, terminal))
    yield Run(host, key, volunteer, terminal)
    volunteer.leave()
    served.close()


def test_a_volunteer_makes_rounds_until_the_run_is_over_and_goes_on_where_it_was(run: Run) -> None:
    """With its place in the data, its moments, what it has not sent yet, and its credit."""
    volunteer, stop = run.volunteer, threading.Event()
    thread = threading.Thread(target=volunteer.train, args=(stop,))
    thread.start()
    deadline = threading.Timer(120, stop.set)
    deadline.start()
    run.make_rounds(3, stop)
    run.host.finish()
    thread.join()
    deadline.cancel()
    assert not stop.is_set(), run.terminal.getvalue()
    assert run.host.state.round == 3
    assert volunteer.board.status.samples == run.host.state.samples
    (report,) = run.host.reports().values()
    assert report.name == "ada"
    assert report.bytes_sent > 3 * run.host.swarm.layout.update_bytes
    assert "the run is over" in run.terminal.getvalue()

    options = PeerOptions(name="ada", folder=volunteer.board.folder, micro_batch_size=4)
    again = RoundsVolunteer(volunteer.run, options, volunteer.board)
    peer = again._make_peer(catching_up.join(again.swarm))
    again._remember(peer)
    saved = backup.load_memory(again._memory)
    assert peer.rounds == 3
    assert peer.samples == run.host.state.samples
    assert torch.equal(peer._feedback.residual, saved["peer"]["residual"])
    assert peer._feedback.residual.norm() > 0
    steps = {int(one["step"]) for one in again._optimizer.state_dict()["state"].values()}
    assert steps
    assert min(steps) >= 3
    assert again.stream.state_dict()["drawn_in_epoch"] >= peer.samples
    assert "going on after 3 rounds" in run.terminal.getvalue()


def test_a_clock_that_jumped_makes_nobody_silent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every report after the jump was refused, until the true time had caught up."""
    ahead = [0.0]
    clock = SimpleNamespace(time=lambda: time.time() + ahead[0])
    monkeypatch.setattr(rounds_reporter, "time", clock)
    reporter = run.volunteer.reporter
    for ahead[0], is_taken in ((0.0, True), (3600.0, False), (0.0, True), (-3600.0, True)):
        with nullcontext() if is_taken else pytest.raises(RefusedError, match="another time"):
            reporter.send(PeerState.TRAINING)
        assert reporter._sent <= time.time() + 1


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("over", "the last round closed without this update"),
        ("late", "the round closed without this update; the next one carries it"),
        ("refused", "the round did not take this update: signed by another"),
    ],
)
def test_an_update_that_comes_too_late_is_no_fault(
    run: Run, monkeypatch: pytest.MonkeyPatch, what: str, words: str
) -> None:
    volunteer, stop = run.volunteer, threading.Event()
    late = run.make_peer(stop)
    other = volunteer._make_peer(late.state)
    for peer in (other, late):
        assert peer.learn(0.0) is not None
    if what == "refused":
        refusal = RefusedError("signed by another")
        monkeypatch.setattr(volunteer.store, "put", Mock(side_effect=refusal))
    else:
        other.publish()
        run.make_rounds(1, stop)
    if what == "over":
        run.host.finish()
    volunteer._hand_in(late, stop)
    said = run.terminal.getvalue()
    assert words in said
    assert said.count("this update") == 1


def test_whoever_is_left_out_begins_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    volunteer, stop = run.volunteer, threading.Event()
    peer = run.make_peer(stop)
    assert peer.learn(0.0) is not None
    volunteer._hand_in(peer, stop)
    (handed_in,) = run.host.taken()
    monkeypatch.setattr(run.host, "_leave_out", lambda: leave_out(run.host, handed_in.peer))
    run.make_rounds(1, stop)
    volunteer._catch_up(peer, stop)
    assert (peer.state.round, peer.rounds, peer.left_out) == (1, 0, 1)
    assert not peer._feedback.residual.any()
    assert "left it out, as it does not help" in run.terminal.getvalue()


def leave_out(host: Host, peer: str) -> dict[str, str]:
    """Do as a judge does that finds a peer's update bad."""
    found = {peer: "it raises the loss"}
    host._round.leave_out(found)
    return found


def test_whoever_missed_rounds_that_are_gone_takes_the_newest_checkpoint(run: Run) -> None:
    volunteer, stop = run.volunteer, threading.Event()
    behind = run.make_peer(stop)
    other = volunteer._make_peer(behind.state)
    for _ in range(4):
        assert other.learn(0.0) is not None
        other.publish()
        run.make_rounds(run.host.state.round + 1, stop)
        other.follow()
    catching_up.publish(run.host.store, run.host.state)
    catching_up.forget_before(run.host.store, kept=1)
    volunteer._catch_up(behind, stop)
    assert behind.state.digest() == run.host.state.digest()
    assert "no longer has the rounds that were missed" in run.terminal.getvalue()


def test_whoever_is_ahead_of_a_host_that_lost_its_files_takes_its_state(run: Run) -> None:
    volunteer, stop = run.volunteer, threading.Event()
    ahead = run.make_peer(stop)
    state = ahead.state.copy()
    state.round, state.weights = 7, state.weights + 1
    ahead.adopt(state)
    threading.Timer(60, stop.set).start()
    volunteer._follow(ahead, stop)
    assert ahead.state.digest() == run.host.state.digest()


@pytest.mark.parametrize("last", ["here", RefusedError("of another round")])
def test_a_host_that_is_back_is_mentioned_once(run: Run, last: str | RefusedError) -> None:
    ask = Mock(side_effect=[*2 * [UnreachableError("no connection")], last])
    with suppress(RefusedError):
        assert run.volunteer._ask(threading.Event(), ask) == "here"
    said = run.terminal.getvalue()
    assert said.count("does not answer (no connection): trying again") == 1
    assert said.count("the run's host answers again") == 1


def test_whoever_is_told_to_stop_does_not_wait_for_the_host(run: Run) -> None:
    stop = threading.Event()

    def ask() -> None:
        stop.set()
        raise UnreachableError("no connection")

    assert run.volunteer._ask(stop, ask) is None


def test_the_host_of_another_run_and_a_name_that_none_may_have_are_refused(
    run: Run, tmp_path: Path
) -> None:
    board = StatusBoard(tmp_path / "other", io.StringIO())
    options = PeerOptions(name="a\nb", folder=board.folder, micro_batch_size=4)
    with pytest.raises(InputError, match="name"):
        RoundsVolunteer(run.volunteer.run, options, board)
    run.volunteer.run = replace(run.volunteer.run, name="their-run")
    with pytest.raises(InputError, match="must be the host of their-run, but serves 'our-run'"):
        run.volunteer._look()
