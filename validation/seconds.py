"""The clock beside published seconds: fitted on some sources, tried on the one left out."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from math import exp, log
from statistics import mean, median, quantiles
from typing import Final

from calculator.architecture import Architecture
from calculator.cards import Card, find_card
from calculator.clock import Efficiencies, Work, seconds
from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.plan import Plan
from validation import fitcheck
from validation.claims.computing import FOUNDRY, MPT

CARDS: Final = {"h100_80gb": "h100", "a100_80gb": "a100-80", "a100_40gb": "a100-40"}
MACHINE: Final = 8  # GPUs in one machine
DIFFERENT: Final = 0.15  # plans that differ by more must be in the right order
NEAR: Final = 0.25
START: Final = Efficiencies(2e-12, 0.6, 0.8, 2.0, 5e-5)
ROUNDS: Final = 40


@dataclass(frozen=True, slots=True)
class Timed:
    """A published step: where from, on which card, its work, and the seconds measured."""

    source: str
    words: str
    card: Card
    work: Work
    measured: float

    def error(self, efficiencies: Efficiencies) -> float:
        """The clock's seconds over those measured, minus 1."""
        return seconds(self.work, self.card, efficiencies) / self.measured - 1


@cache
def timed() -> tuple[Timed, ...]:
    """All figures: one GPU, or those of one machine."""
    return (*_foundry(), *_t4())


def _foundry() -> Iterator[Timed]:
    with FOUNDRY.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        gpus, length = int(row["gpus"]), int(row["sequence_length"])
        if gpus > MACHINE or row["precision"] != "bf16":
            continue
        accumulation = int(row["accumulation"])
        tokens = int(row["micro_batch"]) * accumulation * length * gpus
        options = {
            "batch_size": row["micro_batch"],
            "accumulation": row["accumulation"],
            "sequence_length": row["sequence_length"],
            "precision": "mixed",
            "attention": "flash",
            "checkpointing": row["checkpointing"],
            "gpus": row["gpus"],
            "data_parallel": "fsdp",
        }
        card = find_card(CARDS[row["gpu"]])
        yield Timed(
            f"llm-foundry, {card.short}{'' if 'a100' not in card.name else card.name[-3:]}",
            f"{row['model']}, {length:,} tokens",
            card,
            estimate(_mpt(row["model"], length), Plan.parse(options)).work,
            tokens / int(row["tokens_per_second"]),
        )


def _mpt(name: str, length: int) -> Architecture:
    """A GPT-2 of an MPT's size: llm-foundry's class runs the same products with flash attention."""
    layers, width = MPT[name]
    dropouts = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    return from_config(
        {
            "model_type": "gpt2",
            "n_embd": width,
            "n_layer": layers,
            "n_head": width // (64 if width <= 1024 else 128),
            "n_positions": length,
            "vocab_size": 50_368,
            "activation_function": "gelu",
            **dropouts,
        },
        name,
    )


def _t4() -> Iterator[Timed]:
    lines = fitcheck.PATH.read_text("utf-8").splitlines()
    for row, line in zip(fitcheck.source().rows, lines, strict=True):
        with row.shape as shape:
            work = estimate(shape, row.plan).work
        # its packed layers compute in fp16, though all else is in 32 bits
        work = replace(work, narrow=work.narrow + work.packed_wide, packed_wide=0)
        measured = json.loads(line)["step_seconds"]
        yield Timed("fitcheck, T4", row.words, find_card("t4"), work, measured)


def fit(rows: Sequence[Timed]) -> Efficiencies:
    """The constants with the least mean of errors' logarithms."""
    found, step = START, log(1.5)
    for _ in range(ROUNDS):
        better = _around(found, rows, step)
        if better is found:
            step /= 2
        found = better
    return found


def _around(found: Efficiencies, rows: Sequence[Timed], step: float) -> Efficiencies:
    """The best of the constants with each of them a step lower or higher, one after the other."""
    least = _loss(found, rows)
    for name in Efficiencies.__slots__:
        for factor in (exp(step), exp(-step)):
            tried = replace(found, **{name: getattr(found, name) * factor})
            if (loss := _loss(tried, rows)) < least:
                found, least = tried, loss
    return found


def _loss(found: Efficiencies, rows: Sequence[Timed]) -> float:
    """The mean over sources of the mean error, so that none weighs more for its many rows."""
    by_source: dict[str, list[float]] = {}
    for row in rows:
        by_source.setdefault(row.source, []).append(abs(log(1 + row.error(found))))
    physical = found.wide <= 1 and found.traffic >= 1
    return mean(map(mean, by_source.values())) if physical else 1e9


def summary() -> Iterator[str]:
    """The lines that `python -m validation seconds` prints."""
    rows = timed()
    sources = sorted({row.source for row in rows})
    all_fitted = fit(rows)
    yield f"{'':<34}{'rows':>6}{'median':>9}{'within':>9}{'pairs':>9}"
    yield "fitted on all, in %"
    for source in sources:
        yield _line(source, [row for row in rows if row.source == source], all_fitted)
    yield "fitted on the others"
    tried: list[float] = []
    for source, own, fitted in left_out():
        yield _line(source, own, fitted)
        tried += [row.error(fitted) for row in own]
    yield f"{'  all left out':<34}{len(tried):>6}" + _shares(tried)
    low, high = bounds(tried)
    yield f"nine of ten take {low:.2f} to {high:.2f} of the clock's seconds"
    yield f"constants fitted on all: {all_fitted}"


def left_out() -> Iterator[tuple[str, list[Timed], Efficiencies]]:
    """Each source, its steps, and the constants fitted on all others."""
    rows = timed()
    for source in sorted({row.source for row in rows}):
        own = [row for row in rows if row.source == source]
        yield source, own, fit([row for row in rows if row.source != source])


def bounds(errors: Sequence[float]) -> tuple[float, float]:
    """Measured over clocked seconds of the middle nine tenths of steps, from the clock's errors."""
    low, *_, high = quantiles((1 / (1 + error) for error in errors), n=20)
    return low, high


def _line(source: str, rows: Sequence[Timed], fitted: Efficiencies) -> str:
    errors = [row.error(fitted) for row in rows]
    return f"  {source:<32}{len(rows):>6}{_shares(errors)}{100 * in_order(rows, fitted):>9.1f}"


def _shares(errors: Sequence[float]) -> str:
    near = sum(abs(error) <= NEAR for error in errors) / len(errors)
    return f"{100 * median(map(abs, errors)):>9.1f}{100 * near:>9.1f}"


def in_order(rows: Sequence[Timed], fitted: Efficiencies) -> float:
    """Of pairs of steps that differ enough, the share that the clock has in the right order."""
    clocked = [(row.measured, seconds(row.work, row.card, fitted)) for row in rows]
    pairs = [
        (one[0] < other[0]) == (one[1] < other[1])
        for one, other in combinations(clocked, 2)
        if abs(log(one[0] / other[0])) > log(1 + DIFFERENT)
    ]
    return mean(pairs)
