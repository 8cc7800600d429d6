"""Reports what a volunteer does, to its owner and to the run, while the main thread works."""

import abc
import contextlib
import logging
import math
import threading
import time
from typing import Any

from hivemind.averaging.control import AveragingStage
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError
from hivemind.utils import MPFuture, get_dht_time

from training.averaging.optimizer import SwarmOptimizer
from training.network import traffic, worker
from training.network.connection import Network
from training.records import orders, reports
from training.records.orders import BanOrder, EndOrder, Order, RollbackOrder
from training.records.reports import StepReport
from training.run import supervisor
from training.run.live import PeerState
from training.run.recipes import Recipe
from training.run.status import Stage, StatusBoard
from training.volunteer.contribution import Contribution

logger = logging.getLogger(__name__)

BOARD_SECONDS = 0.5
ANSWER_SECONDS = 10.0
HEARTBEAT_SECONDS = 10.0
SILENT_SECONDS = 120.0  # without any answer the network's processes are taken for dead
GOODBYES = 3  # attempts to hand in the last report
LEAVING_SECONDS = 60.0  # without a network daemon; calls that it had taken never return
_LONG_SECONDS = 86_400.0  # the tracker's guesses before it has seen a micro-batch are longer
_NOT_YET = (Stage.STARTING, Stage.CONNECTING, Stage.SEARCHING, Stage.DOWNLOADING)


class Heart(abc.ABC):
    """A thread that shows the status and publishes a report every few seconds.

    Attributes:
        stage: current activity, for the main thread to set.
    """

    def __init__(self, board: StatusBoard, stage: Stage) -> None:
        self.board, self.stage = board, stage
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @abc.abstractmethod
    def show(self) -> None:
        """Bring the board up to date."""

    @abc.abstractmethod
    def _beat(self, state: PeerState) -> None:
        """Report to the run."""

    @abc.abstractmethod
    def _say_goodbye(self) -> None:
        """Report a last time, as one who left."""

    def start(self) -> None:
        """Begin to report."""
        self._thread.start()

    def close(self) -> None:
        """Report a last time, as one who left."""
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join(2 * HEARTBEAT_SECONDS)
        self._say_goodbye()
        self.show()

    def _run(self) -> None:
        last_heartbeat = -math.inf
        while not self._closed.wait(BOARD_SECONDS):
            self.show()
            if time.monotonic() - last_heartbeat > HEARTBEAT_SECONDS:
                last_heartbeat = time.monotonic()
                is_early = self.stage in _NOT_YET
                self._beat(PeerState.SYNCING if is_early else PeerState.TRAINING)


class Reporter(Heart):
    """Hands reports to the monitor, keeps an entry point connected, and hears the moderators.

    `is_connected` says whether anybody is, `is_alive` whether our own network daemon answers.
    `order` is what the run's moderators ordered last, `is_over` whether they ended the run.

    Args:
        state_bytes: size of a whole state on the wire, to say how much of it has arrived.
        moderators: the identities that take reports and whose orders are followed.
    """

    def __init__(
        self,
        board: StatusBoard,
        network: Network,
        optimizer: SwarmOptimizer,
        contribution: Contribution,
        recipe: Recipe,
        state_bytes: int,
        moderators: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(board, Stage.CONNECTING)
        self.network, self.optimizer = network, optimizer
        self.contribution, self.recipe, self.state_bytes = contribution, recipe, state_bytes
        self.moderators = moderators
        self.order: RollbackOrder | None = None
        self.is_connected = True
        self.is_alive = True
        self.is_over = False
        self._received_before = 0
        self._checkpoint_percent: int | None = None
        self._answered = time.monotonic()
        self._sent: tuple[MPFuture[bool], list[StepReport], float] | None = None

    @property
    def stage(self) -> Stage:
        """Current activity of the main thread."""
        return self._stage

    @stage.setter
    def stage(self, stage: Stage) -> None:
        if stage is Stage.DOWNLOADING:
            self._received_before = traffic.read().received
        self._checkpoint_percent = None
        self._stage = stage

    def note_checkpoint(self, percent: int) -> None:
        """Tell how much of a published checkpoint has been downloaded."""
        self._checkpoint_percent = percent

    def _say_goodbye(self) -> None:
        """Hand in a last report, and see that it arrives: the last step is in it."""
        if not self.is_alive:
            return
        for _ in range(GOODBYES):
            with contextlib.suppress(TimeoutError, OSError, P2PDaemonError):
                if self.publish(PeerState.LEFT).result(reports.CALL_SECONDS):
                    return
            time.sleep(BOARD_SECONDS)
        logger.warning("the monitor did not take our last report")

    def publish(self, state: PeerState) -> "MPFuture[bool]":
        """Send the figures so far to the monitor."""
        self._note_taken()
        rate = float(self.optimizer.tracker.performance_ema.samples_per_second)
        step = self.optimizer.local_epoch
        report = self.contribution.report(state, step, rate)
        network = self.network
        sent = reports.hand_in(network.dht, self.moderators, report, network.membership)
        self._sent = sent, report.recent, time.monotonic()
        return sent

    def _note_taken(self) -> None:
        """Look whether the monitor took the last report; if not, the next tells its steps again."""
        if self._sent is None:
            return
        answer, steps, sent = self._sent
        is_taken = False
        with contextlib.suppress(TimeoutError, OSError, P2PDaemonError):
            is_taken = answer.done() and answer.result()
        if is_taken:
            self.contribution.note_taken(steps, sent)
        else:
            self.contribution.note_not_taken()

    def show(self) -> None:
        """Bring the board up to date."""
        status, progress = self.board.status, self.optimizer.tracker.global_progress
        status.started = True
        status.stage, status.percent = self._describe_stage()
        status.step = self.optimizer.local_epoch
        status.total_steps = self.recipe.schedule.total_steps
        status.loss = self.contribution.loss
        status.samples = self.contribution.samples
        status.pending = self.contribution.pending
        status.target = self.recipe.swarm.target_batch_size
        status.peers = max(1, progress.num_peers)
        seconds = progress.eta_next_epoch - get_dht_time()
        status.seconds_to_update = max(0.0, seconds) if seconds < _LONG_SECONDS else None
        self.board.show()

    def _beat(self, state: PeerState) -> None:
        """Keep the connection, report to the run and hear what its moderators say."""
        try:
            self.is_connected = self.network.keep_entry_points()
            self.publish(state)
            network = self.network
            self.order = self._find(RollbackOrder) or self.order
            if (banned := self._find(BanOrder)) is not None:
                network.bans.write(banned.contributors)
            self.is_over = self.is_over or self._find(EndOrder) is not None
            self._answered = time.monotonic()
        except TimeoutError as error:
            logger.warning("the network daemon responds slowly")
            if time.monotonic() - self._answered > SILENT_SECONDS:
                self._note_lost(error)
        except (OSError, P2PDaemonError) as error:
            self._note_lost(error)
        except Exception:  # the next attempt may succeed; without this thread nobody would try
            logger.exception("a heartbeat failed")

    def _find(self, kind: type[Order]) -> Order | None:
        network = self.network
        return orders.find(network.dht, network.run, kind, self.moderators, ANSWER_SECONDS)

    def _note_lost(self, error: Exception) -> None:
        """The main thread has to start again; calls that it waits for may never return."""
        logger.warning("the network daemon is gone: %r", error)
        if self.is_alive:
            why = "cannot join the run: the network daemon of this machine ended unexpectedly"
            worker.end_within(LEAVING_SECONDS, why, supervisor.CANNOT_CONNECT)
        self.is_alive = self.is_connected = False

    def _describe_stage(self) -> tuple[Stage, int | None]:
        checkpoint = self._checkpoint_percent
        if self.stage in (Stage.DOWNLOADING, Stage.SEARCHING) and checkpoint is not None:
            return Stage.DOWNLOADING, checkpoint
        if self.stage is Stage.DOWNLOADING:
            received = traffic.read().received - self._received_before
            return self.stage, min(100, 100 * received // max(1, self.state_bytes))
        control: Any = self.optimizer.scheduled_grads
        if self.stage is Stage.WAITING and control is not None:
            exchanging = control.stage is AveragingStage.RUNNING_ALLREDUCE
            return (Stage.AVERAGING if exchanging else Stage.WAITING), None
        return self.stage, None
