"""Volunteers: what all of them have, and those that make every global step together."""

import abc
import getpass
import logging
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from training.access.membership import Membership, admitted
from training.averaging.optimizer import (
    StateUnavailableError,
    SwarmOptimizer,
    open_optimizer,
    state_bytes,
)
from training.averaging.state import are_sound
from training.data import streaming
from training.data.ahead import BatchesAhead
from training.model import build
from training.network import traffic
from training.network.connection import CannotConnectError, Endpoint, Identity, Network, alone_in
from training.records import reports
from training.records.orders import RollbackOrder, moderators_of
from training.run import milestones
from training.run.live import PeerState
from training.run.milestones import Milestone
from training.run.recipes import Recipe
from training.run.runfile import RunFile
from training.run.status import Stage, StatusBoard
from training.volunteer import fitting
from training.volunteer.computing import Computed, Computing, Outcome
from training.volunteer.contribution import Contribution
from training.volunteer.precision import choose_precision
from training.volunteer.recovery import Recovery
from training.volunteer.reporter import Reporter

logger = logging.getLogger(__name__)

SHARING_SECONDS = 120.0  # after the last step, so that the result is not lost
NICENESS = 10  # of the thread that computes, see nice(2)
BUSY = 3.0  # tasks for each core
FIRST_NEWS_SECONDS = 20.0  # how long a newcomer waits for the other peers' progress


@dataclass(frozen=True)
class PeerOptions:
    """Options of a volunteer.

    Attributes:
        name: how the volunteer appears among the contributors; empty: by the account's name.
        folder: where the identity, the backup and the status are kept.
        micro_batch_size: sequences computed at once; None: what fits, at most the recipe's.
    """

    name: str
    folder: Path
    endpoint: Endpoint = field(default_factory=Endpoint)
    micro_batch_size: int | None = None


def join(kind: type["Device"], run: RunFile, options: PeerOptions, stop: threading.Event) -> None:
    """Take part in a run until its schedule is over or `stop` is set.

    Raises:
        CannotConnectError: when no entry point answers, or what the host has does not hold.
        AccessRefusedError: when the run's authority does not admit us, or not any more.
        InputError: when the folder is in use, or nothing fits into this device's memory.
    """
    with alone_in(options.folder):
        board = StatusBoard(options.folder)
        board.status.stage = Stage.ADMITTING if run.authority else Stage.STARTING
        board.show()
        key = Identity.read(options.folder).key
        with admitted(run, key, options.folder, board.say, stop) as membership:
            if membership is not None:
                milestones.mark(Milestone.ACCESS)
            volunteer = kind(run, options, board, membership)
            give_way()
            try:
                volunteer.train(stop)
            finally:
                volunteer.leave()


def give_way() -> None:
    """Let everything else on this computer go first: lower the priority of the calling thread.

    The threads and processes that talk to other peers keep theirs, so that nobody waits longer
    for an answer. Windows has no such number; there, nothing changes.
    """
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def _load_per_core() -> float:
    """Tasks that wanted a core in the last minute, for each that there is; 0 where unknown."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0


class Device(abc.ABC):
    """One device in a run: its model, its share of the data, its name."""

    def __init__(
        self,
        run: RunFile,
        options: PeerOptions,
        board: StatusBoard,
        membership: Membership | None = None,
    ) -> None:
        self.run, self.board = run, board
        self.recipe: Recipe = self._check(run)
        self.name = options.name or account_name(membership)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        board.show()
        choice = fitting.choose_micro_batch(self.recipe, self.device, options.micro_batch_size)
        board.say(choice.reason)
        self.micro_batch_size, self.identity = choice.size, Identity.read(options.folder)
        samples = streaming.stream(
            self.recipe, self.identity.subkey, run.data or None, choice.size, board.say
        )
        self.stream = BatchesAhead(samples, pin=self.device.type == "cuda")
        self._show(Stage.STARTING)
        self.model = build.open_model(self.recipe, self.device)
        self.computing = Computing(self.model, self.device, choose_precision(self.device))
        self._open(options, membership)

    @abc.abstractmethod
    def _open(self, options: PeerOptions, membership: Membership | None) -> None:
        """Open what this kind of exchange needs; the model is there."""

    def _check(self, run: RunFile) -> Recipe:
        """The run's recipe; raises InputError where the run file lacks something."""
        return run.get_recipe()

    def _show(self, stage: Stage) -> None:
        """Show the stage; the supervisor takes long silence at a start for a hang."""
        self.board.status.stage = stage
        self.board.show()

    @abc.abstractmethod
    def train(self, stop: threading.Event) -> None:
        """Take part until the run is over or `stop` is set."""

    @abc.abstractmethod
    def leave(self) -> None:
        """Say goodbye and close everything, within bounded time."""


class Volunteer(Device):
    """Computes gradients, and averages them with the others in every global step."""

    def _open(self, options: PeerOptions, membership: Membership | None) -> None:
        run, board = self.run, self.board
        self._obeyed: RollbackOrder | None = None
        self._told_unreachable = False
        build.warm_up(self.recipe, self.device)
        traffic.start_counting()
        self._show(Stage.CONNECTING)
        self.network = Network(
            run.name, self.identity, run.initial_peers, options.endpoint, membership=membership
        )
        milestones.mark(Milestone.CONNECT)
        with self.network.forking():
            self.optimizer: SwarmOptimizer = open_optimizer(
                self.network,
                self.recipe,
                self.model,
                self.micro_batch_size,
                delayed_step=self.recipe.swarm.delayed_step,
            )
        self.contribution = Contribution(self.name)
        size = state_bytes(self.optimizer)
        self.reporter = Reporter(
            board,
            self.network,
            self.optimizer,
            self.contribution,
            self.recipe,
            size,
            moderators_of(run),
        )
        self.recovery = Recovery(
            self.optimizer,
            self.stream,
            self.recipe,
            run.live,
            options.folder,
            board.say,
            self.reporter.note_checkpoint,
        )

    def train(self, stop: threading.Event) -> None:
        """Compute and step until the schedule ends or `stop` is set."""
        self.reporter.start()
        self.recovery.restore_backup()
        self._catch_up(stop)
        milestones.mark(Milestone.STATE)
        for batch in self._batches(stop):
            self._keep_connected(stop)
            self._obey_moderators()
            self.reporter.stage = Stage.COMPUTING
            computed = self._compute(batch)
            if computed.outcome is Outcome.ADDED:
                milestones.mark(Milestone.FIRST_BATCH)
                self._step(streaming.count(batch), computed.loss)
            else:
                self._leave_out(computed.outcome)
        if not stop.is_set():
            minutes = SHARING_SECONDS / 60
            self.board.say(
                f"the run is over; others can download its result here for {minutes:.0f} minutes"
            )
            self.reporter.stage = Stage.SHARING
            stop.wait(SHARING_SECONDS)

    def leave(self) -> None:
        """Keep a backup, tell the others and close everything, within bounded time."""
        self.reporter.stage = Stage.LEAVING
        if self.optimizer.local_epoch > 0:
            self.recovery.save_backup()
        self.reporter.close()
        if not self.optimizer.close():
            self.board.say("leaving took too long and was cut short: the others will notice")
        self.network.close()
        self.stream.close()
        self._show(Stage.DONE)

    def _batches(self, stop: threading.Event) -> Iterator[streaming.Batch]:
        for batch in self.stream.until(stop):
            is_last = self.optimizer.local_epoch >= self.recipe.schedule.total_steps
            if is_last or self.reporter.is_over:
                return
            yield batch

    def _compute(self, batch: streaming.Batch) -> Computed:
        """Add the gradients of a micro-batch, if they are sound."""
        return self.computing.add(batch)

    def _step(self, samples: int, loss: float) -> None:
        """Hand the gradients in; with the others' they may make the next global step."""
        optimizer = self.optimizer
        epoch, downloads = optimizer.local_epoch, optimizer.downloads
        self.contribution.add(samples, loss)
        self.reporter.stage = Stage.WAITING
        try:
            optimizer.step(batch_size=samples)
        except StateUnavailableError as error:
            self.board.say(f"{error}: taking the published checkpoint")
            self.recovery.take_checkpoint()
        if optimizer.failure:
            self._explain_failure(optimizer.failure)
        if optimizer.downloads > downloads:
            self.contribution.discard()
        elif optimizer.local_epoch > epoch:
            seen = optimizer.take_round()
            if seen is not None and seen.answered > 0:
                milestones.mark(Milestone.FIRST_AVERAGE)
            self.contribution.finish_step(optimizer.local_epoch, traffic.read(), seen)
            self._check_weights()
            self.reporter.publish(PeerState.TRAINING)

    def _explain_failure(self, why: str) -> None:
        """Say why the step failed, and what can be done if no one accepts connections."""
        if self.optimizer.local_progress.samples_accumulated == 0:
            self.contribution.discard()
        tracker = self.optimizer.tracker
        advice = "if every step fails, run the doctor"
        if (load := _load_per_core()) > BUSY:
            advice = (
                f"other work keeps this machine busy ({load:.0f} tasks want each of its cores), so "
                "steps may be late"
            )
        self.board.say(f"the step failed: {why}. Trying again; {advice}")
        if self.network.dht.client_mode and not tracker.reachable and not self._told_unreachable:
            self._told_unreachable = True
            self.board.say(
                f"all {len(tracker.callers)} volunteers are behind routers, so none of them "
                "accepts connections: their gradients count only while the organizers' monitor "
                "averages them"
            )

    def _leave_out(self, outcome: Outcome) -> None:
        """Go on without a micro-batch: its samples count nowhere."""
        if outcome is Outcome.OVERFLOWED:
            logger.info("too large for float16: the scale is now %g", self.computing.scale)
            return
        self.contribution.rejected += 1
        if not are_sound(list(self.model.parameters())):
            self.contribution.discard()
            self.recovery.roll_back()
            return
        dropped = "it"
        if outcome is Outcome.SPOILT:
            self.optimizer.discard_gradients()
            self.contribution.discard()
            dropped = "this step's gradients"
        self.board.say(
            f"a micro-batch's loss was not finite: dropping {dropped}. If this happens again and "
            "again, run the doctor"
        )

    def _check_weights(self) -> None:
        if not are_sound(list(self.model.parameters())):
            self.contribution.rejected += 1
            self.recovery.roll_back()
        elif self.optimizer.local_epoch % self.recipe.swarm.backup_every == 0:
            self.recovery.save_backup()

    def _catch_up(self, stop: threading.Event) -> None:
        """Before the first gradient: take the others' state, else the published checkpoint.

        Whoever finds nobody says that it is there and waits a little before it begins alone: a
        newcomer who just does not see the others yet would make a second run beside theirs. So
        those who begin a run together see each other before the first step.
        """
        self.reporter.stage = Stage.SEARCHING
        self.reporter.publish(PeerState.SYNCING)
        tracker = self.optimizer.tracker
        patience = FIRST_NEWS_SECONDS if self.run.initial_peers else 0.0
        deadline = time.monotonic() + patience
        if patience:
            tracker.look_now(patience)
        if not self.optimizer.is_behind:
            tracker.announce_arrival()
        while time.monotonic() < deadline and not stop.wait(0.5):
            if self.optimizer.is_behind:
                self.reporter.stage = Stage.DOWNLOADING
                self.recovery.download()
                return
            if self._are_others_here():
                break
        if self.optimizer.local_epoch == 0 or not self._are_others_here():
            self.recovery.take_checkpoint()

    def _are_others_here(self) -> bool:
        """True if others are in the run, none of them further than we are."""
        if self.optimizer.is_behind:
            return False
        own = self.network.dht.peer_id
        return any(peer != own for peer in self.optimizer.tracker.paces or ())

    def _keep_connected(self, stop: threading.Event) -> None:
        """Wait out an outage: gradients computed alone would be thrown away.

        Raises:
            CannotConnectError: when our own network daemon has ended: we must start again.
        """
        if self.reporter.is_connected:
            return
        self._require_daemon()
        self.reporter.stage = Stage.DISCONNECTED
        self.optimizer.discard_gradients()
        self.contribution.discard()
        while not self.reporter.is_connected and not stop.wait(1.0):
            self._require_daemon()
        self._catch_up(stop)

    def _require_daemon(self) -> None:
        if not self.reporter.is_alive:
            raise CannotConnectError(
                "the network daemon of this machine ended unexpectedly. If this happens again and "
                "again, look at the free memory"
            )

    def _obey_moderators(self) -> None:
        """Go back to the weights that the run's moderators ordered, if we have not yet."""
        order = self.reporter.order
        if order is None or order == self._obeyed:
            return
        self.optimizer.tracker.floor = order.step
        if self.optimizer.local_epoch < order.step:
            self.contribution.discard()
            if not self.recovery.go_back(order):
                self.reporter.order = None  # until the next heartbeat finds it again
                return
        self._obeyed = order


def account_name(membership: Membership | None) -> str:
    """The name on the Hub where the run's authority asked for it, else on this machine."""
    admission = membership.read() if membership is not None else None
    name = admission.grant.username if admission else getpass.getuser()
    return name[: reports.LONGEST_NAME]
