"""Ways back into a run: from other peers, from one's own backup, from a published checkpoint."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from hivemind.optim.state_averager import dump_optimizer_state

from training.averaging.optimizer import StateUnavailableError, SwarmOptimizer, ordered_parameters
from training.averaging.state import TrainingState
from training.data.ahead import BatchesAhead
from training.model import checkpoint
from training.model.build import build_model, config_of
from training.records.orders import RollbackOrder
from training.run.recipes import Recipe
from training.volunteer import backup


@dataclass
class Recovery:
    """Brings a volunteer to a sound state.

    Attributes:
        live: address or folder of the published live data, empty where there is none.
        folder: where the backup is kept.
        say: tells the volunteer in plain words what was done.
        report: told how many per cent of a published checkpoint have come.
    """

    optimizer: SwarmOptimizer
    stream: BatchesAhead
    recipe: Recipe
    live: str
    folder: Path
    say: Callable[[str], None]
    report: Callable[[int], None] | None = None
    _states: tuple[int, list[torch.Tensor]] | None = None  # of a checkpoint that was fetched

    @property
    def _path(self) -> Path:
        return self.folder / "backup.pt"

    def save_backup(self) -> None:
        """Keep a copy of the present state."""
        state = self.optimizer.current_state()
        if state.is_sound(len(self.optimizer.state_averager.main_parameters)):
            backup.save(self._path, backup.Backup(state, self.stream.state_dict()))

    def restore_backup(self) -> None:
        """Go on from the copy, if there is a sound one of this model."""
        saved = backup.load(self._path, self.optimizer.state_averager.main_parameters)
        if saved is not None:
            self.optimizer.adopt(saved.state)
            self.stream.load_state_dict(saved.stream)
            step = saved.state.epoch
            self.say(
                f"continuing from this volunteer's own backup of step {step}, then catching up"
            )

    def download(self) -> None:
        """Take the newest state of a peer or the published checkpoint, whichever is here sooner.

        A checkpoint that is older than the run stays behind a peer's state: it is taken only
        where no peer sends a usable one in time.
        """
        averager = self.optimizer.state_averager
        fetching = Fetching(self._fetch, self._offer) if self.live else None
        try:
            self.optimizer.load_state_from_peers()
            if averager.took_offered:
                step = self.optimizer.local_epoch
                self.say(
                    f"continuing from the published checkpoint of step {step}, which arrived "
                    "before a peer's state"
                )
        except StateUnavailableError as error:
            self.say(f"{error}: taking the published checkpoint")
            averager.offered = None
            if fetching is not None:
                self._take(fetching)
        finally:
            if fetching is not None:
                fetching.abandon()
            averager.offered = None

    def take_checkpoint(self) -> None:
        """Go on from the published checkpoint if it is newer than what we have."""
        if self.live:
            self._take(Fetching(self._fetch, lambda _published: None))

    def _fetch(self, report: Callable[[int], None]) -> checkpoint.Published:
        def tell(percent: int) -> None:
            report(percent)
            if self.report is not None:
                self.report(percent)

        published = checkpoint.fetch(self.live, self.folder, tell, config_of(self.recipe))
        self._fetch_states(published[0])
        return published

    def _fetch_states(self, step: int) -> None:
        """Get the optimizer's states of a checkpoint; without them it goes on with its own."""
        _, own = dump_optimizer_state(self.optimizer.opt)
        try:
            states = checkpoint.fetch_states(self.live, step, own, self.folder)
        except (OSError, checkpoint.CheckpointError) as error:
            self.say(
                f"the checkpoint's optimizer states could not be used, so the optimizer keeps its "
                f"own: {error}"
            )
            states = None
        self._states = (step, states) if states is not None else None

    def _offer(self, published: checkpoint.Published) -> None:
        """Let a download from a peer that is still under way end with the checkpoint."""
        step, model = published
        if step > self.optimizer.local_epoch and step >= self.optimizer.tracker.global_epoch - 1:
            self.optimizer.state_averager.offered = self._as_state(step, model)

    def _take(self, fetching: "Fetching") -> None:
        try:
            step, model = fetching.wait()
        except checkpoint.NothingPublishedError:
            if self.optimizer.tracker.global_epoch:  # else the run is new
                self.say("the run has not published a checkpoint yet: the weights come from a peer")
            return
        except (OSError, checkpoint.CheckpointError) as error:
            self.say(
                f"the published checkpoint could not be used: {error}. The weights come from a "
                "peer instead"
            )
            return
        if step > self.optimizer.local_epoch:
            self.optimizer.adopt(self._as_state(step, model))
            self.say(f"continuing from the published checkpoint of step {step}")

    def _as_state(self, step: int, model: torch.nn.Module) -> TrainingState:
        parameters = [p.detach() for p in ordered_parameters(model, self.recipe)]
        known = self._states
        states = known[1] if known is not None and known[0] == step else None
        return self.optimizer.with_parameters(step, parameters, states=states)

    def go_back(self, order: RollbackOrder) -> bool:
        """Take the weights that the moderators ordered, with a new optimizer state.

        Gives whether they could be had.
        """
        try:
            published = checkpoint.find_newest(self.live)
            step, model = Fetching(self._fetch, lambda _published: None).wait()
        except (OSError, checkpoint.CheckpointError) as error:
            self.say(
                f"the weights that the moderators chose are not available yet: {error}. Trying "
                "again"
            )
            return False
        if (published.step, published.sha256, step) != (order.step, order.sha256, order.step):
            self.say(
                "the weights that the moderators chose do not match the published ones, so they "
                "are not used here: tell the organizers"
            )
            return False
        parameters = [p.detach() for p in ordered_parameters(model, self.recipe)]
        self.optimizer.adopt(self.optimizer.with_parameters(step, parameters, first_step=True))
        self.say(
            f"the moderators returned to the weights of step {order.checkpoint}: "
            f"continuing with them as step {step}"
        )
        return True

    def roll_back(self) -> None:
        """Leave broken weights for the backup, else for the published checkpoint or a new start.

        The next `step` finds the peer behind and downloads what the others have by then.
        """
        self.say("the weights are broken: returning to the last good state")
        saved = backup.load(self._path, self.optimizer.state_averager.main_parameters)
        if saved is not None:
            self.optimizer.adopt(saved.state)
            return
        parameters = [p.detach() for p in ordered_parameters(build_model(self.recipe), self.recipe)]
        self.optimizer.adopt(self.optimizer.with_parameters(0, parameters))
        self.take_checkpoint()


class _NotNeededError(Exception):
    """A download is given up because the state is there already."""


class Fetching:
    """A published checkpoint on its way, in a thread of its own.

    Args:
        fetch: gets it, calling what it is given again and again, which may end it.
        then: called with it in the thread.
    """

    def __init__(
        self,
        fetch: Callable[[Callable[[int], None]], checkpoint.Published],
        then: Callable[[checkpoint.Published], None],
    ) -> None:
        self._fetch, self._then = fetch, then
        self._abandoned = threading.Event()
        self._result: checkpoint.Published | Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def wait(self) -> checkpoint.Published:
        """The step and the model; raises what `checkpoint.fetch` raised."""
        self._thread.join()
        assert self._result is not None
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def abandon(self) -> None:
        """Give up; what has come is kept for the next time."""
        self._abandoned.set()

    def _go_on(self, _percent: int) -> None:
        if self._abandoned.is_set():
            raise _NotNeededError

    def _work(self) -> None:
        try:
            self._result = self._fetch(self._go_on)
            if not self._abandoned.is_set():
                self._then(self._result)
        except Exception as error:  # handed to whoever waits
            self._result = error
