"""Programs of plans, run: they need the memory that is estimated, and make what they say."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.plan import Plan
from calculator.program.origin import origin_at
from calculator.program.write import write_program
from tests.calculator.plans import options_of
from tests.calculator.real import small_config

pytestmark = pytest.mark.oracle

Abreast = Callable[..., None]
Ask = Callable[..., Any]
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
def test_a_program_needs_the_memory_that_its_plan_is_estimated_at(measure: Ask, row: str) -> None:
    found = measure(f"call counted_peak {shaped(row)}")
    assert found["estimate"] <= found["program"] <= found["estimate"] + SCALARS


@pytest.fixture
def facts(measure: Ask) -> Ask:
    return lambda words: measure(f"call facts {words}")


LLAMA = f"{CONFIGS}/llama.json --sequence-length 16"


def test_the_weights_of_a_folder_are_loaded_and_trained(facts: Ask) -> None:
    found = facts(LLAMA)
    assert found["class"] == "LlamaForCausalLM"
    assert found["training"]
    assert found["attention"] == "sdpa"
    assert found["use_cache"] is False
    assert found["checkpointing"] is False
    assert found["trained_types"] == ["torch.float32"]
    assert found["changed"] == found["weights"] == len(found["trained"])
    assert found["gradients"] == 0
    assert 5 < found["loss"] < 8  # ln 503 = 6.2
    assert found["optimizer"][0][0] == "AdamW"


def test_half_precision_and_checkpointing_are_on(facts: Ask) -> None:
    words = f"{LLAMA} --precision half --checkpointing full --attention eager --update loop"
    found = facts(words)
    assert found["trained_types"] == ["torch.bfloat16"]
    assert found["checkpointing"] is True
    assert found["attention"] == "eager"
    name, options = found["optimizer"][0]
    assert (name, options["foreach"]) == ("AdamW", False)


@pytest.mark.parametrize(
    ("options", "copies"),
    [
        ("--precision mixed", ["torch.float32 cpu"]),
        ("--precision half --offload optimizer", ["torch.bfloat16 cpu"]),
        ("--offload optimizer --accumulation 2", ["torch.float32 cpu"]),
    ],
)
def test_copies_are_updated_and_go_back_to_the_weights(
    facts: Ask, options: str, copies: list[str]
) -> None:
    found = facts(f"{LLAMA} {options}")
    assert found["copies"] == copies
    assert found["changed"] > 0
    assert found["gradients"] == 0


@pytest.mark.parametrize(
    ("options", "optimizers"),
    [
        ("--optimizer sgd --update fused", ["SGD"]),
        ("--optimizer momentum", ["SGD"]),
        ("--optimizer adafactor", ["Adafactor"]),
        ("--optimizer muon", ["Muon", "AdamW"]),
        ("--optimizer lion --optimizer-bits 8", ["Lion8bit"]),
        ("--optimizer-bits 8", ["AdamW8bit"]),
        # on the CPU bitsandbytes warns, and pages nothing
        ("--paged-optimizer --optimizer-bits 8", ["PagedAdamW8bit"]),
        ("--paged-optimizer --optimizer lion", ["PagedLion32bit"]),
        ("--optimizer lamb", ["LAMB32bit"]),
        ("--update-in-backward", ["AdamW"]),
    ],
)
def test_the_optimizer_is_the_named_one_and_trains(
    facts: Ask, options: str, optimizers: list[str]
) -> None:
    found = facts(f"{LLAMA} {options}")
    assert [name for name, _ in found["optimizer"]] == optimizers
    assert found["gradients"] == 0
    assert found["changed"] > 0
    momentum = found["optimizer"][0][1].get("momentum")
    assert options != "--optimizer momentum" or momentum == 0.9


def test_adapters_are_trained_and_the_base_is_not(facts: Ask) -> None:
    found = facts(f"{LLAMA} --lora 4 --precision half --lora-targets q_proj,down_proj")
    assert found["changed"] == 0
    assert found["frozen_types"] == ["torch.bfloat16"]
    assert found["trained_types"] == ["torch.float32"]
    targets = {name.rsplit(".", 4)[-4] for name in found["trained"]}
    assert targets == {"q_proj", "down_proj"}
    assert len(found["trained"]) == 7 * 2 * 2  # layers, targets, two matrices


@pytest.mark.parametrize("kind", ["nf4-double", "fp4"])
def test_the_frozen_base_is_packed_into_four_bits(facts: Ask, kind: str) -> None:
    found = facts(f"{LLAMA} --lora 4 --quantization {kind}")
    assert "Linear4bit" in found["modules"]
    # bitsandbytes brings biases into the format of the products
    assert found["frozen_types"] == ["torch.bfloat16", "torch.float32", "torch.uint8"]
    assert 5 < found["loss"] < 8


def test_layers_share_weights(facts: Ask) -> None:
    assert facts(f"{LLAMA} --sharing-groups 2")["layers"] == [2]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bart.json --sequence-length 16 --target-length 8", "BartForConditionalGeneration"),
        ("whisper.json --batch-size 1", "WhisperForConditionalGeneration"),
        ("vit.json --batch-size 2", "ViTForImageClassification"),
        ("roberta.json --sequence-length 16", "RobertaForMaskedLM"),
        ("qwen3_next.json --sequence-length 16", "Qwen3NextForCausalLM"),
    ],
)
def test_the_class_that_is_loaded_is_the_one_that_is_counted(
    facts: Ask, name: str, kind: str
) -> None:
    found = facts(f"{CONFIGS}/{name}")
    assert found["class"] == kind
    assert found["changed"] > 0


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
    before: str = "",
    after: str = "",
    changes: Mapping[str, str] = MappingProxyType({}),
) -> list[list[str]]:
    """The words that each of two processes of a program tells about what it holds.

    `before` and `after` stand around the program, and `changes` are made to its text.
    """
    path = folder / "config.json"
    path.write_text(json.dumps(values))
    text = write_program(origin_at(str(path), values), plan)
    without_a_gpu = {'"cuda"': '"cpu"', '"nccl"': '"gloo"'}
    without_a_gpu["OffloadPolicy()"] = "OffloadPolicy(pin_memory=False)"
    for gpu, cpu in {**without_a_gpu, **changes}.items():
        text = text.replace(gpu, cpu)
    (folder / "train.py").write_text(ALONE + before + text + (after or TOLD))
    abreast(folder, 2, program=str(folder / "train.py"))
    return [path.read_text().split() for path in sorted(folder.glob("told-*.txt"))]


@pytest.mark.parametrize(
    ("options", "ending"),
    [
        ("gpus=2 accumulation=2", "DistributedDataParallel"),
        ("gpus=2 data_parallel=zero2 precision=mixed cpu_offload=true", "FSDPLlamaForCausalLM"),
    ],
)
def test_two_processes_train_together(
    abreast: Abreast, tmp_path: Path, options: str, ending: str
) -> None:
    values = small_config("llama") | {"num_hidden_layers": 2}
    plan = Plan.parse(options_of(f"sequence_length=16 {options}"))
    told = launched(abreast, tmp_path, values, plan)
    assert [words[1] for words in told] == [ending, ending]
    whole = estimate(from_config(values, "llama")).parameters
    held = sum(int(words[0]) for words in told)
    assert held == (2 * whole if ending.startswith("Distributed") else whole)


MADE = """
from pathlib import Path

from transformers import AutoConfig, AutoModelForCausalLM

folder = Path(__file__).parent
AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).save_pretrained(folder)
"""


def test_two_processes_train_adapters_beside_packed_shards(
    abreast: Abreast, tmp_path: Path
) -> None:
    values = small_config("llama") | {"num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(values))
    (tmp_path / "make.py").write_text(MADE)
    abreast(tmp_path, 1, program=str(tmp_path / "make.py"))
    adapted = {"lora": 4, "lora_targets": "all-linear", "quantization": "nf4", "precision": "fp32"}
    plan = Plan.parse({"sequence_length": 16, "gpus": 2, "data_parallel": "zero2", **adapted})
    told = launched(abreast, tmp_path, values, plan)
    assert [words[1] for words in told] == ["FSDPPeftModel"] * 2
    whole = estimate(from_config(values, "llama"), plan)
    outside = 2 * values["hidden_size"] * values["vocab_size"]
    assert sum(int(words[0]) for words in told) < outside + (whole.parameters - outside) / 4


@pytest.mark.parametrize("options", [{}, {"sequence_parallel": True}])
def test_two_processes_compute_each_layer_together(
    abreast: Abreast, tmp_path: Path, options: dict[str, Any]
) -> None:
    values = small_config("mistral") | {"num_hidden_layers": 2}
    plan = Plan.parse({"sequence_length": 16, "tensor_parallel": 2, **options})
    told = launched(abreast, tmp_path, values, plan)
    assert [words[1] for words in told] == ["MistralForCausalLM"] * 2
    whole = estimate(from_config(values, "mistral")).parameters
    width, words = values["hidden_size"], values["vocab_size"]
    tables = 1 if values.get("tie_word_embeddings") else 2
    outside = tables * width * words + (2 * 2 + 1) * width  # and norms
    assert [int(line[0]) for line in told] == [(whole + outside) // 2] * 2


def test_two_processes_divide_the_experts_of_each_layer(abreast: Abreast, tmp_path: Path) -> None:
    values = small_config("mixtral") | {"num_hidden_layers": 2, "num_local_experts": 4}
    plan = Plan.parse({"sequence_length": 16, "expert_parallel": 2, "precision": "fp32"})
    told = launched(abreast, tmp_path, values, plan)
    assert [words[1] for words in told] == ["MixtralForCausalLM"] * 2
    whole = estimate(from_config(values, "mixtral")).parameters
    experts = 2 * 4 * 3 * values["hidden_size"] * values["intermediate_size"]
    assert [int(line[0]) for line in told] == [whole - experts // 2] * 2


@pytest.mark.parametrize(
    ("options", "optimizer", "more"),
    [
        ("", "AdamW", {"bf16": True, "checkpointing": False, "batch": 1}),
        (
            "--precision half --checkpointing full --accumulation 2 --batch-size 3",
            "AdamW",
            {"bf16": False, "checkpointing": True, "accumulation": 2, "batch": 3},
        ),
        ("--checkpointing full --activation-offload pinned", "AdamW", {"checkpointing": True}),
        ("--paged-optimizer --optimizer-bits 8", "PagedAdamW8bit", {"paged": [True, 8]}),
        ("--optimizer momentum --update loop", "SGD", {}),
    ],
)
def test_trainer_trains_as_the_plan_says(
    measure: Ask, options: str, optimizer: str, more: dict[str, Any]
) -> None:
    found = measure(f"call trained_by_trainer {LLAMA} {options}")
    assert found["optimizer"][0] == optimizer
    assert found["steps"] == 3
    assert found["changed"] > 0
    assert {name: found[name] for name in more} == more


@pytest.mark.parametrize(
    "kind",
    [
        *("bloom", "codegen", "cohere2", "falcon", "gemma2", "gemma4_text-experts", "gpt_neox"),
        *("granite", "mpt", "opt", "phi"),
    ],
)
def test_stages_make_the_logits_of_the_whole_model(measure: Ask, kind: str) -> None:
    words = "--sequence-length 16 --precision fp32 --pipeline-parallel 2 --accumulation 2"
    assert measure(f"call stages_apart {CONFIGS}/{kind}.json {words}")["apart"] < 1e-5


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
def test_two_processes_pass_micro_batches_through_their_layers(
    abreast: Abreast, tmp_path: Path, schedule: str
) -> None:
    # each has the table of tied embeddings
    tied = schedule == "1f1b"
    few = {"num_hidden_layers": 5, "max_window_layers": 2, "sliding_window": 8}
    values = small_config("qwen2") | few
    split = {"pipeline_parallel": 2, "pipeline_schedule": schedule, "accumulation": 2}
    plan = Plan.parse({"sequence_length": 16, "tied_embeddings": tied, **split})
    told = launched(abreast, tmp_path, values, plan)
    own = "ModuleList" if schedule == "interleaved" else "Stage"
    assert [words[1] for words in told] == [own] * 2
    whole = estimate(from_config(values, "qwen2"), plan).parameters
    table = values["vocab_size"] * values["hidden_size"]
    assert sum(int(words[0]) for words in told) == whole + tied * table


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
    in_32_bits = {'"cpu", torch.bfloat16': '"cpu", enabled=False', "lr=1e-4": "lr=0.1"}
    told = launched(abreast, tmp_path, values, plan, IN_TURNS, BESIDE_THE_WHOLE, in_32_bits)
    # of 255 labels one process has 128, the other 127, and both count as much
    assert all(float(words[0]) > 0.999 for words in told)
    assert [words[1] for words in told] == ["128", "128"]
