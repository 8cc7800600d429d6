"""A volunteer of a run with local steps: trains for a while, hands in what it learned, goes on.

It talks to the run's web host, so it needs no open port and meets no other volunteer.
"""

import logging
import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import torch

from calculator.errors import InputError
from training.access.membership import Membership
from training.access.signatures import PeerKey
from training.data import streaming
from training.network.connection import CannotConnectError
from training.optimizer import lamb
from training.records.orders import moderators_of
from training.run import milestones
from training.run.live import PeerState
from training.run.milestones import Milestone
from training.run.recipes import Recipe, SparseSettings, learning_rate_factor
from training.run.runfile import RunFile
from training.run.status import Stage
from training.sparse import catching_up
from training.sparse.closing import ClosingError, Swarm
from training.sparse.layout import Layout
from training.sparse.peer import Peer
from training.sparse.shared import SharedState
from training.sparse.store import RefusedError, StoreError, is_outage
from training.sparse.web_store import HostStatus, WebStore
from training.volunteer import backup
from training.volunteer.computing import Outcome
from training.volunteer.peer import Device, PeerOptions
from training.volunteer.rounds_reporter import RoundsReporter

logger = logging.getLogger(__name__)
T = TypeVar("T")

LEFT_OUT = (
    "the run measured this update and left it out, as it does not help: the next one is learned "
    "from the shared weights alone"
)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds before a host that is down is asked again


class RoundsVolunteer(Device):
    """Trains in rounds, and hands in what it learned in each."""

    def _check(self, run: RunFile) -> Recipe:
        self.settings = settings_of(run)
        return super()._check(run)

    def _open(self, options: PeerOptions, membership: Membership | None) -> None:
        run, board = self.run, self.board
        self._memory = options.folder / "memory.pt"
        self._batches: Iterator[streaming.Batch] = iter(())
        self._parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.store = WebStore(run.exchange, membership, run.store, board.say)
        self.swarm = Swarm(
            run.name,
            Layout.of(self._parameters),
            self.store,
            moderators_of(run),
            self.settings.outer_learning_rate,
        )
        self._key: PeerKey = self.identity.key
        self._losses: list[float] = []
        self.reporter = RoundsReporter(board, self.store, run.name, self._key, self.name)
        board.status.total_steps = self.recipe.schedule.total_steps

    def train(self, stop: threading.Event) -> None:
        """Make round after round until the run is over or `stop` is set.

        Raises:
            CannotConnectError: when what the host has does not hold.
        """
        try:
            self._train(stop)
        except (ClosingError, StoreError) as error:
            raise CannotConnectError(str(error)) from error

    def _train(self, stop: threading.Event) -> None:
        self.reporter.start()
        self.reporter.stage = Stage.CONNECTING
        if self._ask(stop, self._look) is None:
            return
        milestones.mark(Milestone.CONNECT)
        self.reporter.stage = Stage.DOWNLOADING
        state = self._ask(stop, lambda: catching_up.join(self.swarm))
        if state is None:
            return
        milestones.mark(Milestone.STATE)
        peer = self._make_peer(state)
        self._remember(peer)
        self._batches = self.stream.until(stop)
        self._note(peer)
        is_over = False
        while not (is_over or stop.is_set()):
            is_over = peer.state.round >= self.recipe.schedule.total_steps
            is_over = is_over or self._make_round(peer, stop)
        if not stop.is_set():
            self.board.say("the run is over")

    def leave(self) -> None:
        """Tell the host and close everything, within bounded time."""
        self.reporter.stage = Stage.LEAVING
        self.reporter.close()
        self.stream.close()
        self.store.close()
        self._show(Stage.DONE)

    def _make_peer(self, state: SharedState) -> Peer:
        groups = lamb.parameter_groups(self.model, self.recipe)
        settings = self.settings
        optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, betas=settings.betas)
        self._optimizer = optimizer
        return Peer(
            self.swarm,
            state,
            self._parameters,
            optimizer,
            self._compute,
            self._key,
            max_gradient_norm=self.recipe.optimizer.max_gradient_norm,
        )

    def _remember(self, peer: Peer) -> None:
        """Go on where this volunteer was when it ended, if its memory is of this model."""
        memory = backup.load_memory(self._memory)
        with suppress(KeyError, ValueError, TypeError):
            peer.restore(memory["peer"])
            self.stream.load_state_dict(memory["stream"])
            self.board.say(f"going on after {peer.rounds:,} rounds of this volunteer")

    def _make_round(self, peer: Peer, stop: threading.Event) -> bool:
        """Learn, hand in, follow the round's list; True when the run is over."""
        factor = learning_rate_factor(self.recipe.schedule, peer.state.round)
        for group in self._optimizer.param_groups:
            group["lr"] = factor * self.settings.learning_rate
        self._losses.clear()
        self.reporter.begin_round(peer.state.round)

        def clock() -> float:
            return math.inf if stop.is_set() else time.monotonic()

        try:
            sha256 = peer.learn(self.settings.seconds, clock)
        except InputError as error:  # weights that are not finite: the next round has others
            self.board.say(f"what was learned in this round is of no use: {error}")
            sha256 = None
        if sha256 is not None and not stop.is_set():
            self._hand_in(peer, stop)
        self.reporter.stage = Stage.WAITING
        return self._follow(peer, stop)

    def _compute(self) -> int:
        """Add the gradients of a micro-batch, if they are sound; gives its samples."""
        batch = next(self._batches, None)
        if batch is None:  # asked to stop
            return 0
        computed = self.computing.add(batch)
        if computed.outcome is not Outcome.ADDED:
            logger.info("a micro-batch is left out: %s", computed.outcome.name)
            return 0
        milestones.mark(Milestone.FIRST_BATCH)
        samples = streaming.count(batch)
        self._losses.append(computed.loss)
        self.board.status.pending += samples
        return samples

    def _hand_in(self, peer: Peer, stop: threading.Event) -> None:
        self.reporter.loss = statistics.fmean(self._losses) if self._losses else None
        self.reporter.stage = Stage.HANDING_IN

        def send() -> bool:
            with suppress(RefusedError):  # the loss is for the page alone
                self.reporter.send(PeerState.TRAINING)
            peer.publish()
            return True

        try:
            self._ask(stop, send)
        except RefusedError as error:
            status = self._ask(stop, self._look)
            if status is not None and status.finished:  # `_follow` says so
                self.board.say("the last round closed without this update; the earlier ones count")
            elif status is not None and status.round > peer.state.round:
                self.board.say("the round closed without this update; the next one carries it")
            else:
                self.board.say(f"the round did not take this update: {error}")

    def _follow(self, peer: Peer, stop: threading.Event) -> bool:
        """Wait until the round is closed and apply its list; True when the run is over."""
        while not stop.is_set():
            status = self._ask(stop, self._look)
            if status is None:
                break
            if status.round != peer.state.round:  # behind after the host lost its files
                self._catch_up(peer, stop)
                self._note(peer)
                memory = {"peer": peer.memory(), "stream": self.stream.state_dict()}
                backup.save_memory(self._memory, memory, self.board.say)
                return False
            if status.finished:
                return True
            stop.wait(self.settings.poll_seconds)
        return False

    def _catch_up(self, peer: Peer, stop: threading.Event) -> None:
        """Apply the lists since our round; where they are gone, take the newest checkpoint."""
        before, left_out = peer.state.round, peer.left_out
        try:
            self._ask(stop, peer.follow)
            why = "the host no longer has the rounds that were missed here"
        except (ClosingError, StoreError) as error:
            why = str(error)
        if peer.left_out > left_out:
            self.board.say(LEFT_OUT)
        if peer.state.round > before or stop.is_set():
            return
        self.board.say(f"{why}: taking the newest checkpoint")
        state = self._ask(stop, lambda: catching_up.join(self.swarm))
        if state is not None:
            peer.adopt(state)

    def _note(self, peer: Peer) -> None:
        """Show what this volunteer has reached."""
        if peer.rounds:
            milestones.mark(Milestone.FIRST_AVERAGE)
        status = self.board.status
        status.step, status.samples, status.pending = peer.state.round, peer.samples, 0
        status.loss = self.reporter.loss

    def _look(self) -> HostStatus:
        """Ask the host how far the run is."""
        found = self.store.describe()
        if found.run != self.run.name:
            rule = f"must be the host of {self.run.name}, but serves {found.run[:40]!r}"
            raise InputError("exchange", self.run.exchange, rule)
        self.board.status.peers = max(1, found.peers)
        return found

    def _ask(self, stop: threading.Event, ask: Callable[[], T]) -> T | None:
        """The host's answer; while there is none, ask again and again. None when stopped."""
        pause, told, stage = FIRST_PAUSE, False, self.reporter.stage
        while not stop.is_set():
            try:
                answer = ask()
            except (StoreError, ClosingError) as error:
                if not is_outage(error):  # a refusal is an answer too
                    self._report_return(told, stage)
                    raise
                if not told:
                    self.board.say(f"the run's host does not answer ({error}): trying again")
                told, self.reporter.stage = True, Stage.DISCONNECTED
                stop.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            self._report_return(told, stage)
            return answer
        return None

    def _report_return(self, told: bool, stage: Stage) -> None:
        """Report that the host is back, if its absence was reported; we are at `stage` again."""
        if told:
            self.board.say("the run's host answers again")
            self.reporter.stage = stage


def settings_of(run: RunFile) -> SparseSettings:
    """The settings of a run with local steps.

    Raises:
        InputError: its run file names no host.
    """
    settings = run.get_recipe().sparse
    assert settings is not None
    if not run.exchange:
        rule = "must be in the run file of a run with local steps: the address of its host"
        raise InputError("exchange", "", rule)
    return settings
