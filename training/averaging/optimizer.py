"""The optimizer that the volunteers share: hivemind's, with deadlines and a look at what arrives.

`hivemind.Optimizer` gathers gradients of all peers until the target batch is full, averages
them and makes one step everywhere. Three things are added: downloading the state ends at a
deadline instead of trying for ever; a state is looked at before it is used; and the same state
can be taken from a file.
"""

import logging
import threading
import time
from functools import partial
from typing import Any

import hivemind
import torch
from hivemind.optim.state_averager import dump_optimizer_state

from training.averaging.guard import GuardedGradientAverager
from training.averaging.progress import CredibleTracker
from training.averaging.reduction import Round
from training.averaging.state import StateAverager, StateDownload, TrainingState
from training.averaging.wire import WireCompression, WireFormat, expected_bytes
from training.network.connection import Network
from training.optimizer import lamb
from training.records.directory import Directory
from training.run.recipes import Recipe

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 20.0
PROGRESS_EXPIRATION_SECONDS = 30.0  # after so long without news a peer no longer counts
MOST_STEPS = 2  # a peer counts at most so many global steps' samples: the last ones come late
GROUP_WAITS, GROUP_SECONDS = 3.0, 2.0  # longest wait for a group, in times to find one, and more
NEWS_SECONDS = 10.0  # after a failed round, to hear whether others made the step
TOO_LITTLE = 0.5  # a round that gave back at most this share of the values has failed
UNPACED_BATCHES = 4  # micro-batches that a newcomer may hand in before its pace is known


class StateUnavailableError(RuntimeError):
    """No peer sent a usable state before the deadline."""


class RoundFailedError(RuntimeError):
    """The gradients were not averaged with anybody's; the message says why."""


class SwarmOptimizer(hivemind.Optimizer):
    """`hivemind.Optimizer` that neither waits forever nor believes everything."""

    state_averager: StateAverager
    grad_averager: GuardedGradientAverager
    tracker: CredibleTracker
    scheduled_grads: Any
    scheduled_state: Any
    downloads = 0  # states taken from elsewhere: gradients of before then counted for nothing
    failure = ""  # why the last step was not made, empty where it was
    _declared: Any = None
    _handed_in = (0, 0)  # samples and micro-batches that the running round is made of
    _seen: Round | None = None
    _met: tuple[int, tuple[str, ...]] = (-1, ())  # the step and peers whose groups are known

    def _make_progress_tracker(self, target_batch_size: int, **options: Any) -> CredibleTracker:
        return CredibleTracker(
            dht=self.dht,
            prefix=self.run_id,
            target_batch_size=target_batch_size,
            client_mode=self.client_mode,
            status_loglevel=self.status_loglevel,
            start=True,
            **options,
        )

    def _make_state_averager(self, **options: Any) -> StateAverager:
        averager = StateAverager(
            dht=self.dht,
            prefix=f"{self.run_id}_state_averager",
            min_matchmaking_time=self.matchmaking_time,
            allreduce_timeout=self.allreduce_timeout,
            shutdown_timeout=self.shutdown_timeout,
            offload_optimizer=self.offload_optimizer,
            custom_gradients=self.offload_optimizer,
            status_loglevel=self.status_loglevel,
            next_chunk_timeout=self.next_chunk_timeout,
            client_mode=self.client_mode,
            auxiliary=self.auxiliary,
            start=True,
            **options,
        )
        averager.shapes = [parameter.shape for parameter in averager.main_parameters]
        return averager

    def step(self, *arguments: Any, **options: Any) -> Any:
        """Hand in a micro-batch's gradients; see `hivemind.Optimizer.step`."""
        self.failure = ""
        if self.tracker.paces is not self._declared:
            self._declared = self.tracker.paces
            self.grad_averager.declare_paces(self._declared)
        self.grad_averager.epoch = self.local_epoch
        if (now := (self.local_epoch, self.tracker.present)) != self._met:
            self._met = now
            own, others = str(self.dht.peer_id), self.tracker.present
            self.grad_averager.meet(own, others, f"gradients {self.local_epoch}")
            self.state_averager.meet(own, others, f"state {self.local_epoch}")
        return super().step(*arguments, **options)

    def take_round(self) -> Round | None:
        """Records of the averaging behind the newest step; None if there was none."""
        self.state_averager.take_rounds()
        seen, self._seen = self._seen, None
        return seen

    @property
    def is_in_company(self) -> bool:
        """True if others are in the run: then no step is made with our gradients alone."""
        return bool(self.tracker.global_progress.num_peers > 1)

    def _update_global_epoch(self, grad_scaler: Any) -> None:
        """Make the step with the others, or none at all.

        The library falls back to the gradients at hand where a round fails: each peer then goes
        its own way. Here a failed round makes no step. The gradients wait for the next try where
        nobody has taken them; else they are given up. If others made the step, their state is
        downloaded at once: otherwise a slow peer could be late for every later step, too.
        """
        if self._has_company_come():
            return  # the step is made together, as soon as the next gradients are in
        try:
            super()._update_global_epoch(grad_scaler)
        except RoundFailedError as error:
            self.failure = str(error)
            logger.warning("the step failed: %s", error)
            self._give_up_round()
            if self.is_behind:
                self.load_state_from_peers()

    def _has_company_come(self) -> bool:
        """Before a step alone: whether somebody joined since the last look at the others."""
        if self.is_in_company:
            return False
        self.tracker.look_now(NEWS_SECONDS)
        return self.is_in_company

    def _begin_averaging_gradients(self, grad_scaler: Any) -> bool:
        averager = self.grad_averager
        self._handed_in = averager.local_samples_accumulated, averager.local_times_accumulated
        self._seen = None
        averager.take_rounds()
        began = bool(super()._begin_averaging_gradients(grad_scaler))
        if not began and self.is_in_company:  # the group found beforehand was used up
            began = bool(super()._begin_averaging_gradients(grad_scaler))
        if not began and self.is_in_company:
            raise RoundFailedError("averaging could not start")
        return began

    def _average_gradients_and_load_into_optimizer(self, maybe_step_control: Any) -> None:
        control = maybe_step_control
        try:
            self._await_group(control)
            group = control.result(self.averaging_timeout)
        except Exception as error:
            if not control.done():
                control.cancel()
            why = "no group of volunteers was found"
            if control.began_allreduce:
                why = f"the exchange failed ({error!r})"
            raise RoundFailedError(why) from error
        self._load_averaged_gradients_into_optimizer_()
        rounds = self.grad_averager.take_rounds()
        for seen in rounds:
            self.tracker.witnessed.witness(seen)
        self._seen = rounds[-1] if rounds else None
        logger.info("averaged gradients with %d peers", len(group))
        if self._seen is not None and self._seen.answered <= TOO_LITTLE:
            raise RoundFailedError("the averaging peers did not respond")

    def _await_group(self, control: Any) -> None:
        """Wait for a group to come together; whoever is late is not waited for long.

        Raises:
            TimeoutError: when there is none.
        """
        began = time.monotonic()
        deadline = began + GROUP_WAITS * self.matchmaking_time + GROUP_SECONDS
        look_at = began + self.matchmaking_time
        while not (control.began_allreduce or control.done()):
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError
            if now > look_at:
                look_at = now + self.matchmaking_time
                if self.tracker.furthest_step() > self.local_epoch:
                    raise TimeoutError  # the others made the step meanwhile
            time.sleep(0.02)

    def _give_up_round(self) -> None:
        """After a failed round: keep the gradients if they are whole, and find out where we are."""
        control, (samples, times) = self.scheduled_grads, self._handed_in
        begun = control is not None and control.began_allreduce
        self.scheduled_grads = None
        if control is not None and not begun and samples <= self.target_batch_size:
            self.grad_averager.take_back(samples, times)
        else:
            self.grad_averager.reset_accumulated_grads_()
            self.grad_averager.notify_used_averaged_gradients()
        kept = self.grad_averager.local_samples_accumulated
        self.tracker.report_local_progress(self.local_epoch, kept)
        if self.scheduled_state is not None and not self.scheduled_state.done():
            self.scheduled_state.cancel()
        self.scheduled_state = None
        self.tracker.look_now(NEWS_SECONDS)
        self._should_check_synchronization_on_update = True

    @property
    def is_behind(self) -> bool:
        """True if the others are at a later step, so that our gradients are of no use."""
        return bool(self.local_epoch < self.tracker.global_epoch)

    def load_state_from_peers(self, **_options: Any) -> None:
        """Take the newest state of a peer; called by `step` when this peer fell behind.

        Raises:
            StateUnavailableError: when no usable state came within `load_state_timeout` seconds.
        """
        self._leave_running_rounds()
        deadline = time.monotonic() + self.load_state_timeout
        with self.tracker.pause_updates():
            while not self._try_download(deadline):
                if time.monotonic() >= deadline:
                    seconds = self.load_state_timeout
                    raise StateUnavailableError(f"no peer sent a usable state in {seconds:.0f} s")
                time.sleep(0.5)
            self._start_over()

    def adopt(self, state: TrainingState) -> None:
        """Go on from a state that comes from a file, whatever step this peer is at."""
        self._leave_running_rounds()
        with self.tracker.pause_updates():
            self.state_averager.local_epoch = 0  # else an older state is refused
            self.state_averager.offered = state
            try:
                self.state_averager.load_state_from_peers()
            finally:
                self.state_averager.offered = None
            self._start_over()

    def current_state(self) -> TrainingState:
        """A copy of the state as of the last finished step."""
        self.state_averager.step(wait_for_delayed_updates=True)
        metadata, tensors, _ = self.state_averager.get_current_state()
        copies = [tensor.detach().clone() for tensor in tensors]
        return TrainingState(metadata["epoch"], metadata["optimizer_metadata"], copies)

    def with_parameters(
        self,
        epoch: int,
        parameters: list[torch.Tensor],
        first_step: bool = False,
        states: list[torch.Tensor] | None = None,
    ) -> TrainingState:
        """The state with these parameters at that step and the optimizer's present tensors.

        With `first_step` the optimizer's tensors are those before one, too; with `states` they are
        those.
        """
        optimizer_metadata, optimizer_tensors = dump_optimizer_state(self.opt)
        optimizer_tensors = states or optimizer_tensors
        if first_step:
            # 8-bit codes mean nothing where their scales are zero
            optimizer_tensors = [
                torch.zeros_like(tensor) if tensor.is_floating_point() else tensor
                for tensor in optimizer_tensors
            ]
        tensors = [*parameters, *(tensor.clone() for tensor in optimizer_tensors)]
        return TrainingState(epoch, optimizer_metadata, tensors)

    def discard_gradients(self) -> None:
        """Forget what was accumulated for the next step."""
        self.grad_averager.reset_accumulated_grads_()
        self.tracker.report_local_progress(self.local_epoch, samples_accumulated=0)

    def close(self) -> bool:
        """Say goodbye to the others; False when that did not end in time and was left behind."""
        thread = threading.Thread(target=self.shutdown, daemon=True)
        thread.start()
        thread.join(SHUTDOWN_SECONDS)
        return not thread.is_alive()

    def _leave_running_rounds(self) -> None:
        if self.scheduled_grads is not None and not self.scheduled_grads.done():
            # cancelling would make the others look for a group again
            self._tag_along_with_zero_weight(self.scheduled_grads)
        self.scheduled_grads = None
        self.state_averager.step(wait_for_delayed_updates=True)

    def _try_download(self, deadline: float) -> bool:
        epoch = self.local_epoch
        try:
            self._choose_donors()
            self.state_averager.load_state_from_peers(timeout=max(1.0, deadline - time.monotonic()))
        except Exception as error:  # whatever a peer may send, it must not end this one
            logger.warning("a download failed: %r", error)
            return False
        newest = self.tracker.global_epoch
        return bool(self.local_epoch > epoch or self.local_epoch >= newest - 1)

    def fetch_state(self, seconds: float) -> tuple[dict[str, Any], list[torch.Tensor]] | None:
        """Metadata and tensors of a peer's state, which is not taken; None where there is none."""
        self._choose_donors()
        return StateDownload.load_state_from_peers(self.state_averager, timeout=seconds)

    def _choose_donors(self) -> None:
        self.state_averager.ceiling = self.tracker.ceiling
        if not self.client_mode:
            self.state_averager.callers = self.tracker.callers

    def _start_over(self) -> None:
        self.downloads += 1
        newest = self.tracker.global_epoch
        if newest - 1 <= self.local_epoch < newest:
            self.state_averager.local_epoch = newest  # the step that is being made right now
        self.tracker.report_local_progress(self.local_epoch, samples_accumulated=0)
        self.grad_averager.reset_accumulated_grads_()
        if not self.client_mode:
            self.state_averager.state_sharing_priority = self.local_epoch


def open_optimizer(
    network: Network,
    recipe: Recipe,
    model: torch.nn.Module,
    micro_batch_size: int,
    wire_format: WireFormat = WireFormat.ADAPTIVE,
    delayed_step: bool = True,
    helps: bool = False,
) -> SwarmOptimizer:
    """Open the shared optimizer of a run over a model's parameters.

    Its states and the update are in main memory; with `delayed_step` the update runs while the
    next gradients are computed, which are then one step old. One that `helps` hands in nothing.
    """
    swarm = recipe.swarm
    wire = WireCompression(wire_format, swarm.compression_threshold)
    # a newcomer's first weights should not be rounded to 8 bits
    whole = wire if wire_format is WireFormat.EXACT else WireCompression(WireFormat.FLOAT16, 0)
    # a request must be answered well before the time to find a group is over, or two peers
    # that ask each other wait in vain
    guarded: dict[str, Any] = {
        "request_timeout": min(3.0, swarm.matchmaking_seconds / 2),
        "rule": swarm.aggregation,
        "admission": Directory(network.dht, network.membership, network.bans),
    }
    shortest, longest = swarm.progress_refresh
    optimizer = SwarmOptimizer(
        dht=network.dht,
        run_id=network.run,
        target_batch_size=swarm.target_batch_size,
        batch_size_per_step=micro_batch_size,
        params=lamb.parameter_groups(model, recipe),
        optimizer=partial(lamb.build_optimizer, recipe),
        scheduler=partial(lamb.build_schedule, recipe),
        matchmaking_time=swarm.matchmaking_seconds,
        averaging_timeout=swarm.averaging_timeout,
        allreduce_timeout=swarm.allreduce_timeout,
        next_chunk_timeout=max(5.0, swarm.matchmaking_seconds),
        load_state_timeout=swarm.state_download_timeout,
        average_state_every=swarm.average_state_every,
        reuse_grad_buffers=True,
        offload_optimizer=True,
        delay_optimizer_step=delayed_step,
        client_mode=network.dht.client_mode,
        verbose=True,  # into the log file
        grad_compression=wire,
        grad_averager_factory=partial(
            GuardedGradientAverager,
            allow_state_sharing=False,  # nobody asks for gradients
            largest_weight=MOST_STEPS * float(swarm.target_batch_size),
            unpaced_weight=UNPACED_BATCHES * float(swarm.micro_batch_size),
            **guarded,
        ),
        state_averaging_compression=wire,
        load_state_compression=whole,
        averager_opts=guarded,
        tracker_opts={
            "private_key": network.key,
            "helps": helps,
            "micro_batch_size": swarm.micro_batch_size,
            "min_refresh_period": shortest,
            "max_refresh_period": longest,
            "default_refresh_period": min(3.0, longest),
            "metadata_expiration": PROGRESS_EXPIRATION_SECONDS,
        },
    )
    if optimizer.client_mode:
        optimizer.state_averager.serve_callers()
    return optimizer


def ordered_parameters(model: torch.nn.Module, recipe: Recipe) -> list[torch.nn.Parameter]:
    """The model's parameters in the order in which the peers exchange them."""
    return [p for group in lamb.parameter_groups(model, recipe) for p in group["params"]]


def state_bytes(optimizer: SwarmOptimizer) -> int:
    """Size of a whole training state on the wire."""
    _, tensors = dump_optimizer_state(optimizer.opt)
    wire = WireCompression(WireFormat.FLOAT16, threshold=1)
    return expected_bytes([*optimizer.state_averager.main_parameters, *tensors], wire)
