import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.autograd.mode import Mode, check_carried_out
from calculator.catalog import MODELS, find_model, groups
from calculator.estimate import (
    OF_ACTIVATIONS,
    Totals,
    estimate,
    least,
    static_of,
    totals,
    totals_within,
)
from calculator.models.registry import type_of
from calculator.parameters import buffer_bytes, parameter_tensors
from calculator.peaks.trace import _known, record
from calculator.plan import Checkpointing, Plan, Precision
from calculator.report import Phase, Report
from calculator.states import statics
from tests.calculator.answers import refused
from tests.calculator.plans import Case, attention_kernels, case_of, cases, examples

PARTS = {"weights", "gradients", "optimizer", "activations", "temporaries"}


@given(cases())
@examples(10)
def test_a_report_keeps_every_rule(case: Case) -> None:
    report = case.report
    the_peak_is_the_highest_phase_and_no_part_is_negative(report)
    in_the_json_object_sizes_are_whole_and_parts_sum_exactly(report.as_json())
    totals_are_the_reports_and_none_where_the_least_does_not_fit(case, report)


def the_peak_is_the_highest_phase_and_no_part_is_negative(report: Report) -> None:
    assert list(report.phases) == list(Phase)
    assert report.gpu.total == max(memory.total for memory in report.phases.values())
    assert report.phases[report.peak_phase] == report.gpu
    for memory in (*report.phases.values(), report.ram):
        assert min(dataclasses.astuple(memory)) >= 0


def in_the_json_object_sizes_are_whole_and_parts_sum_exactly(value: dict[str, Any]) -> None:
    gpu = value["gpu"]
    assert sum(gpu["parts"].values()) == gpu["peak"]
    assert sum(value["ram"]["parts"].values()) == value["ram"]["peak"]
    for phase in value["phases"]:
        assert sum(phase["parts"].values()) == phase["gpu"]
        assert set(phase["parts"]) == PARTS
    assert gpu["peak"] < gpu["allocated"] <= gpu["reserved"] < gpu["used"] <= gpu["high"]
    assert gpu["peak"] < gpu["low"] < gpu["high"]
    assert gpu["overhead"] == gpu["used"] - gpu["peak"]
    numbers = [value["parameters"], gpu["peak"], gpu["overhead"]]
    numbers += [*value["transfer"].values(), *gpu["parts"].values()]
    assert all(type(number) is int for number in numbers)


def totals_are_the_reports_and_none_where_the_least_does_not_fit(
    case: Case, report: Report
) -> None:
    expected = Totals(report.gpu.total, report.ram.total)
    bytes_needed = least(case.architecture, case.plan)
    assert bytes_needed <= expected.gpu
    assert totals(case.architecture, case.plan) == expected
    assert totals_within(case.architecture, case.plan, expected.gpu.__ge__) == expected
    assert totals_within(case.architecture, case.plan, (bytes_needed - 1).__ge__) is None


ONE_OF_EACH_TYPE = {model.family: model for members in groups().values() for model in members}
UNDER: tuple[dict[str, object], ...] = (
    {},
    {"precision": "half", "batch_size": 2},
    {"precision": "fp32"},
)


def test_no_step_is_given_up_that_fits() -> None:
    for place, model in enumerate(ONE_OF_EACH_TYPE.values()):
        recomputed = "none" if type_of(model).plain_layers else "full"
        plan = Plan.parse({**UNDER[place % len(UNDER)], "checkpointing": recomputed})
        found = totals(model, plan)
        assert totals_within(model, plan, found.gpu.__ge__) == found, model.name


def test_logits_that_do_not_fit_are_seen_without_recording_the_step() -> None:
    # of 131,072 tokens and a vocabulary of 128,256 they take 62.6 GiB in 32 bits, and as much again
    model, plan = find_model("meta-llama/Llama-3.2-1B"), Plan(sequence_length=131_072, dropout=0.0)
    before, logits = record.cache_info().misses, 131_072 * 128_256 * 4
    assert totals_within(model, plan, (2 * logits).__gt__) is None
    assert record.cache_info().misses == before


MORE = st.sampled_from([1, 2, 63, 500])


@given(cases(), MORE)
@examples(8)
def test_more_or_longer_sequences_never_need_less(case: Case, more: int) -> None:
    report = case.report
    larger = case.but(batch_size=case.plan.batch_size + more).report
    assert larger.gpu.total >= report.gpu.total
    assert larger.ram.total == report.ram.total
    if case.architecture.family == "dalle":
        return
    longer = case.but(sequence_length=case.plan.sequence_length + more)
    assert longer.report.gpu.total >= report.gpu.total


@given(cases(sharing_groups=None), st.integers(1, 60))
@examples(6)
def test_more_layers_never_need_less(case: Case, more: int) -> None:
    model = case.architecture
    decoder = model.decoder_layers and model.decoder_layers + more
    deeper = replace(model, layers=model.layers + more, decoder_layers=decoder)
    assert Case(deeper, case.plan).report.gpu.total >= case.report.gpu.total


def kept(case: Case) -> int:
    """Activations when the loss is made, in fp32, where autocast makes no copies."""
    return case.report.phases[Phase.LOSS].activations


@given(cases(precision="fp32", checkpointing="none", reversible=False))
@examples(6)
def test_checkpointing_never_keeps_more(case: Case) -> None:
    everything = kept(case)
    assert kept(case.but(checkpointing="selective")) <= everything
    if case.architecture.family == "t5":
        return  # its position biases are kept once more, for the layers computed again
    assert kept(case.but(checkpointing="full")) <= everything


@given(cases(precision="fp32", sharing_groups=None, checkpointing="none"))
@examples(6)
def test_sharing_never_changes_what_is_kept(case: Case) -> None:
    assert kept(case.but(sharing_groups=1)) == kept(case.but(sharing_groups=2)) == kept(case)


@given(st.lists(cases(), min_size=2, max_size=4))
@examples(5)
def test_an_answer_does_not_depend_on_what_was_asked_before(asked: list[Case]) -> None:
    forwards = [case.report for case in asked]
    for cache in (record, _known):
        cache.cache_clear()
    backwards = [case.report for case in reversed(asked)]
    assert forwards == backwards[::-1]


def test_what_comes_on_top_is_never_mixed_in() -> None:
    case = case_of("gpt2-s")
    assert case.report.overhead.total > 0
    assert case.on("h100").report.gpu == case.report.gpu


def test_packed_weights_without_experts_say_what_packed_experts_would_take() -> None:
    # Mixtral's paper: 32 layers, 8 experts of 3 matrices, 4,096 x 14,336; qlora's section 3: 0.5
    # bytes an element and 4 for a block of 64
    elements = 32 * 8 * 3 * 4096 * 14336
    whole, packed = elements * 2 / 2**30, elements * (0.5 + 4 / 64) / 2**30
    case = case_of("mistralai/Mixtral-8x7B-v0.1", "lora=8 quantization=nf4 precision=half")
    (note,) = (note for note in case.report.notes if "transformers 4" in note)
    assert f"{whole:.1f} GiB" in note
    assert f"{packed:.1f} GiB" in note


@pytest.mark.parametrize("name", ["gpt2-s", "gpt-j-6b", "dalle-12b"])
@pytest.mark.parametrize("precision", [Precision.AMP, Precision.HALF])
def test_a_note_says_that_checkpointing_changes_nothing_where_that_is_so(
    name: str, precision: Precision
) -> None:
    # real GPT-2 with reversible layers has the same bytes in each phase with full checkpointing;
    # with selective checkpointing its backward pass needs 2 % less (gpt2-m, amp) to 2 % more (half)
    model = replace(MODELS[name], layers=3)
    for attention in attention_kernels(model, precision):
        plan = Plan(precision=precision, attention=attention, reversible=True)
        plain = estimate(model, plan)
        for checkpointing in (Checkpointing.FULL, Checkpointing.SELECTIVE):
            report = estimate(model, replace(plan, checkpointing=checkpointing))
            said = any("checkpointing changes nothing" in note for note in report.notes)
            acts = any("checkpointing acts only" in note for note in report.notes)
            assert (said, acts) == ((checkpointing is Checkpointing.FULL), not said)
            assert report.phases == plain.phases or acts


def test_a_sequence_is_as_long_as_many_train_with_or_the_models_longest() -> None:
    # facebook/opt-125m and gpt2: learned positions
    lengths = {"Qwen/Qwen3-0.6B": 2048, "meta-llama/Llama-3.1-8B": 2048, "gpt2-s": 1024}
    lengths |= {"facebook/opt-125m": 2048, "google-bert/bert-base-uncased": 512}
    for name, length in lengths.items():
        assert case_of(name).resolved.sequence_length == length


@given(cases(), cases())
@examples(15)
def test_what_lives_through_a_step_depends_on_no_other_options(case: Case, other: Case) -> None:
    drawn, resolved = other.resolved, case.resolved
    free = {name: getattr(drawn, name) for name in OF_ACTIVATIONS}
    if (drawn.batch_size == 1) is not (resolved.batch_size == 1):
        del free["batch_size"]  # a single sequence is another case
    changed = replace(resolved, **free)
    tensors = parameter_tensors(case.architecture, changed)
    fresh = statics(tensors, buffer_bytes(case.architecture, changed), changed)
    assert static_of(case.architecture, resolved)[0] == fresh


@pytest.mark.parametrize("option", ["chunked_loss", "activation_offload"])
def test_a_step_that_leaves_a_setting_out_is_not_counted_as_one_without(option: str) -> None:
    name = "moves_inputs" if option == "activation_offload" else option
    mode = Mode().but(**{name: True})
    check_carried_out(mode, {name})
    with refused(option, "carries it out"):
        check_carried_out(mode, {"context"})


def test_a_chunked_loss_needs_hidden_states_as_the_output_layer_has_them() -> None:
    # PyTorch: "Expected out tensor to have dtype torch.float32 but got torch.bfloat16 instead"
    case = case_of("nvidia/Nemotron-Mini-4B-Instruct", "chunked_loss=torch sequence_length=64")
    assert case.but(precision=Precision.HALF).report.gpu.total
    with refused("chunked_loss = 'torch': needs hidden states"):
        assert case.but(precision=Precision.AMP).report
