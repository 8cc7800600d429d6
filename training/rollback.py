"""The monitor's part of a roll-back: publish the weights again, and say so to the run."""

import math
from datetime import datetime
from pathlib import Path
from typing import Any

from hivemind.utils import get_dht_time

from training import atomic, checkpoint
from training.live import LiveFolder, timestamp
from training.moderation import FILE_NAME
from training.orders import RollbackOrder

NOTICE_SECONDS = 25.0  # until the last volunteer has heard of it
SPARE_STEPS = 3


def carry_out(folder: Path, live: LiveFolder, furthest_step: int) -> RollbackOrder | None:
    """Publish what the moderators ordered, if that is still to be done; the order in force.

    Args:
        folder: the monitor's. furthest_step: that any volunteer has reached.
    """
    written: dict[str, Any] | None = atomic.read_json(folder / FILE_NAME)
    if written is None:
        return None
    if "step" not in written:
        written |= _publish_again(live, written["checkpoint"], furthest_step)
        atomic.write_json(folder / FILE_NAME, written)
        print(
            f"the moderators ordered the weights of step {written['checkpoint']}: "
            f"the run goes on with them as step {written['step']}",
            flush=True,
        )
    return RollbackOrder.parse_obj(written)


def _publish_again(live: LiveFolder, step: int, furthest_step: int) -> dict[str, Any]:
    (entry,) = [entry for entry in live.read_checkpoints() if entry.step == step]
    model = checkpoint.load((live.path / str(entry.address)).parent)
    margin = math.ceil(NOTICE_SECONDS / _seconds_per_step(live)) + SPARE_STEPS
    new_step = furthest_step + margin
    weights = checkpoint.publish(live, model, new_step, entry.loss, timestamp(get_dht_time()))
    return {"step": new_step, "sha256": atomic.sha256(weights / checkpoint.WEIGHTS)}


def _seconds_per_step(live: LiveFolder) -> float:
    """Of the last steps; never so short that a roll-back would use up a short run."""
    lines = live.progress.read()[-10:]
    if len(lines) < 2:
        return NOTICE_SECONDS
    first, last = (datetime.fromisoformat(line["time"]) for line in (lines[0], lines[-1]))
    steps = int(lines[-1]["step"]) - int(lines[0]["step"])
    seconds = (last - first).total_seconds() / max(1, steps)
    return max(1.0, seconds)
