"""Going back to a published checkpoint: `python -m training rollback RUN STEP`.

For the machine of the monitor. The command writes the order into the monitor's folder; the
monitor publishes the checkpoint once more, under a step that nobody has reached yet, and announces
it to the run (`records.orders`). Every volunteer takes its weights, with a new optimizer state, and
the run goes on from there.
"""

import argparse
import math
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from hivemind.utils import get_dht_time

from calculator.errors import InputError
from training.model import checkpoint
from training.records.orders import RollbackOrder
from training.run import atomic
from training.run.live import CheckpointEntry, LiveFolder, timestamp
from training.run.runfile import RunFile, default_folder, load

FILE_NAME = "order.json"
ANSWER_SECONDS = 60.0  # for the monitor to take the order
NOTICE_SECONDS = 25.0  # until the last volunteer has heard of it
SPARE_STEPS = 3


def main(argv: list[str]) -> int:
    """Order a roll-back and wait until the monitor has passed it on."""
    parser = argparse.ArgumentParser(prog="python -m training rollback", description=__doc__)
    parser.add_argument("run", metavar="RUN", help="the run file, or its address")
    parser.add_argument("step", type=int, metavar="STEP", help="of a published checkpoint")
    parser.add_argument("--folder", type=Path, help="the monitor's; default: its default folder")
    parser.add_argument("--live", type=Path, help="the live data; default: in the monitor's folder")
    options = parser.parse_args(argv)
    run = load(options.run)
    if run.get_recipe().sparse:
        rule = "must be one in which volunteers average: this one cannot be rolled back yet"
        raise InputError("recipe", run.recipe, rule)
    folder = options.folder or default_folder(run, "monitor")
    order_rollback(run, folder, options.live or folder / "live" / run.name, options.step)
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        order = atomic.read_json(folder / FILE_NAME)
        if "step" in order:
            print(f"the run continues as step {order['step']} from the weights of {options.step}")
            return 0
        time.sleep(0.5)
    print("the monitor does not respond: it will pass on the order when it starts")
    return 1


def order_rollback(run: RunFile, folder: Path, live: Path, step: int) -> None:
    """Write the order for the monitor.

    Raises:
        InputError: when there is no monitor, no place where volunteers find the checkpoint, or
            no such checkpoint here.
    """
    if not (folder / "identity.key").exists():
        raise InputError("folder", folder, "must be that of the run's monitor: name it by --folder")
    if not run.live:
        raise InputError("live", "", "must be in the run file: volunteers get the weights there")
    there = [entry.step for entry in LiveFolder(live).read_checkpoints() if _is_here(live, entry)]
    if step not in there:
        known = ", ".join(map(str, there)) or "none"
        raise InputError("step", step, f"must be a checkpoint in {live}: {known}")
    atomic.write_json(folder / FILE_NAME, {"checkpoint": step, "time": time.time()})


def _is_here(live: Path, entry: CheckpointEntry) -> bool:
    return entry.address is not None and (live / entry.address).is_file()


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
            f"the moderators chose the weights of step {written['checkpoint']}: "
            f"the run continues with them as step {written['step']}",
            flush=True,
        )
    return RollbackOrder.model_validate(written)


def _publish_again(live: LiveFolder, step: int, furthest_step: int) -> dict[str, Any]:
    (entry,) = [entry for entry in live.read_checkpoints() if entry.step == step]
    folder = (live.path / str(entry.address)).parent
    model = checkpoint.load(folder)
    packed = folder / checkpoint.DRAWING
    drawing = packed.read_bytes() if packed.exists() else None
    margin = math.ceil(NOTICE_SECONDS / _seconds_per_step(live)) + SPARE_STEPS
    new_step = furthest_step + margin
    time = timestamp(get_dht_time())
    weights = checkpoint.publish(live, model, new_step, entry.loss, time, drawing=drawing)
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
