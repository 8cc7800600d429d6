"""The home page's small calculator: a table of answers made when the site is built.

The page only looks answers up, so it needs no Python: for each model and micro-batch, the needs of
a few ways to train, and whether each fits each GPU. Every state links to the full calculator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from calculator.architecture import Architecture
from calculator.catalog import GPUS, Gpu, find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.planner.need import Verdict, judged_on, need_of
from calculator.presets import FIELD, Preset, plan_with
from calculator.report import Report
from calculator.units import format_bytes, format_count
from templates.pieces.comparisons import Recorded

MODELS = (
    "dalle-together",
    "gpt2-l",
    "gpt2-xl",
    "answerdotai/ModernBERT-base",
    "meta-llama/Llama-3.2-1B",
    "meta-llama/Llama-3.2-3B",
    "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen3-0.6B",
    "Qwen/Qwen3-1.7B",
    "Qwen/Qwen3-4B",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-14B",
    "mistralai/Mistral-7B-v0.1",
    "microsoft/Phi-4-mini-instruct",
)
CARDS = (
    "t4",
    "rtx-3060",
    "rtx-4060",
    "rtx-4060-ti-16",
    "rtx-4070",
    "rtx-3090",
    "rtx-4090",
    "rtx-5090",
    "a6000",
    "a100-40",
    "a100-80",
)
# Those of the table that is shown without JavaScript.
FEW_CARDS = ("t4", "rtx-3060", "rtx-4090", "a100-80")
BATCHES = (1, 2, 4, 8, 16)
# The longest bar that is drawn whole, in the GPU's memory: longer ones would hide the short ones.
LONGEST = 2.5
FIRST_MODEL, FIRST_CARD, FIRST_BATCH = "meta-llama/Llama-3.2-1B", "t4", 1


@dataclass(frozen=True, slots=True)
class Way:
    """One way to train: its options, its name, and the answer where it is the first to fit."""

    label: str
    options: dict[str, object]
    answer: str
    short: str


# From the least change to the largest; the calculator's presets are the last three.
WAYS = (
    Way("Adam", {}, "Fits as it is.", "fits"),
    Way("8-bit Adam", {"optimizer_bits": 8}, "Fits with 8-bit Adam.", "8-bit Adam"),
    Way(
        "8-bit Adam and checkpointing",
        {FIELD: Preset.FULL.value},
        "Fits with 8-bit Adam and checkpointing.",
        "8-bit Adam, checkpointing",
    ),
    Way(
        "The same with LoRA, weights in 16 bits",
        {FIELD: Preset.LORA.value},
        "Fits if you train LoRA adapters, not the model's own weights.",
        "LoRA",
    ),
    Way(
        "The same with QLoRA, weights in 4 bits",
        {FIELD: Preset.QLORA.value},
        "Fits if you train adapters on 4-bit weights (QLoRA).",
        "QLoRA",
    ),
)
UNSURE, NEVER = len(WAYS), len(WAYS) + 1
ANSWERS = (
    *(way.answer for way in WAYS),
    "May not fit in any of these ways.",
    "Does not fit in any of these ways.",
)
SHORT = (*(way.short for way in WAYS), "may not fit", "–")
VERDICTS = tuple(Verdict)


@dataclass(frozen=True)
class Cell:
    """One way's answers for a model and a micro-batch, by card."""

    way: Way
    reports: Mapping[str, Report]

    def parts(self, card: Gpu) -> tuple[int, ...]:
        """Bytes at the peak by part, and the overhead."""
        report = self.reports[card.name]
        return (*report.gpu.as_json().values(), report.overhead.total)

    def text(self, card: Gpu) -> str:
        """The typical need."""
        return format_bytes(sum(self.parts(card)))

    def verdict(self, card: Gpu) -> Verdict:
        """The verdict on one card."""
        return need_of(self.reports[card.name]).verdict(card.memory)


def judged_for(architecture: Architecture, batch: int, way: Way) -> dict[str, Report]:
    """By card the answer of the calculator's page in that state of its form.

    Cards of a generation run one step, which is counted once.

    Raises:
        InputError: where it does not count the model that way.
    """
    steps: dict[bool, Report] = {}
    for card in map(GPUS.__getitem__, CARDS):
        if card.predates_ampere not in steps:
            plan = plan_with(architecture, card, {"batch_size": batch, **way.options})
            steps[card.predates_ampere] = estimate(architecture, plan)
    return {
        name: judged_on(architecture, steps[GPUS[name].predates_ampere], GPUS[name])
        for name in CARDS
    }


@cache
def cells(model: str, batch: int) -> tuple[Cell | None, ...]:
    """A cell for each way; None where the calculator does not count the model that way."""
    return tuple(_cell(find_model(model), batch, way) for way in WAYS)


def _cell(architecture: Architecture, batch: int, way: Way) -> Cell | None:
    try:
        return Cell(way, judged_for(architecture, batch, way))
    except InputError:
        return None


def answer(model: str, batch: int, card: Gpu) -> int:
    """The place in `ANSWERS`: that of the first way that fits."""
    answers: list[str] = models()[model]["answers"]
    return int(answers[BATCHES.index(batch)][CARDS.index(card.name)])


def _answer(found: tuple[Cell | None, ...], card: Gpu) -> int:
    verdicts = [cell.verdict(card) if cell else Verdict.DOES_NOT_FIT for cell in found]
    if Verdict.FITS in verdicts:
        return verdicts.index(Verdict.FITS)
    return UNSURE if Verdict.MAY_NOT_FIT in verdicts else NEVER


def about(architecture: Architecture) -> str:
    """The model's size and the length of its sequences."""
    report = estimate(architecture)
    tokens = format_count(report.plan.sequence_length)
    return f"{_rounded(report.parameters)} parameters, sequences of {tokens} tokens"


def _rounded(count: int) -> str:
    """A count of parameters in millions or billions.

    >>> [_rounded(count) for count in (125_894_244, 1_235_814_400, 14_768_307_200)]
    ['126 million', '1.24 billion', '14.8 billion']
    """
    if count < 999_500_000:
        return f"{count / 1e6:.0f} million"
    return f"{count / 1e9:.2f} billion" if count < 9.995e9 else f"{count / 1e9:.1f} billion"


def query(architecture: Architecture) -> str:
    """The part of the calculator's address that all cells of a model share."""
    return urlencode({"model": architecture.name})


def table() -> dict[str, Any]:
    """Everything that the page's script looks up.

    A way has for each card the digit of its kind's needs and that of its place in `verdicts`, and
    then the needs of each kind: the bytes of each part and of the overhead, and the sum in words. A
    model's `answers` have a digit for each card too, its place in the table's.
    """
    cards = [GPUS[name] for name in CARDS]
    return {
        "cards": {card.name: [card.memory, format_bytes(card.memory)] for card in cards},
        "batches": BATCHES,
        "longest": LONGEST,
        "ways": [urlencode(way.options) for way in WAYS],
        "verdicts": VERDICTS,
        "answers": ANSWERS,
        "models": models(),
    }


@cache
def models() -> dict[str, dict[str, Any]]:
    """The table's entry of each model."""
    return dict(zip(MODELS, FIT.results(), strict=True))


def model_entry(name: str, batches: Sequence[int] = BATCHES) -> dict[str, Any]:
    """A model's entry with the answers for some micro-batches."""
    architecture, cards = find_model(name), [GPUS[card] for card in CARDS]
    # one way after the other: its micro-batches share recorded steps and the allocator's events
    by_way = [[_cell(architecture, batch, way) for batch in batches] for way in WAYS]
    found = [*zip(*by_way, strict=True)]
    return {
        "about": about(architecture),
        "query": query(architecture),
        "ways": [[_way(cell, cards) for cell in row] for row in found],
        "answers": ["".join(str(_answer(row, card)) for card in cards) for row in found],
    }


def _way(cell: Cell | None, cards: list[Gpu]) -> list[Any] | None:
    if cell is None:
        return None
    needs = [(*cell.parts(card), cell.text(card)) for card in cards]
    kinds = list(dict.fromkeys(needs))  # cards of one kind need the same
    of_cards = "".join(str(kinds.index(need)) for need in needs)
    digits = "".join(str(VERDICTS.index(cell.verdict(card))) for card in cards)
    return [of_cards, digits, *map(list, kinds)]


FIT = Recorded("fit", model_entry, lambda: MODELS)


@dataclass(frozen=True, slots=True)
class Row:
    """A way's row as the page is built with it."""

    label: str
    query: str
    text: str
    verdict: str
    parts: tuple[int, ...]


def first_rows() -> list[Row]:
    """The rows of the first state; a way that the model does not have is empty."""
    model, card = find_model(FIRST_MODEL), GPUS[FIRST_CARD]
    found = []
    for way, cell in zip(WAYS, cells(FIRST_MODEL, FIRST_BATCH), strict=True):
        choices = {"gpu": card.name, "batch_size": FIRST_BATCH, **way.options}
        assert cell is not None  # the first model has every way, see the test
        address = f"{query(model)}&{urlencode(choices)}"
        found.append(
            Row(way.label, address, cell.text(card), cell.verdict(card).value, cell.parts(card))
        )
    return found


def few() -> list[tuple[str, list[str]]]:
    """Models and their shortest answers on a few cards, single sequences, for the small table."""
    return [
        (
            find_model(model).title,
            [SHORT[answer(model, FIRST_BATCH, GPUS[card])] for card in FEW_CARDS],
        )
        for model in MODELS
    ]


def fit() -> dict[str, Any]:
    """The names that the page's template uses for the small calculator."""
    rows = first_rows()
    card = GPUS[FIRST_CARD]
    return {
        "models": [find_model(name) for name in MODELS],
        "cards": [GPUS[name] for name in CARDS],
        "batches": BATCHES,
        "batch": Plan.options()["batch_size"],
        "first": {
            "model": FIRST_MODEL,
            "title": find_model(FIRST_MODEL).title,
            "card": FIRST_CARD,
            "gpu": card.title,
            "batch": FIRST_BATCH,
        },
        "rows": rows,
        "largest": max(sum(row.parts) for row in rows),
        "memory": card.memory,
        "longest": LONGEST,
        "memory_text": format_bytes(card.memory),
        "about": about(find_model(FIRST_MODEL)),
        "answer": ANSWERS[answer(FIRST_MODEL, FIRST_BATCH, card)],
        "state": min((Verdict(row.verdict) for row in rows), key=VERDICTS.index).value,
        "few": few(),
        "few_cards": [GPUS[name].title for name in FEW_CARDS],
    }
