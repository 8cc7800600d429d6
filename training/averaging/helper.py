"""Averages for volunteers behind routers, who cannot call each other, and computes nothing.

A helper is a member of every round with a weight of zero. It gets the same averages as the
volunteers and makes the same updates, so that it can give the whole state to a newcomer, and the
monitor a checkpoint, also where nobody else can be called.

Why not relays: they would make everybody callable, and send the same bytes through the same
machine. The daemon of hivemind 1.1.12 (go-libp2p 0.32.1) can relay (circuit relay v2): a peer
behind a router gets an address at a relay that is forced to be public, when its own daemon is told
which relay to take and not to look for others, an option that the library does not pass on. With
the library's options alone no address came in 35 seconds. Hole punching is built in too; with one
entry point, none was seen in a trial.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from training.averaging.optimizer import StateUnavailableError, SwarmOptimizer, open_optimizer
from training.averaging.reduction import Round
from training.model.build import warm_up
from training.network.connection import Network
from training.run.recipes import Recipe

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 0.25  # between two looks at whether a step is due
RETRY_SECONDS = 3.0
PATIENCE = 3.0  # longest averaging rounds, and a download, that a single step may take


class HelperStuckError(RuntimeError):
    """A process of the averaging library hangs: only a new start helps."""


class Helper:
    """A thread that takes part in every round while it is active.

    Args:
        network: one that others can call. model: as every volunteer begins with it.
        witness: told the step, and what was seen of its averaging, in the thread.
    """

    def __init__(
        self,
        network: Network,
        recipe: Recipe,
        model: torch.nn.Module,
        witness: Callable[[int, Round | None], None],
    ) -> None:
        warm_up(recipe, torch.device("cpu"))
        with network.forking():
            self.optimizer: SwarmOptimizer = open_optimizer(
                network, recipe, model, 1, delayed_step=False, helps=True
            )
        self.optimizer.state_averager.allow_state_sharing = False
        self._witness = witness
        self._work_lock = threading.Lock()
        swarm = recipe.swarm
        self._patience = PATIENCE * swarm.averaging_timeout + swarm.state_download_timeout
        self._busy_since: float | None = None
        self._active, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="helper", daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """True if it takes part."""
        return self._active.is_set()

    @is_active.setter
    def is_active(self, active: bool) -> None:
        if active == self._active.is_set():
            return
        logger.info("helping" if active else "helping no more")
        self.optimizer.tracker.announce(active)
        if active:
            self._active.set()
        else:
            self._active.clear()
            self.optimizer.state_averager.allow_state_sharing = False

    @property
    def is_stuck(self) -> bool:
        """True if a process of the library hangs, as one in a few dozen does after it starts."""
        since = self._busy_since
        return since is not None and time.monotonic() - since > self._patience

    def state(self, seconds: float) -> tuple[dict[str, Any], list[torch.Tensor]] | None:
        """Metadata and tensors of the run's state: our own where it is the newest, else a peer's.

        None where there is no usable one within `seconds`.
        """
        if not self._work_lock.acquire(timeout=seconds):
            return None
        try:
            if self.is_active and not self.optimizer.is_behind:
                return self.optimizer.current_state().as_loaded()
            return self.optimizer.fetch_state(seconds)
        finally:
            self._work_lock.release()

    def close(self) -> None:
        """Leave the rounds, within bounded time."""
        self._closed.set()
        self.optimizer.close()

    def _run(self) -> None:
        while not self._closed.wait(PAUSE_SECONDS):
            if not self.is_active:
                continue
            try:
                with self._work_lock:
                    self._busy_since = time.monotonic()
                    self._work()
            except StateUnavailableError as error:
                logger.warning("helping is not possible yet: %s", error)
                self._closed.wait(RETRY_SECONDS)
            except Exception:
                logger.exception("helping failed; continuing")
                self._closed.wait(RETRY_SECONDS)
            finally:
                self._busy_since = None

    def _work(self) -> None:
        optimizer = self.optimizer
        before = optimizer.local_epoch
        if optimizer.is_behind:
            optimizer.load_state_from_peers()
        else:
            optimizer.step(batch_size=0)
            if optimizer.local_epoch > before:
                self._witness(optimizer.local_epoch, optimizer.take_round())
        sharing = not optimizer.is_behind
        if optimizer.state_averager.allow_state_sharing != sharing:
            optimizer.state_averager.allow_state_sharing = sharing
