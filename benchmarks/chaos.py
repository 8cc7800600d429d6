"""A rehearsal in which everything goes wrong that goes wrong among strangers, beside a calm one.

    python -m benchmarks.chaos [--exchange local] [--minutes 10] [--peers 4] [--folder OUT]
        [--against FOLDER] [--record]

Every half minute a volunteer is killed without a goodbye, and comes back; one volunteer lies about
its gradients and its work, with local steps another one turns its updates round; one peer poisons
the records; one shard of the data is broken; and the monitor and the authority are killed and
started again. A calm rehearsal of the same volunteers, up to the same number of sequences, tells
what the run would have come to.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import psutil

from benchmarks import seeing
from training.data import streaming
from training.model import checkpoint
from training.model.transformer import TextToImageTransformer
from training.pictures import sampling
from training.pictures.codes import CodeModel
from training.rehearsal.command import Rehearsal, RehearsalOptions, run_through
from training.run import atomic
from training.run.recipes import Recipe, find_recipe
from training.run.supervisor import Worker

RECORDED = Path(__file__).with_name("chaos.json")
RECIPES = {
    "averaging": Path(__file__).with_name("chaos.toml"),
    "local": Path(__file__).with_name("chaos-local.toml"),
}
# By exchange: who misbehaves, and as what.
ROLES = {
    "averaging": {"mallory": "liar", "trudy": "poisoner"},
    "local": {"mallory": "liar", "judas": "turncoat", "trudy": "poisoner"},
}
KILL_SECONDS = 30.0
ABSENCE_SECONDS = 5.0  # before somebody who was killed is started again
MONITOR_DIES, AUTHORITY_DIES = 0.4, 0.6  # of the time
BROKEN_SHARD = 1  # the doctor looks into the first one
SMOOTHED = 10  # steps whose mean loss is compared
PICTURES = 32  # of each caption, to count those that show it


class Compared(Rehearsal):
    """A rehearsal whose pictures `compare` draws and judges."""

    def _show_samples(self) -> None:
        pass


@dataclass
class Chaos(Compared):
    """The processes of such a rehearsal.

    Attributes:
        memory: bytes that the monitor's process held, every half minute since its last start.
    """

    kills: int = 0
    restarts: int = 0
    memory: list[int] = field(default_factory=list)
    _due: float = KILL_SECONDS
    _absent: tuple[str, float] | None = None
    _misbehaving: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.data = str(break_shard(find_recipe(self.options.recipe), self.folder / "shards"))
        self._down = {"monitor": MONITOR_DIES, "authority": AUTHORITY_DIES}

    @property
    def exchange_kind(self) -> str:
        """The exchange of this run, a key of `RECIPES`."""
        return "local" if self.exchange else "averaging"

    def _stage(self, seconds: float, share: float) -> None:
        if not self._misbehaving:
            self._misbehaving = True
            for name, role in ROLES[self.exchange_kind].items():
                print(f"-- {name}, a {role}, joins", flush=True)
                self._start(name, (sys.executable, "-m", "benchmarks.misbehaving", role))
        self._bring_back(seconds)
        if seconds > self._due:
            self._due += KILL_SECONDS
            self.memory.append(_memory_of(self.monitor))
            self._kill_next(seconds)
        for who in [who for who, when in self._down.items() if share > when]:
            del self._down[who]
            self._restart(who)

    def _kill_next(self, seconds: float) -> None:
        honest = self.planned[: self.options.peers]
        victim = honest[self.kills % len(honest)]
        if self._absent is None and victim in self.volunteers:
            print(f"-- {victim}'s machine crashes", flush=True)
            self.volunteers.pop(victim).kill()
            self.kills += 1
            self._absent = victim, seconds

    def _bring_back(self, seconds: float) -> None:
        if self._absent is not None and seconds - self._absent[1] > ABSENCE_SECONDS:
            name, self._absent = self._absent[0], None
            print(f"-- {name} comes back", flush=True)
            self._start(name)

    def _restart(self, who: str) -> None:
        worker = self.monitor if who == "monitor" else self.authority.worker
        print(f"-- the {who} crashes and restarts", flush=True)
        worker.kill()
        time.sleep(ABSENCE_SECONDS)
        worker.start()
        self.restarts += 1
        if who == "monitor":
            self.memory.clear()
            self._await_start(worker, "the monitor")


@dataclass
class Calm(Compared):
    """The same without any of it, up to so many sequences."""

    sequences: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.monitor.command += ["--sequences", str(self.sequences)]


def _memory_of(worker: Worker) -> int:
    """Bytes of main memory that a worker's process holds; 0 where it has ended."""
    with suppress(psutil.Error):
        return int(psutil.Process(worker.process.pid).memory_info().rss) if worker.process else 0
    return 0


def break_shard(recipe: Recipe, folder: Path) -> Path:
    """Copy the encoded shapes, a quarter of one shard overwritten with zeros."""
    source = streaming.prepare(recipe)
    shutil.copytree(source, folder)
    broken = sorted(folder.glob("*.parquet"))[BROKEN_SHARD]
    content = bytearray(broken.read_bytes())
    content[len(content) // 4 : len(content) // 2] = bytes(len(content) // 4)
    broken.write_bytes(bytes(content))
    return folder


def rehearse(
    options: RehearsalOptions, calm: Path | None = None, *, is_recorded: bool = False
) -> int:
    """Rehearse in chaos and calmly, and compare; 0 when both trained.

    Args:
        calm: the folder of a calm rehearsal of the same volunteers; None: it is done afterwards,
            until it has trained with as many sequences.
        is_recorded: the figures replace those of this exchange in `RECORDED`.
    """
    folder = options.folder or Path("rehearsals") / f"{datetime.now():%Y-%m-%d-%H%M%S}"
    options = replace(options, incidents=False)
    code, rehearsal = run_through(Chaos, replace(options, folder=folder / "chaos"))
    if code:
        return code
    if calm is None:
        calm = folder / "calm"
        print("\nnow a calm rehearsal with the same volunteers", flush=True)
        sequences = sum(line["samples"] for line in _read_lines(rehearsal.live.path))
        kind = partial(Calm, sequences=sequences)
        code = run_through(kind, replace(options, folder=calm))[0]
        if code:
            return code
    result = compare(calm, rehearsal)
    of_both = {rehearsal.exchange_kind: result}
    _write(folder / "chaos.json", of_both)
    if is_recorded:
        _write(RECORDED, (atomic.read_json(RECORDED) or {}) | of_both)
    for name, value in result.items():
        if not isinstance(value, list | dict):
            print(f"  {name.replace('_', ' '):<34} {value}")
    print(f"compared: {folder / 'chaos.json'}", flush=True)
    return 0


def _write(path: Path, figures: dict[str, Any]) -> None:
    """Write figures of exchanges, with a line for each, and for each point of a curve."""
    text = json.dumps(figures, indent=1)
    text = re.sub(r"\[\s+(\d+),\s+(\S+)\s+\]", r"[\1, \2]", text)
    atomic.write_bytes(path, f"{text}\n".encode())


def compare(calm: Path, chaos: Chaos) -> dict[str, Any]:
    """Outcome of the run in chaos, compared with the calm one."""
    calm_lines = _read_lines(calm / "live")
    lines = _read_lines(chaos.live.path)
    last = min(lines[-1]["step"], calm_lines[-1]["step"])
    losses = [_loss_at(each, last) for each in (calm_lines, lines)]
    totals = [sum(line["samples"] for line in each) for each in (calm_lines, lines)]
    by_sequences = [_loss_at(each, _step_of(each, min(totals))) for each in (calm_lines, lines)]
    made = {line["step"] for line in lines}
    board = {who.name: who for who in chaos.live.read_peers()}
    liars = {}
    for name, role in ROLES[chaos.exchange_kind].items():
        own = atomic.read_json(chaos.folder / "volunteers" / name / "status.json") or {}
        if role != "poisoner":
            liars[f"{role}_claimed"] = int(own.get("samples", 0))
            liars[f"{role}_credited"] = board[name].samples if name in board else 0
    recipe = find_recipe(chaos.options.recipe)
    return {
        "date": str(atomic.read_json(chaos.live.path / "run.json")["start"])[:10],
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[2], 1),
        "minutes": chaos.options.minutes,
        "volunteers": chaos.options.peers,
        "killed": chaos.kills,
        "restarted": chaos.restarts,
        "steps_calm": calm_lines[-1]["step"],
        "steps": lines[-1]["step"],
        "steps_lost": lines[-1]["step"] - len(made),
        "steps_without_samples": sum(line["samples"] == 0 for line in lines),
        "compared_at_step": last,
        "loss_calm": round(losses[0], 4),
        "loss": round(losses[1], 4),
        "loss_ratio": round(losses[1] / losses[0], 4),
        "sequences_calm": totals[0],
        "sequences": totals[1],
        "loss_by_sequences_calm": round(by_sequences[0], 4),
        "loss_by_sequences": round(by_sequences[1], 4),
        "pictures_right_calm": _share_right(calm / "live", recipe),
        "pictures_right": _share_right(chaos.live.path, recipe),
        **liars,
        "records_rejected": sum(line["rejected"] for line in lines),
        "monitor_bytes": chaos.memory,
        "curve": [[line["step"], line["loss"]] for line in lines],
        "curve_calm": [[line["step"], line["loss"]] for line in calm_lines],
    }


def _read_lines(live: Path) -> list[dict[str, Any]]:
    return atomic.AppendOnlyLines(live / "progress.jsonl").read()


def _loss_at(lines: list[dict[str, Any]], step: int) -> float:
    """The mean loss of the last steps up to one, where it was reported."""
    known = [line["loss"] for line in lines if line["step"] <= step and line["loss"] is not None]
    return statistics.fmean(known[-SMOOTHED:])


def _step_of(lines: list[dict[str, Any]], sequences: int) -> int:
    """The step at which so many sequences had been counted."""
    totals = accumulate(line["samples"] for line in lines)
    reached = (
        line["step"] for line, total in zip(lines, totals, strict=True) if total >= sequences
    )
    return int(next(reached))


def _share_right(live: Path, recipe: Recipe) -> float:
    """Fraction of the newest checkpoint's pictures that match their captions."""
    _, model = checkpoint.fetch(str(live))
    settings = replace(recipe.generation, images_per_prompt=PICTURES)
    prompts = settings.prompts
    assert isinstance(model, TextToImageTransformer)
    codes = CodeModel.load(recipe.data.codes or "shapes")
    rows = sampling.draw(model, codes, prompts, recipe, settings, 0)
    right = [
        seeing.shows(picture, prompt)
        for prompt, row in zip(prompts, rows, strict=True)
        for picture in row
    ]
    return round(sum(right) / len(right), 3)


def main() -> int:
    """Read the options, rehearse and compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("--exchange", choices=RECIPES, default="averaging", help="of volunteers")
    parser.add_argument("--minutes", type=float, default=10.0, help="of training")
    parser.add_argument("--peers", type=int, default=4, help="volunteers")
    parser.add_argument("--folder", type=Path, help="for results; default: a new one here")
    parser.add_argument("--against", type=Path, help="of the calm rehearsal, if it is done already")
    parser.add_argument("--record", action="store_true", help=f"in {RECORDED.name}, for the pages")
    options = parser.parse_args()
    recipe = str(RECIPES[options.exchange])
    chosen = RehearsalOptions(options.minutes, options.peers, recipe, options.folder)
    return rehearse(chosen, options.against, is_recorded=options.record)


if __name__ == "__main__":
    raise SystemExit(main())
