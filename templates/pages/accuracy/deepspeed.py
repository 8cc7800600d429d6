"""DeepSpeed's ZeRO, as measured, beside the paper's equations and our plans."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calculator.catalog import SOURCES
from validation.deepspeed_zero import (
    PERSISTENT,
    PLANS,
    SMALL,
    VERSION,
    Run,
    counted,
    held,
    published,
    read_runs,
)

TITLES = {"gpt2-s": "GPT-2", SMALL: "Small Llama"}


@dataclass(frozen=True, slots=True)
class Rank:
    """Bytes per weight on the fullest of a run's ranks, as HTML."""

    run: Run
    measured: str
    paper: str
    ours: str

    @property
    def cells(self) -> list[object]:
        """A table row."""
        name, value, other = PLANS[self.run.stage].split(maxsplit=2)
        plan = f"<code>{name} {value}</code><br><code>{other}</code>"
        model = f"{TITLES[self.run.model]}, {self.run.gpus}&nbsp;GPUs"
        heading = f"Stage {self.run.stage} <small>{model}</small>"
        return [heading, self.measured, self.paper, self.ours, plan]


def ranks() -> list[Rank]:
    """The runs with no tensors kept whole on purpose, stage by stage."""
    found = [(run, row) for run, row in read_runs() if not run.persistent]
    return [
        Rank(
            run,
            in_sum(per_weight(row, held(row))),
            in_sum(published(run)),
            in_sum(per_weight(row, counted(run))),
        )
        for run, row in sorted(found, key=lambda item: item[0].stage)
    ]


def per_weight(row: dict[str, Any], sizes: Sequence[int]) -> list[float]:
    """Sizes in bytes for each of the model's weights."""
    return [size / row["ranks"][0]["parameters"] for size in sizes]


def in_sum(parts: Sequence[float]) -> str:
    """The sum of three parts above them, each rounded alone."""
    return f"{sum(parts):.2f} <small>{' + '.join(f'{part:.2f}' for part in parts)}</small>"


def kept_whole() -> str:
    """Bytes per weight of the small model that stage 3 keeps whole under DeepSpeed's default."""
    rows = {run: row for run, row in read_runs() if run.model == SMALL}
    (default,) = (run for run in rows if run.persistent)
    plain = rows[Run(SMALL, default.gpus, 3)]
    (more, *_), (less, *_) = held(rows[default]), held(plain)
    return f"{(more - less) / plain['ranks'][0]['parameters']:.2f}"


def deepspeed() -> dict[str, object]:
    """Figures and names for the section on DeepSpeed."""
    return {
        "version": VERSION,
        "paper": SOURCES["zero"],
        "ranks": ranks(),
        "persistent": f"{PERSISTENT:,}",
        "kept_whole": kept_whole(),
    }
