"""Real PyTorch, measured while the tests run, so that the oracle itself stays alive."""

from pathlib import Path

import pytest

from calculator.allocator import BLOCK
from calculator.layers.chunked_loss import tokens_of_chunk
from tests.validation.measurer import Measure
from validation.compare import compare

pytestmark = pytest.mark.oracle

CONFIGS = "validation/configs"
REAL = "--batch-size 2 --sequence-length 96 --precision fp32 --attention eager"
SMALL = "--layers 2 --batch-size 2 --sequence-length 96"


@pytest.mark.parametrize(
    "options",
    [
        f"{CONFIGS}/opt.json {REAL}",
        f"{CONFIGS}/roberta.json {REAL} --optimizer-bits 8",
        "t5-small --layers 1 --sequence-length 48 --precision fp32 --attention eager "
        "--checkpointing full",
    ],
)
def test_the_counting_device_needs_what_real_tensors_on_the_cpu_need(
    measure: Measure, options: str
) -> None:
    counted, real = measure(options), measure(options, "cpu")
    for name in ("weights", "gradients", "activations"):
        assert counted[name] == real[name]
    # on the CPU, PyTorch keeps each tensor's step count on the same device: 512 B a tensor
    beside = real["optimizer"] - counted["optimizer"]
    more = {
        phase: real["phases"][phase]["peak"] - beside - counted["phases"][phase]["peak"]
        for phase in ("forward", "loss", "backward", "update")
    }
    update = more.pop("update")
    assert set(more.values()) == {0}
    if "--optimizer-bits" not in options:  # bitsandbytes has no kernel of its own for CPUs
        assert 0 <= update <= 2 * BLOCK  # two numbers


@pytest.mark.parametrize(
    "options",
    [
        f"bert-base {SMALL} --optimizer lamb --optimizer-bits 8",
        f"t5-small {SMALL} --target-length 80 --precision mixed",
        f"gpt2-s {SMALL} --lora 4 --checkpointing full --lora-dropout 0.1",
        f"gpt2-s {SMALL} --precision half --chunked-loss torch",
        f"gpt2-s {SMALL} --checkpointing full --activation-offload pinned",
        f"gpt2-s {SMALL} --gradient-scaler --attention eager",
        f"t5-small {SMALL} --target-length 80 --precision half --format fp16",
        # so few tokens that a weight's own temporaries are most of the backward pass
        f"{CONFIGS}/llama.json --layers 3 --sequence-length 16 --lora 4 --lora-targets all-linear "
        "--quantization nf4-double --precision half --checkpointing full",
        f"Qwen/Qwen2.5-0.5B {SMALL} --tensor-parallel 2 --sequence-parallel",
        f"{CONFIGS}/qwen3_moe.json {SMALL} --expert-parallel 3",
        f"{CONFIGS}/mistral.json {SMALL} --tensor-parallel 2 --precision half --lora 8 "
        "--lora-targets q_proj,o_proj --checkpointing full",
        f"{CONFIGS}/mistral.json --layers 3 --sequence-length 96 --precision half "
        "--tensor-parallel 2 --context-parallel 2 --gpus 4 --data-parallel fsdp",
        f"gpt2-s {SMALL} --pipeline-parallel 2 --accumulation 2",
        # each stage's gradients are reduced after its last pass, before the other stage's
        f"{CONFIGS}/llama.json --layers 4 --sequence-length 48 --gpus 4 --data-parallel fsdp "
        "--pipeline-parallel 2 --pipeline-schedule interleaved --accumulation 2",
        # a dense layer before those of experts, which the second of these gathers early
        f"{CONFIGS}/qwen3_moe.json --layers 4 --sequence-length 120 --checkpointing full --gpus 4 "
        "--data-parallel fsdp",
        # sequences longer than the model's own table of positions
        f"{CONFIGS}/roberta.json --layers 3 --sequence-length 304",
        # sequences longer than the window, of which flash-attn is told
        f"{CONFIGS}/gemma3_text.json --sequence-length 96 --attention flash --lora 8",
        f"{CONFIGS}/modernbert.json --layers 4 --sequence-length 200 --attention flash",
    ],
)
def test_the_calculator_agrees_with_a_fresh_measurement(measure: Measure, options: str) -> None:
    (comparison,) = compare([measure(options)])
    assert comparison.phases_beyond() == {}


def test_a_config_of_a_type_without_code_is_measured(measure: Measure, tmp_path: Path) -> None:
    # the first GPT, of 2018, which nobody trains any more
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "openai-gpt", "n_layer": 2, "vocab_size": 100}')
    row = measure(f"{path} --sequence-length 16 --batch-size 2")
    assert row["weights"] > row["gradients"] > 4 * 100 * 768  # it has tables
    assert list(compare([row])) == []


def test_autocast_is_on_and_copies_the_weights_in_16_bits(measure: Measure) -> None:
    # 2 layers: 12 d^2 weights in matrix products, and the head's V d, two bytes each
    row = measure(f"gpt2-s {SMALL}")
    assert row["autocast_copies"] == 2 * (2 * 12 * 768**2 + 50257 * 768)  # whole 512 B blocks


def test_linear_layers_have_the_names_of_adapters_and_a_chunk_of_the_loss_pytorchs_tokens(
    measure: Measure,
) -> None:
    assert measure("call names_unlike") == {}
    for *sizes, chunk in measure("call chunk_sizes"):
        assert tokens_of_chunk(*sizes) == chunk


def test_inputs_of_layers_take_the_bus_both_ways(measure: Measure) -> None:
    row = measure(f"gpt2-s {SMALL} --checkpointing full --activation-offload pageable")
    moved = 2 * (2 * 96 * 768) * 4  # layers, the stream under autocast in 32 bits
    assert row["transfer"] == {"to_ram": moved, "to_gpu": moved}
    assert row["ram"]["peak"] >= moved


def test_the_counting_gpu_s_managed_memory_is_what_bitsandbytes_asks_for(measure: Measure) -> None:
    # the two tables and 2 layers of four matrices are paged, vectors are below 100,000 elements
    row = measure(f"gpt2-s {SMALL} --paged-optimizer --optimizer-bits 8")
    matrices = (50257 + 1024) * 768 + 2 * 12 * 768**2
    assert row["paged"] == {"bytes": 2 * matrices, "prefetched": 2 * matrices}
    assert row["ram"]["peak"] < 4096
    # scales, tables and all states of vectors
    assert row["optimizer"] < 0.05 * row["paged"]["bytes"]


def test_what_no_library_implements_is_refused_and_a_processor_pages_nothing(
    measure: Measure,
) -> None:
    answer = measure(f"gpt2-s {SMALL} --optimizer lion --optimizer-bits 16")
    assert answer["refused"].startswith("optimizer_bits = '16'")
    answer = measure("gpt2-s --sequence-length 8 --paged-optimizer", "cpu")
    assert answer["refused"].startswith("device = 'cpu': bitsandbytes pages no states")
