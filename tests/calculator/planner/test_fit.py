import json
from dataclasses import replace
from itertools import combinations, groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.__main__ import main
from calculator.autograd.ledger import ALL_REDUCE
from calculator.catalog import GPUS, MODELS, find_gpu, find_model
from calculator.errors import InputError
from calculator.parameters import parameter_tensors
from calculator.plan import Plan, Precision
from calculator.planner.change import Cost
from calculator.planner.changes import CHANGES, EVERY_FOURTH, EVERY_SECOND, SHARDS_IN_RAM
from calculator.planner.fit import (
    MOST_CHANGES,
    Proposal,
    _after,
    least_changes,
    proposals,
    proposals_in_steps,
)
from calculator.planner.need import Verdict
from calculator.report import Report
from calculator.resolution import resolve
from calculator.units import GiB
from tests.calculator.planner.test_largest import memories
from tests.calculator.plans import Case, case_of, cases, cases_on_several, examples, options_of

Captured = pytest.CaptureFixture[str]
small_memories = st.integers(2, 40).map(lambda quarters: quarters * GiB // 4)


def test_eight_bit_states_alone_make_gpt2_large_fit_a_t4() -> None:
    # checkpointing alone does not: the update is the peak, which it does not touch
    t4 = find_gpu("t4")
    found = proposals(MODELS["gpt2-l"], Plan().on(t4), t4.memory)
    singles = [one.changes[0].words for one in found if len(one.changes) == 1]
    assert singles[0] == "Keep the optimizer's states in 8 bits"
    assert not any("Compute" in words for words in singles)


@pytest.mark.parametrize(
    ("options", "is_trained"),
    [
        ("", True),
        ("lora=16", False),
        ("lora=16 quantization=nf4", False),
        ("lora=16 lora_bias=all", True),
    ],
)
def test_rounding_loses_updates_only_of_weights_that_are_trained_in_16_bits(
    options: str, is_trained: bool
) -> None:
    architecture = find_model("Qwen/Qwen2.5-0.5B")
    plan = Plan.parse(options_of(f"{options} sequence_length=1024"))
    (change,) = (
        one
        for one in CHANGES
        if (changed := one.apply(plan)) and changed.precision is Precision.HALF
    )
    assert ("lose small updates" in change.price) is is_trained
    assert ("frozen weights, which get no updates" in change.price) is not is_trained
    changed = resolve(architecture, replace(plan, precision=Precision.HALF))
    widths = {
        changed.weight_bytes if tensor.width is None else tensor.width
        for tensor in parameter_tensors(architecture, changed)
        if tensor.trained
    }
    assert (2 in widths) is is_trained  # validation/ledger measured peft: adapters keep 32 bits


@examples(8)
@given(cases(), memories, st.integers(1, 9))
def test_what_is_proposed_keeps_every_rule(case: Case, memory: int, enough: int) -> None:
    limits = (case.architecture, case.plan, memory)
    found = proposals(*limits)
    all_fit(case, memory, found)
    the_cheapest_stand_first(found)
    none_has_more_than_it_needs(found)
    no_more_layers_are_computed_again_than_must_be(case, memory, found)
    nothing_that_fits_is_left_out(case, memory, found, most=2)
    assert all(one.plan.all_gpus == 1 for one in found)
    assert Cost.LINKS not in {change.cost for one in found for change in one.changes}
    *_, first = proposals_in_steps(*limits, enough=enough)
    assert first[:enough] == found[:enough]


@examples(6)
@given(cases_on_several(), small_memories)
def test_what_is_proposed_for_several_gpus_fits_on_as_many(case: Case, memory: int) -> None:
    found = proposals(case.architecture, case.plan, memory)
    all_fit(case, memory, found)
    nothing_that_fits_is_left_out(case, memory, found, most=1)
    for proposal in found:
        report = Case(case.architecture, proposal.plan).report
        assert proposal.peak == report.gpu.total
        assert proposal.ram == report.ram.total
        assert proposal.plan.all_gpus == case.plan.all_gpus
        assert sequences_of(proposal.plan) == sequences_of(case.plan)
        assert "{" not in proposal.words


def all_fit(case: Case, memory: int, found: list[Proposal]) -> None:
    before = case.need.typical
    for proposal in found:
        need = Case(case.architecture, proposal.plan).need
        assert need.fits(memory)
        assert proposal.saved == before - need.typical


def nothing_that_fits_is_left_out(
    case: Case, memory: int, proposed: list[Proposal], most: int
) -> None:
    """Unless fewer changes are enough, or cheaper ones than one that is slow to estimate."""
    found = {frozenset(one.changes) for one in proposed}
    known = replace(case.plan, sequence_length=case.report.plan.sequence_length)
    for together in range(1, most + 1):
        for changes in combinations(CHANGES, together):
            changed = _after(known, changes)
            if changed is None or any(fewer < set(changes) for fewer in found):
                continue
            if not all(one.goes_with(other) for one, other in combinations(changes, 2)):
                continue
            (first, *_) = changes  # what is slow goes with nothing
            if first.is_slow and any(one.cost <= first.cost for one in proposed):
                continue
            changed = Case(case.architecture, changed)
            assert (frozenset(changes) in found) == is_advice(case, changed, memory)


def surely_fits(case: Case, memory: int) -> bool:
    try:
        return case.need.fits(memory)
    except InputError:
        return False


def is_advice(case: Case, changed: Case, memory: int) -> bool:
    """True if the step surely fits after a change that saves a hundredth of what it took."""
    before = case.need.typical
    return surely_fits(changed, memory) and 100 * (before - changed.need.typical) >= before


def the_cheapest_stand_first(found: list[Proposal]) -> None:
    """Of as many changes, those that take less time stand first."""

    def rank(one: Proposal) -> tuple[int, Cost]:
        return len(one.changes), one.cost.rank

    assert [*map(rank, found)] == sorted(map(rank, found))
    for (_, cost), alike in groupby(found, rank):
        times = [round(100 * one.time) for one in alike if one.time is not None]
        if cost is Cost.EFFICIENCY:  # what saves time is no cheaper than what takes none
            times = [max(0, time) for time in times]
        assert times == sorted(times)


def none_has_more_than_it_needs(found: list[Proposal]) -> None:
    sets = [set(one.changes) for one in found]
    for more in sets:
        assert not any(fewer < more for fewer in sets)


def no_more_layers_are_computed_again_than_must_be(
    case: Case, memory: int, proposed: list[Proposal]
) -> None:
    found = {one.changes: one for one in proposed}
    for changes, one in found.items():
        for place, change in enumerate(changes):
            enough = [
                (each, lesser)
                for each in change.lesser
                if (plan := each.apply(one.plan))
                if surely_fits(lesser := Case(case.architecture, plan), memory)
            ]
            least = [each for each, lesser in enough[-1:] if is_advice(case, lesser, memory)]
            before, behind = changes[:place], changes[place + 1 :]
            assert [each for each in change.lesser if (*before, each, *behind) in found] == least


def test_a_forward_pass_made_twice_takes_at_most_a_third_more_time() -> None:
    # a third of all products (Chen et al., 2016) of the layers, which have 358 of the 494 million
    # weights that multiply; the update is made once
    case = case_of("Qwen/Qwen2.5-0.5B", "batch_size=16 sequence_length=2048").on("a100-80")
    found = proposals(case.architecture, case.plan, case.plan.card.memory, most=1)
    plans = [(one.plan.checkpointing, one.plan.checkpoint_every) for one in found]
    one = found[plans.index(("full", 1))]
    assert 0.6 * 358 / 494 / 3 < one.time < 358 / 494 / 3 + 0.02
    assert one.price == f"+{one.time:.0%} time. Computes the forward pass twice."


def sequences_of(plan: Plan) -> int:
    return plan.batch_size * plan.accumulation * plan.gpus // plan.context_parallel


LLAMA, MIXTRAL = "meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1"
SHARDS = "data_parallel=fsdp precision=mixed"


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        # 16 bytes for each of 8.03 billion weights: on 8, 15 GiB
        (LLAMA, f"gpus=8 {SHARDS} sequence_length=16384", "context parallel"),
        # 46.7 billion weights, 45.1 of them of experts
        (MIXTRAL, "gpus=8 optimizer=sgd precision=half sequence_length=1024", "expert parallel"),
        (LLAMA, "gpus=4 precision=half sequence_length=1024", "tensor parallel"),
        ("openai-community/gpt2-large", "gpus=4 sequence_length=512", "ZeRO 1"),
    ],
)
def test_gpus_that_are_there_divide_what_is_too_large(model: str, options: str, words: str) -> None:
    case = case_of(model, options)
    memory = find_gpu("t4" if case.plan.precision == "amp" else "a100-40").memory
    assert case.need.verdict(memory) is Verdict.DOES_NOT_FIT
    every = proposals(case.architecture, case.plan, memory, 1)
    (found,) = [one for one in every if one.words.endswith(f"({words})")]
    assert found.plan.all_gpus == case.plan.gpus


def test_as_few_gpus_as_are_enough_divide_a_sequence() -> None:
    case = case_of(LLAMA, f"gpus=8 {SHARDS} sequence_length=8192")
    memory = case.but(context_parallel=2, accumulation=2).need.high
    plans = [one.plan for one in proposals(case.architecture, case.plan, memory, most=1)]
    divided = [(one.context_parallel, one.accumulation) for one in plans]
    assert [one for one in divided if one[0] > 1] == [(2, 2), (8, 8)]


def moved(report: Report) -> int:
    """Bytes between the GPUs: an all-reduce is a scatter of sums and a gathering (NCCL's rings)."""
    return sum(one.total * (2 if one.name == ALL_REDUCE else 1) for one in report.collectives)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("gpus=4", "gradient_as_bucket_view"),
        ("tensor_parallel=4 precision=half", "sequence parallel"),
        ("pipeline_parallel=2 accumulation=8 pipeline_schedule=gpipe", "in the pipeline (1F1B)"),
    ],
)
def test_what_costs_nothing_on_several_gpus_comes_first(options: str, words: str) -> None:
    case = case_of("meta-llama/Llama-3.2-1B", f"{options} sequence_length=1024")
    (change,) = [one for one in CHANGES if words in one.words]
    after = Case(case.architecture, change.apply(case.plan))
    found = proposals(case.architecture, case.plan, after.need.high, most=1)
    free = [one for one in found if one.cost is Cost.NOTHING]
    assert (change,) in [one.changes for one in free]
    assert found[: len(free)] == free
    assert moved(after.report) <= moved(case.report)


def test_a_step_that_lacks_little_gets_every_fourth_layer_computed_again() -> None:
    # layers 1, 5, 9 ... of 12 are computed again (transformers' every_n_layers=4)
    case = case_of("bert-base", "batch_size=24 sequence_length=512")
    whole = case.need.high
    fourth = Case(case.architecture, EVERY_FOURTH.apply(case.plan)).need.high
    assert fourth < whole
    every = proposals(case.architecture, case.plan, (fourth + whole) // 2)
    found = [one.changes for one in every]
    assert found.index((EVERY_FOURTH,)) < min(
        place for place, (change, *_) in enumerate(found) if change.lesser
    )
    assert all(EVERY_SECOND not in changes for changes in found)


@pytest.mark.parametrize(
    ("model", "gpu", "options"),
    [
        ("Qwen/Qwen3-8B", "rtx-4090", "batch_size=4"),
        ("mistralai/Mistral-7B-v0.1", "t4", "batch_size=8"),
        ("meta-llama/Llama-3.1-8B", "rtx-4060", "batch_size=4 sequence_length=8192"),
    ],
)
def test_where_three_changes_are_too_few_there_are_as_many_as_it_takes(
    model: str, gpu: str, options: str
) -> None:
    case = case_of(model, options).on(gpu)
    architecture, memory = case.architecture, case.plan.card.memory
    found = proposals(architecture, case.plan, memory)
    assert found
    for one in found:
        assert len(one.changes) > MOST_CHANGES
        assert Case(architecture, one.plan).need.fits(memory)
        known = case.plan.but(sequence_length=case.resolved.sequence_length)
        for change in one.changes:
            fewer = _after(known, [other for other in one.changes if other is not change])
            if fewer is not None and change.cost is not Cost.ADAPTERS:
                assert not Case(architecture, fewer).need.fits(memory), change.words


def test_shards_go_to_ram_where_the_gpus_are_too_few_for_them() -> None:
    # 8.03 billion weights of 16 bytes each, in shards on 4 GPUs of 24 GB: 29.9 GiB on each
    case = case_of(LLAMA, f"gpus=4 {SHARDS} sequence_length=1024").on("rtx-4090")
    first, *_ = proposals(case.architecture, case.plan, case.plan.card.memory)
    assert first.changes == (SHARDS_IN_RAM,)
    assert first.plan.cpu_offload
    assert first.ram == Case(case.architecture, first.plan).report.ram.total
    # masters, gradients and two states of 4 bytes each
    assert first.ram > 8.03e9 * 16 / 4
    assert "over the bus" in first.price


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("estimate gpt2-s --gpu a100-80", 0),
        ("estimate gpt2-l --gpu t4", 1),
        ("fit gpt2-l --gpu t4", 1),
        ("fit gpt2-l --gpu t4 --optimizer-bits 8", 0),
        ("fit gpt3-175b --gpu t4", 1),
        ("fit gpt2-l", 0),
        ("estimate gpt2-l", 0),
    ],
)
def test_the_exit_status_says_whether_it_fits(words: str, status: int, capsys: Captured) -> None:
    assert main(words.split()) == status
    assert capsys.readouterr().err == ""


def test_the_object_of_fit_holds_plans_that_the_command_line_takes(capsys: Captured) -> None:
    assert main(["fit", "gpt2-l", "--gpu", "t4", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["proposals"]
    for proposal in answer["proposals"]:
        need = case_of("gpt2-l", **proposal["plan"]).on("t4").need
        assert need.typical == proposal["typical"]


def test_the_least_change_for_each_gpu_is_its_first_proposal_without_adapters() -> None:
    case, gpus = case_of("gpt2-l"), [GPUS[name] for name in ("rtx-3070", "t4", "a100-40")]
    found = least_changes(case.architecture, case.plan, gpus)
    for gpu in gpus:
        here = case.on(gpu.name)
        assert (gpu.name not in found) is here.need.fits(gpu.memory)
        if gpu.name in found:
            every = proposals(here.architecture, here.plan, gpu.memory, 2)
            whole = (one for one in every if Cost.ADAPTERS not in {x.cost for x in one.changes})
            assert found[gpu.name] == next(whole, None)
