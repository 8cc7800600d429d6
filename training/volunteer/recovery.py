"""Ways back into a run: from other peers, from one's own backup, from a published checkpoint."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hivemind.optim.state_averager import dump_optimizer_state

from training.averaging.optimizer import StateUnavailableError, SwarmOptimizer, ordered_parameters
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

    @property
    def _path(self) -> Path:
        return self.folder / "backup.pt"

    def save_backup(self) -> None:
        """Keep a copy of the present state."""
        state = self.optimizer.current_state()
        if state.is_sound(len(self.optimizer.state_averager.main_parameters)):
            backup.save(self._path, backup.Backup(state, self.stream.state_dict()), self.say)

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
        """Take the newest state of a peer; where none sends a usable one, the checkpoint."""
        try:
            self.optimizer.load_state_from_peers()
        except StateUnavailableError as error:
            self.say(f"{error}: taking the published checkpoint")
            self.take_checkpoint()

    def _fetch(self) -> checkpoint.Published:
        return checkpoint.fetch(self.live, self.folder, self.report, config_of(self.recipe))

    def _fetch_states(self, step: int) -> list[torch.Tensor] | None:
        """Get the optimizer's states of a checkpoint; without them it goes on with its own."""
        _, own = dump_optimizer_state(self.optimizer.opt)
        try:
            return checkpoint.fetch_states(self.live, step, own, self.folder)
        except (OSError, checkpoint.CheckpointError) as error:
            self.say(
                f"the checkpoint's optimizer states could not be used, so the optimizer keeps its "
                f"own: {error}"
            )
            return None

    def _adopt(self, model: torch.nn.Module, step: int, **options: Any) -> None:
        parameters = [p.detach() for p in ordered_parameters(model, self.recipe)]
        self.optimizer.adopt(self.optimizer.with_parameters(step, parameters, **options))

    def take_checkpoint(self) -> None:
        """Go on from the published checkpoint if it is newer than what we have."""
        if not self.live:
            return
        try:
            step, model = self._fetch()
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
            states = self._fetch_states(step)
            self._adopt(model, step, states=states)
            self.say(f"continuing from the published checkpoint of step {step}")

    def go_back(self, order: RollbackOrder) -> bool:
        """Take the weights that the moderators ordered, with a new optimizer state.

        Gives whether they could be had.
        """
        try:
            published = checkpoint.find_newest(self.live)
            step, model = self._fetch()
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
        self._adopt(model, step, first_step=True)
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
        self._adopt(build_model(self.recipe), 0)
        self.take_checkpoint()
