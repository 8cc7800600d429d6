"""Ways back into a run: from the others, from the own backup, from the published checkpoint."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from training import backup, checkpoint
from training.averaging import StateUnavailableError, SwarmOptimizer, ordered_parameters
from training.data import SampleStream
from training.model import build_model
from training.recipes import Recipe


@dataclass
class Recovery:
    """Brings a volunteer to a sound state.

    Attributes:
        live: address or folder of the published live data, empty where there is none.
        folder: where the backup is kept.
        say: tells the volunteer in plain words what was done.
    """

    optimizer: SwarmOptimizer
    stream: SampleStream
    recipe: Recipe
    live: str
    folder: Path
    say: Callable[[str], None]

    @property
    def _path(self) -> Path:
        return self.folder / "backup.pt"

    def save_backup(self) -> None:
        """Keep a copy of the present state."""
        state = self.optimizer.current_state()
        if state.is_finite():
            backup.save(self._path, backup.Backup(state, self.stream.state_dict()))

    def restore_backup(self) -> None:
        """Go on from the copy, if there is a sound one of this model."""
        saved = backup.load(self._path, self.optimizer.state_averager.main_parameters)
        if saved is not None:
            self.optimizer.adopt(saved.state)
            self.stream.load_state_dict(saved.stream)
            self.say(f"going on from the own backup of step {saved.state.epoch}")

    def download(self) -> None:
        """Take the newest state from a peer, else the published checkpoint."""
        try:
            self.optimizer.load_state_from_peers()
        except StateUnavailableError as error:
            self.say(str(error))
            self.take_checkpoint()

    def take_checkpoint(self) -> None:
        """Go on from the published checkpoint if it is newer than what we have."""
        if not self.live:
            return
        try:
            step, model = checkpoint.fetch(self.live)
        except (OSError, checkpoint.CheckpointError) as error:
            self.say(f"no published checkpoint: {error}")
            return
        if step > self.optimizer.local_epoch:
            parameters = [p.detach() for p in ordered_parameters(model, self.recipe)]
            self.optimizer.adopt(self.optimizer.with_parameters(step, parameters))
            self.say(f"going on from the published checkpoint of step {step}")

    def roll_back(self) -> None:
        """Leave broken weights for the backup, else for the published checkpoint or a new start.

        The next `step` finds the peer behind and downloads what the others have by then.
        """
        self.say("the weights are not finite any more: going back to the last sound state")
        saved = backup.load(self._path, self.optimizer.state_averager.main_parameters)
        if saved is not None:
            self.optimizer.adopt(saved.state)
            return
        parameters = [p.detach() for p in ordered_parameters(build_model(self.recipe), self.recipe)]
        self.optimizer.adopt(self.optimizer.with_parameters(0, parameters))
        self.take_checkpoint()
