"""The clock beside published seconds: fitted on some sources, tried on the one left out."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import exp, log
from statistics import mean, median, quantiles
from typing import Final

from calculator.architecture import Architecture
from calculator.cards import find_card
from calculator.clock import Efficiencies, seconds
from calculator.clock.links import MACHINE
from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.plan import Plan
from validation import fitcheck
from validation.claims.computing import FOUNDRY, MPT
from validation.published_seconds import Timed, published

CARDS: Final = {"h100_80gb": "h100", "a100_80gb": "a100-80", "a100_40gb": "a100-40"}
MANY: Final = ", 16 to 512 GPUs"
DIFFERENT: Final = 0.15  # plans that differ by more must be in the right order
NEAR: Final = 0.25
START: Final = Efficiencies(2e-12, 0.6, 0.8, 2.0, 5e-5)
ROUNDS: Final = 40


@cache
def timed() -> tuple[Timed, ...]:
    """All figures that the clock is fitted on: one GPU, or those of one machine."""
    return (*(row for row in _foundry() if MANY not in row.source), *_t4())


@cache
def tried() -> tuple[Timed, ...]:
    """All others: more GPUs, and other programs."""
    return (*(row for row in _foundry() if MANY in row.source), *published())


@cache
def _foundry() -> tuple[Timed, ...]:
    return tuple(_foundry_rows())


def _foundry_rows() -> Iterator[Timed]:
    with FOUNDRY.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        gpus, length = int(row["gpus"]), int(row["sequence_length"])
        if row["precision"] != "bf16":
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
            f"llm-foundry, {card.short}{'' if 'a100' not in card.name else card.name[-3:]}"
            + (MANY if gpus > MACHINE else ""),
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


def error(row: Timed, efficiencies: Efficiencies) -> float:
    """The clock's seconds over those measured, minus 1."""
    return seconds(row.work, row.card, efficiencies) / row.measured - 1


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
    physical = found.wide <= 1 and found.traffic >= 1
    errors = ([abs(log(1 + error(row, found))) for row in own] for own in by_source(rows).values())
    return mean(map(mean, errors)) if physical else 1e9


def summary() -> Iterator[str]:
    """The lines that `python -m validation seconds` prints."""
    rows = timed()
    all_fitted = fit(rows)
    yield f"{'':<44}{'rows':>6}{'median':>9}{'within':>9}{'pairs':>9}"
    yield "fitted on all, in %"
    for source, own in by_source(rows).items():
        yield _line(source, own, all_fitted)
    yield "fitted on the others"
    errors: list[float] = []
    for source, own, fitted in left_out():
        yield _line(source, own, fitted)
        errors += [error(row, fitted) for row in own]
    yield f"{'  all left out':<44}{len(errors):>6}" + _shares(errors)
    yield "never fitted on: as counted"
    others = by_source(row for row in tried() if not row.differs)
    for source, own in others.items():
        yield _line(source, own, all_fitted)
        errors += [error(row, all_fitted) for row in own]
    yield f"{'  all left out or never fitted':<44}{len(errors):>6}" + _shares(errors)
    yield "apart, with the reason"
    for source, own in by_source(row for row in tried() if row.differs).items():
        yield f"{_line(source, own, all_fitted)}  {own[0].differs}"
    low, high = bounds(errors)
    yield f"nine of ten take {low:.2f} to {high:.2f} of the clock's seconds"
    yield f"constants fitted on all: {all_fitted}"


def by_source(rows: Iterable[Timed]) -> dict[str, list[Timed]]:
    """Rows by their sources, in the rows' order."""
    found: dict[str, list[Timed]] = {}
    for row in rows:
        found.setdefault(row.source, []).append(row)
    return found


def left_out() -> Iterator[tuple[str, list[Timed], Efficiencies]]:
    """Each source, its steps, and the constants fitted on all others."""
    rows = timed()
    for source, own in by_source(rows).items():
        yield source, own, fit([row for row in rows if row.source != source])


def bounds(errors: Sequence[float]) -> tuple[float, float]:
    """Measured over clocked seconds of the middle nine tenths of steps, from the clock's errors."""
    low, *_, high = quantiles((1 / (1 + error) for error in errors), n=20)
    return low, high


def _line(source: str, rows: Sequence[Timed], fitted: Efficiencies) -> str:
    errors = [error(row, fitted) for row in rows]
    return f"  {source:<42}{len(rows):>6}{_shares(errors)}{100 * in_order(rows, fitted):>9.1f}"


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
    return mean(pairs) if pairs else 1.0
