"""A volunteer whose loss and whose weights break: `python unlucky.py FOLDER LIVE`.

Alone in its run, it begins at the checkpoint published in LIVE. What it saw is in ``seen.json``.
"""

import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[3]))

import torch

from training.averaging.state import are_sound
from training.data.streaming import Batch
from training.network import worker
from training.network.connection import Endpoint
from training.run.runfile import RunFile
from training.run.status import StatusBoard
from training.volunteer.computing import Computed
from training.volunteer.peer import PeerOptions, Volunteer

STEPS = 8


class UnluckyVolunteer(Volunteer):
    """Breaks a loss in its second step, the model's weights in its fourth, all in its sixth.

    In its seventh they are finite, but huge.
    """

    def _keep_connected(self, stop: threading.Event) -> None:
        """Do mischief at the beginning of a micro-batch; called before each."""
        super()._keep_connected(stop)
        step = self.optimizer.local_epoch
        seen.setdefault("first step", step)
        seen["last step"] = step
        done = step - seen["first step"]
        if done >= STEPS:
            stop.set()
        own = next(self.model.parameters())
        averaged = self.optimizer.opt.param_groups[0]["params"][0]
        for when, name, parameter, value in (
            (3, "broken model", own, torch.nan),
            (5, "broken optimizer", averaged, torch.nan),
            (6, "huge weights", averaged, 1e30),
        ):
            if done == when and name not in seen:
                seen[name] = step
                with torch.no_grad():
                    parameter.fill_(value)

    def _compute(self, batch: Batch) -> Computed:
        """Compute, once with a model whose loss is NaN."""
        if seen.get("last step") != seen.get("first step", -2) + 1 or "broken loss" in seen:
            return super()._compute(batch)
        seen["broken loss"] = seen["last step"]
        model = self.computing.model
        self.computing.model = lambda **_: SimpleNamespace(loss=torch.tensor(torch.nan))
        try:
            return super()._compute(batch)
        finally:
            self.computing.model = model


seen: dict[str, int] = {}


def work(stop: threading.Event) -> None:
    """Take part as `training.volunteer.peer.join` does, and write down what was seen."""
    folder, live = Path(sys.argv[1]), sys.argv[2]
    run = RunFile(name="unlucky", recipe="tiny", live=live)
    options = PeerOptions("unlucky", folder, Endpoint("127.0.0.1"))
    volunteer = UnluckyVolunteer(run, options, StatusBoard(folder))
    volunteer.train(stop)
    seen["rejected"] = volunteer.contribution.rejected
    seen["sound"] = are_sound(list(volunteer.model.parameters()))
    volunteer.leave()
    (folder / "seen.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    worker.run(work, Path(sys.argv[1]))
