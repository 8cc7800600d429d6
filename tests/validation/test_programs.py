"""Programs of plans, run: they need the memory that is estimated, and make what they say."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.plan import Plan
from calculator.program.origin import origin_at
from calculator.program.write import write_program
from tests.calculator.plans import options_of
from tests.calculator.real import small_config
from tests.validation.gloo import Abreast
from tests.validation.measurer import Measure

pytestmark = pytest.mark.oracle

CONFIGS = "validation/configs"
SMALL = "--batch-size 2 --sequence-length 96"
SHORT = f"--layers 3 {SMALL}"  # one more layer than the first and the last
# A program keeps its loss to the end of the step, and divides it where gradients are accumulated:
# blocks of 512 bytes that the estimate does not have.
SCALARS = 3 * 512


# the model, and options beside those of its shape, or in their place
PROGRAMS = [
    "gpt2-s",
    "gpt2-s --precision fp32 --attention math --update loop",
    "gpt2-s --precision mixed --checkpointing selective",
    "gpt2-s --precision half --optimizer lion --optimizer-bits 8",
    "gpt2-s --paged-optimizer --optimizer-bits 8",
    "qwen2 --paged-optimizer --update-in-backward --precision half",
    "gpt2-s --layers 4 --sharing-groups 2 --untied-embeddings --dropout 0",
    "qwen2 --offload optimizer --precision mixed",
    "gpt2-s --optimizer muon --lora 4 --lora-bias all",
    "gpt2-s --accumulation 3 --update fused",
    "gpt-j-6b --layers 1 --checkpointing selective --optimizer sgd",
    "bert-base --layers 2 --optimizer lamb --optimizer-bits 8 --attention flash",
    "t5-small --layers 2 --target-length 80 --checkpointing full",
    "llama --checkpointing operations --checkpoint-every 2 --lora 4",
    "mistral --checkpointing operations --tensor-parallel 2 --sequence-parallel",
    "qwen2 --checkpointing full --activation-offload pinned --lora 4",
    "phi --chunked-loss torch --precision half",
    "roberta --chunked-loss torch --lora 4 --lora-modules lm_head",
    "bart --target-length 72 --chunked-loss torch",
    "mbart --target-length 72 --chunked-loss torch",
    "mt5 --target-length 48 --chunked-loss torch --precision half",
    "mistral --chunked-loss torch --lora 4 --checkpointing full --activation-offload pageable",
    "gpt2-s --gradient-scaler --accumulation 2",
    "llama --lora 4 --lora-modules embed_tokens,lm_head",
    "bart --target-length 72 --lora 4 --lora-targets all-linear --lora-modules "
    "embed_tokens,lm_head",
    "llama --optimizer adafactor --precision half",
    "gpt2-s --attention efficient --precision half --optimizer momentum",
    "whisper --precision half",
    "vit --batch-size 3",
    "llama --gpus 3 --data-parallel ddp-view --precision half",
    "qwen2 --layers 7 --pipeline-parallel 3 --accumulation 4 --precision half "
    "--untied-embeddings --pipeline-schedule gpipe --attention eager",
    "qwen2 --layers 7 --pipeline-parallel 2 --accumulation 4 --precision half "
    "--untied-embeddings --pipeline-schedule interleaved --pipeline-stages 3",
    "qwen2 --pipeline-parallel 3 --accumulation 4 --tied-embeddings",
    "bloom --pipeline-parallel 2 --accumulation 2",
    "gpt_neox --pipeline-parallel 2 --accumulation 2",
    "gemma4_text-experts --layers 4 --pipeline-parallel 2 --accumulation 2",
    "opt --pipeline-parallel 2 --accumulation 2 --checkpointing full",
    "qwen3 --layers 7 --pipeline-parallel 2 --context-parallel 2 --gpus 8 --data-parallel "
    "fsdp --accumulation 2 --tied-embeddings",
    "gpt2-s --layers 4 --pipeline-parallel 2 --context-parallel 2 --accumulation 4 "
    "--pipeline-schedule interleaved --untied-embeddings",
    "granite --pipeline-parallel 2 --accumulation 3 --lora 8 --lora-targets all-linear "
    "--checkpointing full",
    "gpt_oss --expert-parallel 3 --precision mixed",
    "mistral --tensor-parallel 2 --precision half --lora 8 --lora-targets q_proj,o_proj",
    "mixtral --tensor-parallel 2 --gpus 6 --data-parallel fsdp",
    "llama --gpus 4 --data-parallel fsdp --precision mixed --cpu-offload",
    "qwen2 --gpus 3 --data-parallel zero2 --precision half --lora 4 --cpu-offload --accumulation 2",
    "llama --gpus 4 --context-parallel 2 --data-parallel fsdp --precision mixed "
    "--checkpointing full --context-rotation alltoall --batch-size 2",
    "llama --gpus 2 --data-parallel zero1 --lora 8",
    "llama --gpus 4 --data-parallel zero1 --optimizer muon",
    "llama --gpus 4 --data-parallel fsdp --optimizer muon --lora 4 --lora-bias all",
    "qwen3 --tensor-parallel 2 --optimizer muon --update fused",
    "qwen2 --pipeline-parallel 2 --accumulation 2 --optimizer muon --gpus 4 --data-parallel fsdp",
]


def shaped(row: str) -> str:
    """Words of a small model: by its name, or that of its config.json."""
    name, _, options = row.partition(" ")
    path = Path(CONFIGS, f"{name}.json")
    if name in ("vit", "whisper"):  # whose length is fixed
        return f"{path} --layers 3 --batch-size 2 {options}"
    if path.exists():
        return f"{path} {SHORT} {options}"
    return f"{name} --layers 2 {SMALL} {options}"


@pytest.mark.parametrize("row", PROGRAMS)
def test_a_program_needs_the_memory_that_its_plan_is_estimated_at(
    measure: Measure, row: str
) -> None:
    found = measure(f"call counted_peak {shaped(row)}")
    assert found["estimate"] <= found["program"] <= found["estimate"] + SCALARS


LLAMA = f"{CONFIGS}/llama.json --sequence-length 16"
BF16, FP32 = "torch.bfloat16", "torch.float32"
PLAIN = {"attention": "sdpa", "checkpointing": False, "trained_types": [FP32], "unchanged": 0}
HALF = {"attention": "eager", "checkpointing": True, "trained_types": [BF16]}
HALF |= {"optimizers": ["AdamW"], "foreach": False}
PAGED = {"optimizer": "PagedAdamW8bit", "paged": True, "bits": 8}
# bitsandbytes brings biases into the format of the products
PACKED = {"packed": True, "frozen_types": [BF16, FP32, "torch.uint8"]}


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (LLAMA, {"class": "LlamaForCausalLM", "optimizers": ["AdamW"], **PLAIN}),
        (f"{LLAMA} --precision half --checkpointing full --attention eager --update loop", HALF),
        (f"{LLAMA} --precision mixed", {"copies": [f"{FP32} cpu"]}),
        (f"{LLAMA} --precision half --offload optimizer", {"copies": [f"{BF16} cpu"]}),
        (f"{LLAMA} --offload optimizer --accumulation 2", {"copies": [f"{FP32} cpu"]}),
        (f"{LLAMA} --optimizer sgd --update fused", {"optimizers": ["SGD"]}),
        (f"{LLAMA} --optimizer momentum", {"optimizers": ["SGD"], "momentum": 0.9}),
        (f"{LLAMA} --optimizer adafactor", {"optimizers": ["Adafactor"]}),
        (f"{LLAMA} --optimizer muon", {"optimizers": ["Muon", "AdamW"]}),
        (f"{LLAMA} --optimizer lion --optimizer-bits 8", {"optimizers": ["Lion8bit"]}),
        (f"{LLAMA} --optimizer-bits 8", {"optimizers": ["AdamW8bit"]}),
        # on the CPU bitsandbytes warns, and pages nothing
        (f"{LLAMA} --paged-optimizer --optimizer-bits 8", {"optimizers": ["PagedAdamW8bit"]}),
        (f"{LLAMA} --paged-optimizer --optimizer lion", {"optimizers": ["PagedLion32bit"]}),
        (f"{LLAMA} --optimizer lamb", {"optimizers": ["LAMB32bit"]}),
        (f"{LLAMA} --update-in-backward", {"optimizers": ["AdamW"]}),
        (
            f"{LLAMA} --lora 4 --precision half --lora-targets q_proj,down_proj",
            # of seven layers, two matrices each
            {"trained": {"q_proj": 14, "down_proj": 14}}
            | {"frozen_types": [BF16], "trained_types": [FP32], "changed": 0},
        ),
        (f"{LLAMA} --lora 4 --quantization nf4-double", PACKED),
        (f"{LLAMA} --lora 4 --quantization fp4", PACKED),
        (f"{LLAMA} --sharing-groups 2", {"layers": [2]}),
        (
            f"{CONFIGS}/bart.json --sequence-length 16 --target-length 8",
            {"class": "BartForConditionalGeneration"},
        ),
        (f"{CONFIGS}/whisper.json --batch-size 1", {"class": "WhisperForConditionalGeneration"}),
        (f"{CONFIGS}/vit.json --batch-size 2", {"class": "ViTForImageClassification"}),
        (f"{CONFIGS}/roberta.json --sequence-length 16", {"class": "RobertaForMaskedLM"}),
        (f"{CONFIGS}/qwen3_next.json --sequence-length 16", {"class": "Qwen3NextForCausalLM"}),
    ],
)
def test_the_weights_of_a_folder_are_loaded_and_trained_as_the_plan_says(
    measure: Measure, words: str, made: dict[str, Any]
) -> None:
    found = measure(f"call facts {words}")
    assert found["training"]
    assert not found["use_cache"]
    assert found["gradients"] == 0
    # With checkpointing a program lets go of the loss; that of packed weights was once not finite.
    if "--checkpointing" not in words and "--quantization" not in words:
        assert 5 < found["loss"] < 8  # ln 503 = 6.2
    assert found["changed"] > 0 or "--lora" in words  # of the weights of the folder
    known = found | found["options"]
    assert {name: known[name] for name in made} == made


TELL = """
def tell(*told):
    # to files: gloo writes parts of lines to the output that both processes have
    import os
    from pathlib import Path

    words = " ".join(map(str, told))
    Path(__file__).with_name(f"told-{os.environ['RANK']}.txt").write_text(words)
"""
ALONE = f"""
import torch

torch.cuda.reset_peak_memory_stats = torch.cuda.set_device = lambda *_: None

{TELL}
"""
TOLD = """
weights = [getattr(weight, "to_local", lambda: weight)() for weight in model.parameters()]
tell(sum(weight.numel() for weight in weights), type(model).__name__)
"""
NAMES = ("MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE")
NAMED = f"import os\ntell(__name__, *(os.environ[name] for name in {NAMES}))"


def test_torchrun_gives_a_program_what_our_forks_give_it(abreast: Abreast, tmp_path: Path) -> None:
    program = str(tmp_path / "program.py")
    Path(program).write_text(TELL + NAMED)
    command = [*(sys.executable, "-m", "torch.distributed.run"), "--standalone"]
    subprocess.run([*command, "--nproc-per-node=2", program], check=True, timeout=300)
    by_torchrun = [path.read_text().split() for path in sorted(tmp_path.glob("told-*.txt"))]
    abreast(tmp_path, 2, program=program)
    by_us = [path.read_text().split() for path in sorted(tmp_path.glob("told-*.txt"))]
    for rank, (theirs, ours) in enumerate(zip(by_torchrun, by_us, strict=True)):
        assert theirs[0] == ours[0] == "__main__"
        assert theirs[3:] == ours[3:] == [str(rank), str(rank), "2"]


def launched(
    abreast: Abreast,
    folder: Path,
    values: dict[str, Any],
    plan: Plan,
    edit: Callable[[str], str] = lambda text: text + TOLD,
) -> list[list[str]]:
    """The words that each of two processes of an edited program tells about what it holds."""
    path = folder / "config.json"
    path.write_text(json.dumps(values))
    text = write_program(origin_at(str(path), values), plan)
    without_a_gpu = {'"cuda"': '"cpu"', '"nccl"': '"gloo"'}
    without_a_gpu["OffloadPolicy()"] = "OffloadPolicy(pin_memory=False)"
    for gpu, cpu in without_a_gpu.items():
        text = text.replace(gpu, cpu)
    (folder / "train.py").write_text(ALONE + edit(text))
    abreast(folder, 2, program=str(folder / "train.py"))
    return [path.read_text().split() for path in sorted(folder.glob("told-*.txt"))]


def whole(values: dict[str, Any]) -> int:
    return estimate(from_config(values, values["model_type"])).parameters


TWO = {"num_hidden_layers": 2}
SMALL_LLAMA, MISTRAL = small_config("llama") | TWO, small_config("mistral") | TWO
MIXTRAL = small_config("mixtral") | TWO | {"num_local_experts": 4}
NO_EXPERTS = whole(MIXTRAL) - 2 * 4 * 3 * MIXTRAL["hidden_size"] * MIXTRAL["intermediate_size"]
WINDOWS = {"num_hidden_layers": 5, "max_window_layers": 2, "sliding_window": 8}
QWEN = small_config("qwen2") | WINDOWS
TABLE = 503 * 96  # of each of them
AROUND = 2 * TABLE + (2 * 2 + 1) * 96  # tables and norms, which are not divided
SHARDS = "gpus=2 data_parallel=zero2"
STAGES = "pipeline_parallel=2 accumulation=2 pipeline_schedule"


@pytest.mark.parametrize(
    ("values", "options", "kind", "twice"),
    [
        (SMALL_LLAMA, "gpus=2 accumulation=2", "DistributedDataParallel", whole(SMALL_LLAMA)),
        (SMALL_LLAMA, f"{SHARDS} precision=mixed cpu_offload=true", "FSDPLlamaForCausalLM", 0),
        (MISTRAL, "tensor_parallel=2", "MistralForCausalLM", AROUND),
        (MISTRAL, "tensor_parallel=2 sequence_parallel=true", "MistralForCausalLM", AROUND),
        (MIXTRAL, "expert_parallel=2 precision=fp32", "MixtralForCausalLM", NO_EXPERTS),
        (QWEN, f"{STAGES}=1f1b tied_embeddings=true", "Stage", TABLE),
        (QWEN, f"{STAGES}=interleaved tied_embeddings=false", "ModuleList", 0),
    ],
)
def test_two_processes_train_together_and_both_have_what_is_not_divided(
    abreast: Abreast, tmp_path: Path, values: dict[str, Any], options: str, kind: str, twice: int
) -> None:
    plan = Plan.parse(options_of(f"sequence_length=16 {options}"))
    told = launched(abreast, tmp_path, values, plan)
    assert [words[1] for words in told] == [kind] * 2
    own, other = (int(words[0]) for words in told)
    every = estimate(from_config(values, values["model_type"]), plan).parameters
    assert own + other == every + twice
    assert own == other or plan.pipeline_parallel == 2 or plan.data_parallel == "zero2"


def test_two_processes_train_adapters_beside_packed_shards(
    measure: Measure, abreast: Abreast, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL_LLAMA))
    measure(f"call make_weights {tmp_path}")
    adapted = "lora=4 lora_targets=all-linear quantization=nf4 precision=fp32"
    plan = Plan.parse(options_of(f"sequence_length=16 {SHARDS} {adapted}"))
    told = launched(abreast, tmp_path, SMALL_LLAMA, plan)
    assert [words[1] for words in told] == ["FSDPPeftModel"] * 2
    every = estimate(from_config(SMALL_LLAMA, "llama"), plan).parameters
    assert sum(int(words[0]) for words in told) < 2 * TABLE + (every - 2 * TABLE) / 4


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ("", {"bf16": True, "checkpointing": False, "batch": 1}),
        (
            "--precision half --checkpointing full --accumulation 2 --batch-size 3",
            {"bf16": False, "checkpointing": True, "accumulation": 2, "batch": 3},
        ),
        ("--checkpointing full --activation-offload pinned", {"checkpointing": True}),
        ("--paged-optimizer --optimizer-bits 8", PAGED),
        ("--optimizer momentum --update loop", {"optimizer": "SGD"}),
    ],
)
def test_trainer_trains_as_the_plan_says(
    measure: Measure, options: str, made: dict[str, Any]
) -> None:
    found = measure(f"call trained_by_trainer {LLAMA} {options}")
    assert found["changed"] > 0
    expected = {"optimizer": "AdamW", "steps": 3} | made
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    "kind",
    [
        *("bloom", "codegen", "cohere2", "falcon", "gemma2", "gemma4_text-experts", "gpt_neox"),
        *("granite", "mpt", "opt", "phi"),
    ],
)
def test_stages_make_the_logits_of_the_whole_model(measure: Measure, kind: str) -> None:
    words = "--sequence-length 16 --precision fp32 --pipeline-parallel 2 --accumulation 2"
    assert measure(f"call stages_apart {CONFIGS}/{kind}.json {words}") < 1e-5


# PyTorch's own turns and merges, with the CPU's kernel in the place of CUDA's
IN_TURNS = """
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.experimental._context_parallel import _attention as turns

KERNEL = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
KERNEL_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def taken(call, given, options):
    mesh = given[0].device_mesh
    own = [item.to_local() if isinstance(item, DTensor) else item for item in given]
    if call is KERNEL:
        names = ("query", "key", "value", "dropout_p", "is_causal")
        run, more = turns._templated_ring_attention, {}
    else:
        names = ("grad_out", "query", "key", "value", "out", "logsumexp", "dropout_p", "is_causal")
        run, more = turns._templated_ring_attention_backward, {"grad_out_name": "grad_out"}
    named = {**dict(zip(names, own)), **options, **more}
    found = run(mesh.get_group(), 2, call, **named)
    return tuple(DTensor.from_local(item, mesh, [Shard(2)], run_check=False) for item in found)


turns.custom_ops |= {KERNEL: taken, KERNEL_BACKWARD: taken}
torch.manual_seed(5)
"""
BESIDE_THE_WHOLE = """
def fresh():
    torch.manual_seed(5)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


start, whole = fresh(), fresh()
torch.manual_seed(0)
size = (1, len(batch["position_ids"][0]) * 2)
ids, labels = (torch.randint(config.vocab_size, size) for _ in range(2))
descent = torch.optim.SGD(whole.parameters(), lr=0.1)
for step in range(3):
    whole(input_ids=ids, labels=labels).loss.backward()
    descent.step()
    descent.zero_grad()
triples = zip(start.parameters(), whole.parameters(), model.module.parameters())
alike = [
    torch.cosine_similarity((one - old).flatten(), (other - old).flatten(), dim=0)
    for old, one, other in triples
]
tell(min(alike).item(), len(batch["position_ids"][0]))
"""


@pytest.mark.parametrize("rotation", ["allgather", "alltoall"])
def test_two_processes_that_divide_sequences_learn_what_one_learns_of_the_whole(
    abreast: Abreast, tmp_path: Path, rotation: str
) -> None:
    few = {"num_hidden_layers": 2, "num_key_value_heads": 6, "initializer_range": 0.2}
    values = small_config("llama") | few
    divided = f"gpus=2 context_parallel=2 context_rotation={rotation}"
    plan = Plan.parse(options_of(f"sequence_length=256 optimizer=sgd {divided}"))

    def in_32_bits(text: str) -> str:
        text = text.replace('"cpu", torch.bfloat16', '"cpu", enabled=False')
        return IN_TURNS + text.replace("lr=1e-4", "lr=0.1") + BESIDE_THE_WHOLE

    told = launched(abreast, tmp_path, values, plan, in_32_bits)
    # of 255 labels one process has 128, the other 127, and both count as much
    assert all(float(words[0]) > 0.999 for words in told)
    assert [words[1] for words in told] == ["128", "128"]
