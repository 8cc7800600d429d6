"""`python -m training rollback RUN STEP`: go back to a published checkpoint.

For the machine of the monitor. The command writes the order into the monitor's folder; the
monitor publishes the checkpoint once more, under a step that nobody has reached yet, and tells the
run. Every volunteer takes its weights, with a new optimizer state, and the run goes on from there.
"""

import argparse
import time
from pathlib import Path

from calculator.errors import InputError
from training import atomic
from training.folders import default_folder
from training.live import CheckpointEntry, LiveFolder
from training.runfile import RunFile, load

FILE_NAME = "order.json"
ANSWER_SECONDS = 60.0  # for the monitor to take the order


def main(argv: list[str]) -> int:
    """Order a roll-back and wait until the monitor has passed it on."""
    parser = argparse.ArgumentParser(prog="python -m training rollback", description=__doc__)
    parser.add_argument("run", metavar="RUN", help="the run file, or its address")
    parser.add_argument("step", type=int, metavar="STEP", help="of a published checkpoint")
    parser.add_argument("--folder", type=Path, help="the monitor's; else the one it has by default")
    parser.add_argument("--live", type=Path, help="the live data; else in the monitor's folder")
    options = parser.parse_args(argv)
    run = load(options.run)
    folder = options.folder or default_folder(run, "monitor")
    order_rollback(run, folder, options.live or folder / "live" / run.name, options.step)
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        order = atomic.read_json(folder / FILE_NAME)
        if "step" in order:
            print(f"the run goes on as step {order['step']} from the weights of {options.step}")
            return 0
        time.sleep(0.5)
    print("the monitor does not answer: it will pass the order on when it is started")
    return 1


def order_rollback(run: RunFile, folder: Path, live: Path, step: int) -> None:
    """Write the order for the monitor.

    Raises:
        InputError: when there is no monitor, no place where volunteers find the checkpoint, or
            no such checkpoint here.
    """
    if not (folder / "identity.key").exists():
        raise InputError("folder", folder, "must be the folder of the run's monitor")
    if not run.live:
        raise InputError("live", "", "must be in the run file: volunteers get the weights there")
    there = [entry.step for entry in LiveFolder(live).read_checkpoints() if _is_here(live, entry)]
    if step not in there:
        known = ", ".join(map(str, there)) or "none"
        raise InputError("step", step, f"must be a checkpoint in {live}: {known}")
    atomic.write_json(folder / FILE_NAME, {"checkpoint": step, "time": time.time()})


def _is_here(live: Path, entry: CheckpointEntry) -> bool:
    return entry.address is not None and (live / entry.address).is_file()
