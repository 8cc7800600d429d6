from hypothesis import assume, given
from hypothesis import strategies as st

from calculator.catalog import GPUS, MODELS, Gpu, find_gpu, find_model
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.planner.advice import Advice, Adviser, advise_in_steps
from calculator.planner.fit import proposals
from calculator.planner.largest import has_one_length, largest_batch, longest_sequence
from calculator.units import format_bytes
from tests.calculator.plans import Case, can_run, cases, examples


def advice_for(model: str, gpu: str, **options: object) -> Advice:
    *_, found = advise_in_steps(find_model(model), Plan.parse(options), find_gpu(gpu))
    return found


@examples(6)
@given(cases(catalog_only=True), st.sampled_from(list(GPUS.values())))
def test_whatever_is_advised_fits_and_needs_what_is_said(case: Case, gpu: Gpu) -> None:
    assume(can_run(case, gpu))
    *_, advice = advise_in_steps(case.architecture, case.plan, gpu)
    assert advice.done
    assert advice.ways or "several GPUs" in advice.note
    for way in advice.ways:
        if way.plan is not None:
            need = Case(case.architecture, way.plan.on(way.gpu)).need
            assert need.fits(way.gpu.memory)
    what_is_left_out_stands_behind(advice, case.on(gpu.name), gpu)
    what_fits_at_most_is_known(advice, case.on(gpu.name), gpu)


def what_is_left_out_stands_behind(advice: Advice, case: Case, gpu: Gpu) -> None:
    if case.need.fits(gpu.memory):
        return
    advised = {way.words for way in advice.ways if way.gpu is gpu}
    shown = [one.words in advised for one in proposals(case.architecture, case.plan, gpu.memory)]
    assert shown == sorted(shown, reverse=True)
    assert any(shown) or not shown


def what_fits_at_most_is_known(advice: Advice, case: Case, gpu: Gpu) -> None:
    limits = (case.architecture, case.plan, gpu.memory)
    length = longest_sequence(*limits) or 0
    known = dict(advice.largest)
    batch = known.pop("batch_size")
    fits = case.need.fits(gpu.memory)
    assert batch == (largest_batch(*limits) or 0 if fits or case.plan.batch_size > 1 else 0)
    if has_one_length(case.architecture) or length == case.architecture.positions:
        assert known == {}
    else:
        assert known == {"sequence_length": length}


def test_a_batch_or_a_length_that_is_too_large_gets_the_largest_that_fits() -> None:
    batch, *others = advice_for("bert-base", "t4", batch_size="64").ways
    assert batch.words == f"Use a micro-batch of {batch.plan.batch_size}"
    assert batch.plan.batch_size == advice_for("bert-base", "t4").ways[0].plan.batch_size  # type: ignore[union-attr]
    (length,) = [way for way in others if way.details.startswith("The longest that fit")]
    assert 128 <= length.plan.sequence_length < 512


def test_where_no_change_helps_another_gpu_is_named() -> None:
    advice = advice_for("meta-llama/Llama-3.1-70B", "t4")
    assert advice.note.startswith("No change counted here makes it fit one Tesla T4.")
    # 70.6 billion weights take 35 GB in 4 bits, and 80 GB are the smallest card above
    assert {way.gpu.name for way in advice.ways} == {"h100", "h200"}


def test_a_model_at_its_longest_gets_gpus_and_a_length_at_which_people_train() -> None:
    advice = advice_for("meta-llama/Llama-3.1-70B", "a100-80", sequence_length=131_072)
    assert advice.ways[0].words.endswith("4 bits (QLoRA)")
    adapters, in_ram, whole = (one for one in advice.ways if "FSDP" in one.words)
    assert whole.words.endswith("with FSDP, checkpointing and 2,048 tokens")
    # 70.6 billion parameters: 16 bytes each in shards, so no fewer than 70.6 * 16 / 85.9 GPUs
    assert whole.plan.gpus >= 16
    # frozen, 2 bytes each
    assert 2 <= adapters.plan.gpus <= 4
    assert adapters.plan.lora
    assert adapters.details.endswith("Trains adapters only.")
    # 16 bytes for each weight, in pinned RAM, where weights and gradients take powers of two
    assert in_ram.plan.cpu_offload
    assert in_ram.plan.gpus < whole.plan.gpus
    ram = estimate(find_model("meta-llama/Llama-3.1-70B"), in_ram.plan).ram.total
    assert ram > 70.6e9 * 16 / in_ram.plan.gpus
    assert f"Takes {format_bytes(ram)} of RAM for each GPU." in in_ram.details
    assert "over the bus" in in_ram.details


def test_llama_70b_on_eight_a100s_gets_adapters_on_shards() -> None:
    model, gpu = find_model("meta-llama/Llama-3.1-70B"), find_gpu("a100-80")
    ways = advice_for(model.name, gpu.name, gpus=8, precision="mixed").ways
    ways = [one for one in ways if one.plan and one.plan.lora and one.plan.is_sharded]
    assert "LoRA" in ways[0].words
    assert ways[0].plan.gpus == 8
    # as the 70.6 billion weights in shards of 2 or 4 bytes, and no whole copy of them
    need = Case(model, ways[0].plan.on(gpu)).need
    assert need.fits(gpu.memory)
    assert need.typical > 2 * 70.6e9 / 8


def test_gpus_that_are_there_are_used_for_shards_before_anything_is_given_up() -> None:
    # 774 million weights: 16 bytes each are more than a T4 has beside the activations
    ways = advice_for("gpt2-l", "t4", gpus=4).ways
    shards = [one for one in ways if "FSDP" in one.words]
    assert shards[0] is ways[0]
    assert [one.plan.data_parallel for one in shards if one.plan] == ["zero2", "fsdp"]
    assert all(one.plan and one.plan.gpus == 4 for one in shards)


def test_a_step_divided_by_layers_gets_shards_on_several_gpus_too() -> None:
    ways = advice_for(
        "meta-llama/Llama-3.1-8B", "rtx-4090", tensor_parallel=4, sequence_length=2048
    ).ways
    plan = next(one.plan for one in ways if "FSDP" in one.words)
    assert (plan.tensor_parallel, plan.is_sharded) == (1, True)


def test_a_model_of_unusual_length_gets_adapters_at_the_usual_one_and_several_gpus() -> None:
    # Qwen3-8B's config.json names 40,960 positions; 8.19 billion weights take 15.3 GiB in 16 bits
    advice = advice_for("Qwen/Qwen3-8B", "rtx-4090", sequence_length=40_960)
    adapters = [way for way in advice.ways if way.plan and way.plan.lora]
    assert adapters == list(advice.ways[: len(adapters)])
    assert adapters
    for way in adapters:
        assert way.plan.sequence_length == 2048
        assert way.plan.checkpointing in ("full", "operations")
    in_ram, together, *_ = advice.ways[len(adapters) :]
    assert in_ram.words.startswith("Use 2 of this GPU with FSDP, shards in RAM")
    assert together.words.startswith("Use 16 of this GPU with FSDP")
    # 16 bytes for each weight, in shards: 8 GPUs of 24 GB have too few
    assert 8.19e9 * 16 / 2**30 > 8 * 15


def test_a_search_in_slices_ends_with_the_whole_advice() -> None:
    adviser = Adviser(MODELS["gpt2-s"], Plan(), find_gpu("gtx-1060"))
    seen = [adviser.go_on(0)]
    while not seen[-1].done:
        seen.append(adviser.go_on(0))
    assert len(seen) > 3
    assert seen[-1] == adviser.go_on(0) == advice_for("gpt2-s", "gtx-1060")
