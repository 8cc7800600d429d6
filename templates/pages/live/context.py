"""Data for the live page before any script runs: the first run of docs/live."""

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from calculator.units import format_bytes
from templates.pieces.loss_curve import draw
from templates.pieces.recorded_run import Run, first_run

RECENT = 20  # steps that count as recent, as in assets/live/overview.js
MOST_ROWS = 100  # contributors and checkpoints in the page itself; the script shows all


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the leaderboard."""

    key: str
    label: str
    sortable: bool = True


COLUMNS = (
    Column("rank", "Rank", sortable=False),
    Column("name", "Name"),
    Column("samples", "Sequences"),
    Column("share", "Share", sortable=False),
    Column("steps", "Steps"),
    Column("seconds", "Time"),
    Column("traffic", "Exchanged"),
    Column("last_seen", "Last seen (UTC)"),
    Column("state", "State"),
)


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    return {"run": describe(first_run()), "columns": COLUMNS}


def describe(run: Run) -> dict[str, Any]:
    """All texts about a run, the same as the script writes."""
    finished = run.card.get("finished")
    return {
        "name": run.name,
        "title": run.card["title"],
        "note": run.note,
        "state": "finished" if finished else "running",
        "sentence": f"Finished on {moment(finished)}"
        if finished
        else "Running when this page was built",
        "left": _length(run),
        "curve": draw([(line["step"], line["loss"]) for line in run.steps]),
        "contributors": _contributors(run),
        "has_traffic": any(_traffic(peer) is not None for peer in run.peers),
        "checkpoints": [_checkpoint(entry) for entry in reversed(run.checkpoints[-MOST_ROWS:])],
        "pictures": _pictures(run),
        "pictures_when": _pictures_when(run),
        **_use(run),
        "about": _about(run),
        "join": run.card["join"],
        "join_heading": "Do the same yourself" if finished else "Join this run",
        **_figures(run),
    }


def _length(run: Run) -> str:
    """The time that a finished run took; the script forecasts the end of one in progress."""
    if not run.card.get("finished"):
        return ""
    start, end = (datetime.fromisoformat(run.card[name]) for name in ("start", "finished"))
    return f"It took {duration((end - start).total_seconds())}."


def _use(run: Run) -> dict[str, str]:
    """A command that draws with the newest checkpoint, if its file is kept with the run."""
    if any(entry["address"] for entry in run.checkpoints):
        words = "In a copy of our code, this checks the newest checkpoint and draws with it."
        folder = f"docs/live/{run.name}"
    else:
        words = "Your own rehearsal keeps its newest checkpoints; name its live folder."
        folder = "LIVE_FOLDER"
    prompts: list[str] = run.samples["prompts"]
    prompt = prompts[0] if prompts else "a red circle"
    return {
        "use_words": words,
        "use_command": f"python -m training generate {folder} {shlex.quote(prompt)}",
    }


def _figures(run: Run) -> dict[str, Any]:
    """The key figures, or dashes if the run has no steps."""
    total = run.card["schedule"]["total_steps"]
    label = "Volunteers at the end" if run.card.get("finished") else "Volunteers now"
    words = {"total_steps": f"{total:,}", "working_label": label, "samples": "0"}
    if not run.steps:
        dashes = ("loss", "loss_before", "others", "samples_per_second", "traffic", "traffic_step")
        empty = {"step": "0", "share": 0, "progress_words": "no steps done", "working": "0"}
        return words | empty | dict.fromkeys(dashes, "–")
    last, before = run.steps[-1], run.steps[max(0, len(run.steps) - 1 - RECENT)]
    moved = [line["bytes_sent"] + line["bytes_received"] for line in run.steps]
    share = min(1.0, last["step"] / total)
    return words | {
        "step": f"{last['step']:,}",
        "share": share,
        "progress_words": f"{100 * share:.0f} % of the steps are done",
        "loss": _decimal(last["loss"]),
        "loss_before": f"{_decimal(before['loss'])} at step {before['step']:,}",
        "working": f"{last['training'] + last['syncing']:,}",
        "others": f"{last['syncing']:,} of them syncing, {last['left']:,} left earlier",
        "samples_per_second": _speed(run.steps[-1 - RECENT :]),
        "samples": f"{sum(line['samples'] for line in run.steps):,}",
        "traffic": format_bytes(sum(moved)),
        "traffic_step": format_bytes(round(sum(moved[-RECENT:]) / len(moved[-RECENT:]))),
    }


def _speed(lines: list[dict[str, Any]]) -> str:
    """Sequences per second since the first line's time."""
    first, last = (datetime.fromisoformat(line["time"]) for line in (lines[0], lines[-1]))
    seconds = (last - first).total_seconds()
    samples = sum(line["samples"] for line in lines[1:])
    return f"{samples / seconds:.1f}" if seconds else "–"


def _contributors(run: Run) -> list[dict[str, object]]:
    """The table's rows, largest contribution first."""
    everything = sum(peer["samples"] for peer in run.peers) or 1
    ordered = sorted(run.peers, key=lambda peer: -peer["samples"])[:MOST_ROWS]
    finished = bool(run.card.get("finished"))
    return [
        {
            "id": peer["id"],
            "rank": rank,
            "name": peer["name"] or peer["id"],
            "samples": f"{peer['samples']:,}",
            "share": _percent(peer["samples"] / everything),
            "steps": f"{peer['steps']:,}",
            "time": duration(peer["seconds"]),
            "traffic": _exchanged(peer),
            "last_seen": moment(peer["last_seen"]),
            "state": _state(peer["state"], finished),
            "badge": "finished" if finished and peer["state"] != "left" else peer["state"],
        }
        for rank, peer in enumerate(ordered, 1)
    ]


def _traffic(peer: dict[str, Any]) -> int | None:
    """Bytes that a volunteer sent and received; None in runs that did not note them."""
    sent, received = peer.get("bytes_sent"), peer.get("bytes_received")
    return None if sent is None or received is None else int(sent + received)


def _exchanged(peer: dict[str, Any]) -> str:
    size = _traffic(peer)
    return "–" if size is None else format_bytes(size)


def _percent(share: float) -> str:
    return f"{100 * share:.{2 if share < 0.001 else 1}f} %"


def _state(state: str, finished: bool) -> str:
    if state == "left":
        return "left"
    return "to the end" if finished else state


def _checkpoint(entry: dict[str, Any]) -> dict[str, str]:
    return {
        "step": f"{entry['step']:,}",
        "loss": _decimal(entry["loss"]),
        "time": moment(entry["time"]),
        "sha256": entry["sha256"],
        "file": "kept" if entry["address"] else "not kept",
    }


def _pictures(run: Run) -> list[dict[str, object]]:
    """The newest pictures, one row per caption; addresses are relative to the live page."""
    if not run.samples["checkpoints"]:
        return []
    newest = run.samples["checkpoints"][-1]
    return [
        {
            "prompt": prompt,
            "images": [
                {
                    "address": f"{run.name}/{path}",
                    "words": f"{prompt}: drawing {number} of {len(paths)} "
                    f"at step {newest['step']:,}",
                }
                for number, path in enumerate(paths, 1)
            ],
        }
        for prompt, paths in zip(run.samples["prompts"], newest["images"], strict=False)
    ]


def _pictures_when(run: Run) -> str:
    drawn = run.samples["checkpoints"]
    if not drawn:
        return ""
    newest = drawn[-1]
    losses = {entry["step"]: entry["loss"] for entry in run.checkpoints}
    loss = losses.get(newest["step"])
    words = f"Step {newest['step']:,}" + ("" if loss is None else f", loss {loss:.3f}")
    return f"{words}, {moment(newest['time'])}. Checkpoint {len(drawn)} of {len(drawn)}."


def _about(run: Run) -> list[tuple[str, str]]:
    card, schedule = run.card, run.card["schedule"]
    rows = [
        ("Recipe", card["recipe"]),
        ("Parameters", f"{card['parameters']:,}"),
        _step_size(schedule),
        (
            "Schedule",
            f"{schedule['total_steps']:,} steps, {schedule['warmup_steps']:,} of warm-up",
        ),
        ("Peak learning rate", f"{schedule['learning_rate']:g}"),
        ("Started", moment(card["start"])),
    ]
    if card.get("finished"):
        rows.append(("Finished", moment(card["finished"])))
    return [*rows, ("Data", run.name)]


def _step_size(schedule: dict[str, float]) -> tuple[str, str]:
    """The row that says what ends a step: a number of sequences, or time."""
    if schedule.get("round_seconds"):
        return "Computing per step", f"{schedule['round_seconds']:g} s by each volunteer"
    return "Sequences per step", f"{schedule['target_batch_size']:,}"


def moment(time: str) -> str:
    """A time in ISO 8601, in words.

    >>> moment("2026-11-21T09:43:28.355Z")
    '21 November 2026, 09:43 UTC'
    """
    then = datetime.fromisoformat(time).astimezone(UTC)
    return f"{then.day} {then:%B %Y, %H:%M} UTC"


def duration(seconds: float) -> str:
    """A length of time in its two largest units.

    >>> duration(1399.5)
    '23 min 20 s'
    >>> duration(90000)
    '1 d 1 h'
    """
    whole = int(seconds + 0.5)
    days, hours, minutes = whole // 86_400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def _decimal(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
