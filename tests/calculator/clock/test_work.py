"""Work of a step: the FLOPs that formulas give, and what recomputation and micro-batches add."""

from dataclasses import replace

import pytest

from calculator.clock import Work, seconds
from calculator.report import Report
from tests.calculator.plans import case_of, options_of

LLAMA = "meta-llama/Llama-3.1-8B"
# GPT-2's smallest model: layers, width, vocabulary (its config.json)
LAYERS, WIDTH, VOCABULARY = 12, 768, 50_257
LENGTH = 512
BATCH = 2
TOKENS = BATCH * LENGTH


def report(words: str = "") -> Report:
    options = {"precision": "half", "attention": "eager", **options_of(words)}
    return case_of("gpt2", batch_size=BATCH, sequence_length=LENGTH, **options).report


def work(words: str = "") -> Work:
    return report(words).work


def test_products_take_6_flops_per_parameter_and_12_or_14_l_d_s_for_attention() -> None:
    # llm-foundry (scripts/train/benchmarking): 6 N + 12 l d s per token; embeddings are looked up
    parameters = 12 * LAYERS * WIDTH**2 + VOCABULARY * WIDTH
    assert work().narrow == TOKENS * (6 * parameters + 12 * LAYERS * WIDTH * LENGTH)
    # FlashAttention's backward pass has 5 products, one of which recomputes the scores
    assert work("attention=flash").narrow_attention == 14 * TOKENS * LAYERS * WIDTH * LENGTH


def test_checkpointing_repeats_the_layers_forward_pass_up_to_the_last_kept_tensor() -> None:
    layer = 2 * 12 * WIDTH**2 + 4 * WIDTH * LENGTH
    last_product = 2 * 4 * WIDTH**2  # nobody needs its output
    without = work("dropout=0")
    checkpointed = work("dropout=0 checkpointing=full")
    more = checkpointed.narrow - without.narrow
    assert more == TOKENS * LAYERS * (layer - last_product)
    assert (without.repeated, checkpointed.repeated) == (0, more)


def test_weights_in_4_bits_need_no_gradient_of_their_own() -> None:
    packed = work("quantization=nf4 lora=8 precision=fp32").packed_wide
    # forward and the input's gradient: 4 FLOPs for each of the layers' parameters; what the first
    # product of all reads is frozen, too, so its 3 d^2 parameters have the forward pass alone
    assert packed == TOKENS * (4 * 12 * LAYERS - 2 * 3) * WIDTH**2


def test_seconds_follow_from_the_work_and_have_bounds_around_them() -> None:
    found = report().seconds
    assert found.low < found.step < found.high
    assert found.tokens_per_second == pytest.approx(TOKENS / found.step)
    assert found.model_utilization == found.hardware_utilization < 1
    again = report("dropout=0 checkpointing=full").seconds
    assert again.model_utilization < again.hardware_utilization


@pytest.mark.parametrize(("card", "is_timed"), [("t4", True), ("a100-80", False)])
def test_a_step_of_few_tokens_is_bound_by_launches(card: str, is_timed: bool) -> None:
    small, large = (
        case_of("gpt2", batch_size=batch, sequence_length=length).on(card).report.seconds
        for batch, length in ((1, 16), (32, 1024))
    )
    assert "Bound by the processor's launches." in small.words
    assert "launches" not in large.words
    # Qwen's own steps of LoRA on an A100 take a third of what launches take beside a T4
    assert (small.low > small.step / 3) == is_timed
    assert large.low > large.step / 3


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("offload=optimizer", "an update in RAM"),
        ("paged_optimizer=true", "pages that move"),
        ("activation_offload=pageable checkpointing=full", "not pinned"),
    ],
)
def test_what_the_clock_leaves_out_has_no_seconds_but_a_reason(options: str, reason: str) -> None:
    found = case_of(LLAMA, f"sequence_length=64 {options}").report
    assert found.seconds is None
    assert found.as_json()["seconds"] is None
    assert any(note.startswith("No seconds") and reason in note for note in found.notes)


@pytest.mark.parametrize("stages", [1, 2])
def test_products_wait_for_inputs_that_go_to_pinned_ram_and_back(stages: int) -> None:
    # of 32 layers of an 8B Llama, the input of each: 64 tokens of 4,096 numbers in 16 bits
    words = "sequence_length=64 checkpointing=full activation_offload=pinned precision=half"
    case = case_of(LLAMA, words, accumulation=4, pipeline_parallel=stages).on("a100-80")
    found, card = case.report, case.plan.card
    moved = 4 * 32 // stages * 64 * 4096 * 2
    assert found.to_ram == found.to_gpu == moved
    assert found.work.copied == 2 * moved
    # PCIe 4.0 with 16 lanes: 31.5 GB/s, of which a copy gets 52.8 / 63
    waiting = 2 * moved / (31.5e9 * 52.8 / 63)
    busy = replace(found.work, kernels=0)
    assert seconds(busy, card) - seconds(replace(busy, copied=0), card) == pytest.approx(
        (1 + busy.bubble) * waiting
    )
    assert any("84% of the rate of PCIe" in note for note in found.notes)


def test_a_stage_of_a_pipeline_waits_for_the_others() -> None:
    # (p - 1) / m of its time (Narayanan et al. 2021, section 2.2.1), and less with several stages
    case = case_of(LLAMA, "sequence_length=64 pipeline_parallel=4 accumulation=8")
    assert case.report.work.bubble == 3 / 8
    interleaved = case.but(pipeline_schedule="interleaved", pipeline_stages=2)
    assert interleaved.report.work.bubble == 3 / 16
