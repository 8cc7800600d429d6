from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given

from calculator.allocator import round_block
from calculator.autograd.sizes import number_of
from calculator.catalog import find_model
from calculator.peaks.events import in_order, recording_of
from calculator.peaks.prepare import prepare
from calculator.plan import Plan
from tests.calculator.plans import Case, cases, examples
from tests.calculator.whole import numbers_of, peaks_of, whole_tape

# bytes of a tensor that is born, or the number of the one that dies, counted by births
Change = tuple[int, int]
UNDER: tuple[dict[str, object], ...] = (
    {},
    {"precision": "half", "attention": "eager"},
    {"checkpointing": "full", "lora": 8, "lora_targets": "all-linear"},
    {"checkpointing": "full", "checkpoint_every": 2},
    {"update_in_backward": True},
    {"accumulation": 2, "checkpointing": "selective"},
)
ONE_KIND = ("gpt2-s", "bert-base", "meta-llama/Llama-3.2-1B", "facebook/bart-large")
IN_TURN = ("google/gemma-2-2b", "HuggingFaceTB/SmolLM3-3B")


def put_together(case: Case) -> list[Change]:
    """The changes of a step that is recorded in part."""
    prepared = prepare(case.architecture, case.resolved)
    recording = recording_of(prepared.step)
    sizes = recording.bytes(prepared.numbers)
    births: dict[int, int] = {}
    found = []
    for number, size in in_order(recording, prepared.left_out).events:
        if size:
            births[number] = len(births) + 1
        found.append((sizes[size], 0) if size else (0, births[-number]))
    return found


def recorded(case: Case) -> list[Change]:
    """The changes of a step with every layer on the tape."""
    tape = whole_tape(case)
    shapes, numbers = list(tape.ledger.sizes), numbers_of(case)
    births: dict[int, int] = {}
    found = []
    for at, (signed, birth) in enumerate(zip(tape.ledger.events, tape.ledger.births, strict=True)):
        if signed > 0:
            births[at] = len(births) + 1
            elements, dtype = shapes[signed - 1]
            found.append((number_of(elements, numbers) * dtype.width, 0))
        else:
            found.append((0, births[birth]))
    return found


def settled(changes: Sequence[Change]) -> list[list[Change]]:
    """The changes with those in a row that are deaths, whose order is nothing to an allocator."""
    rows = groupby(changes, key=lambda change: change[1] > 0)
    return [sorted(row) if are_deaths else list(row) for are_deaths, row in rows]


def highest(changes: Sequence[Change]) -> int:
    """Bytes of blocks at the peak."""
    sizes: list[int] = []
    total = most = 0
    for size, dead in changes:
        if not dead:
            sizes.append(round_block(size))
        total += -sizes[dead - 1] if dead else sizes[-1]
        most = max(most, total)
    return most


@pytest.mark.parametrize(
    ("name", "options"),  # every model under two of the plans, every plan for two of the models
    [
        (name, UNDER[(place + turn) % len(UNDER)])
        for place, name in enumerate((*ONE_KIND, *IN_TURN))
        for turn in (0, 3)
    ],
    ids=str,
)
def test_every_tensor_is_born_and_dies_where_a_tape_of_all_layers_has_it(
    name: str, options: dict[str, object]
) -> None:
    model = find_model(name)
    plan = Plan(batch_size=2, sequence_length=96, **options)  # type: ignore[arg-type]
    layers = 9 if name in ONE_KIND else 20
    decoder_layers = layers if model.decoder_layers else 0
    case = Case(replace(model, layers=layers, decoder_layers=decoder_layers), plan)
    assert settled(put_together(case)) == settled(recorded(case))


@examples(15)
@given(cases())
def test_what_lives_at_the_peak_is_what_a_tape_of_all_layers_has(case: Case) -> None:
    assert highest(put_together(case)) == max(peaks_of(whole_tape(case).ledger, case).values())
