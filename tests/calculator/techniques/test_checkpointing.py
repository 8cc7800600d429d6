"""Checkpoints of every n-th layer; measured rows hold whole steps."""

from dataclasses import replace

import pytest

from calculator.architecture import Architecture
from calculator.catalog import find_model
from calculator.curve import curve
from calculator.estimate import estimate
from calculator.peaks import prepare
from calculator.plan import Checkpointing, Plan, Precision
from calculator.report import Phase
from calculator.resolution import resolve
from calculator.techniques.checkpointing import keeping_of
from tests.calculator.plans import Case
from tests.calculator.whole import peaks_of, whole_tape

PLAN = Plan(
    batch_size=2,
    sequence_length=96,
    precision=Precision.HALF,
    checkpointing=Checkpointing.FULL,
    checkpoint_every=2,
)


def kept(architecture: Architecture, plan: Plan) -> int:
    """Bytes of activations that wait for the backward pass."""
    return estimate(architecture, plan).phases[Phase.LOSS].activations


@pytest.mark.parametrize(("layers", "every", "kept_layers"), [(6, 2, 3), (7, 3, 4), (4, 9, 3)])
def test_all_but_every_nth_layer_keep_their_activations(
    layers: int, every: int, kept_layers: int
) -> None:
    model = replace(find_model("gpt2-s"), layers=layers)
    one_more = replace(model, layers=layers + 1)
    whole, none = (replace(PLAN, checkpointing=each) for each in ("full", "none"))
    whole = replace(whole, checkpoint_every=1)
    # what one more layer keeps, computed again or not
    less, more = (kept(one_more, plan) - kept(model, plan) for plan in (whole, none))
    some = kept(model, replace(PLAN, checkpoint_every=every))
    # the last layer's output is its own input for the norm after it, whoever keeps it
    assert some - kept(model, whole) == kept_layers * (more - less)


def test_the_layers_of_all_stacks_are_numbered_in_one_row() -> None:
    # transformers 5.23, _set_gradient_checkpointing: layer_index goes on from encoder to decoder
    assert keeping_of(3, every=2, before=0) == (False, True, False)
    assert keeping_of(3, every=2, before=3) == (True, False, True)
    assert not any(keeping_of(5, every=1, before=2))


@pytest.mark.parametrize("model", ["gpt2-s", "t5-small", "google/gemma-3-270m"])
@pytest.mark.parametrize("every", [2, 3, 4, 5, 7, 11])
def test_a_tape_with_layers_left_out_has_the_peaks_of_the_whole_one(model: str, every: int) -> None:
    architecture = find_model(model)
    decoder = 17 if architecture.decoder_layers else 0
    architecture = replace(architecture, layers=30, decoder_layers=decoder)
    case = Case(architecture, replace(PLAN, precision=Precision.AMP, checkpoint_every=every))
    static = case.report.phases[Phase.UPDATE]
    always = static.weights + static.optimizer
    found = {phase: memory.total - always for phase, memory in case.report.phases.items()}
    del found[Phase.UPDATE]
    tape = whole_tape(case)
    assert found == peaks_of(tape.ledger, case)


def test_units_of_layers_are_left_out() -> None:
    model = find_model("meta-llama/Llama-3.1-8B")  # 32 layers
    prepared = prepare.prepare(model, resolve(model, PLAN))
    assert prepared.left_out == (12,)  # of 16 pairs
    points = curve(model, PLAN)
    assert points.peak.memory.total == estimate(model, PLAN).gpu.total


def test_without_full_checkpointing_it_means_nothing() -> None:
    model = find_model("gpt2-s")
    for each in (Checkpointing.NONE, Checkpointing.SELECTIVE):
        plan = replace(PLAN, checkpointing=each)
        assert resolve(model, plan) == resolve(model, replace(plan, checkpoint_every=1))
