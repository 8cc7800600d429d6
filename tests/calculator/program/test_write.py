"""Programs as text: each compiles, is formatted, and says what its plan says."""

import ast
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from calculator.__main__ import main
from calculator.architecture import Architecture
from calculator.catalog import MODELS, find_model, groups
from calculator.catalog.checkpoints import CHECKPOINTS
from calculator.hf_config import from_config
from calculator.models.registry import type_of
from calculator.plan import Plan
from calculator.program.origin import ON_THE_HUB, Origin, origin_at, origin_of
from calculator.program.refusal import NoProgramError
from calculator.program.write import FOLLOWED, Form, write_program
from tests.calculator.plans import Case, cases, examples, options_of

ONE_OF_EACH_TYPE = {model.family: model.name for models in groups().values() for model in models}
LLAMA, QWEN = "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-0.6B"

# Plans that between them use every option, and options that meet.
PLANS = [
    ("gpt2-l", ""),
    ("gpt2-s", "precision=mixed accumulation=4 update=fused"),
    ("gpt2-s", "optimizer=muon precision=mixed offload=optimizer"),
    ("gpt2-s", "optimizer=muon lora=8"),
    ("gpt2-s", "optimizer=apollo precision=half"),
    ("gpt2-s", "optimizer=muon lora=8 lora_bias=all"),
    ("gpt2-s", "gradient_scaler=True accumulation=2"),
    ("gpt2-s", "task=sequence labels=3 batch_size=2"),
    ("bert-base", "task=tokens freeze=embeddings,0-3 checkpointing=full"),
    ("bert-base", "task=questions lora=8"),
    ("bert-base", "task=embedding batch_size=4"),
    ("bert-base", "task=embedding batch_size=16 mini_batch_size=4"),
    ("gpt2-s", "task=reward batch_size=4 precision=half"),
    ("gpt2-s", "precision=half format=fp16 loop=function"),
    ("gpt2-s", "loop=script accumulation=2"),
    ("gpt2-s", "checkpointing=full checkpoint_every=3 precision=mixed"),
    ("gpt2-s", "checkpointing=full activation_offload=pinned sharing_groups=3"),
    ("gpt2-s", "checkpointing=full activation_offload=pageable"),
    ("gpt2-s", "chunked_loss=torch precision=half"),
    (QWEN, "chunked_loss=torch lora=8 sequence_length=64"),
    ("gpt2-s", "sharing_groups=1 attention=math dropout=0.0"),
    ("gpt2-s", "sharing_groups=3 tied_embeddings=False checkpointing=selective"),
    ("gpt2-s", "checkpointing=selective attention=eager lora=4"),
    ("gpt-j-6b", "checkpointing=selective offload=optimizer precision=half"),
    ("gpt3-13b", "optimizer=adafactor update=loop checkpointing=full"),
    ("bert-base", "attention=flash optimizer=lamb optimizer_bits=8"),
    ("t5-small", "target_length=64 optimizer=momentum update=loop"),
    ("openai/whisper-tiny", "update_in_backward=True optimizer=lion"),
    ("gpt2-s", "paged_optimizer=True optimizer=lion optimizer_bits=8"),
    (QWEN, "paged_optimizer=True lora=64 quantization=nf4-double sequence_length=512"),
    ("openai/whisper-tiny", "task=audio labels=5 lora=8 lora_targets=q_proj"),
    ("google/vit-base-patch16-224", "precision=half optimizer=sgd"),
    ("google/gemma-3-4b-pt", "lora=16 quantization=nf4-double sequence_length=512"),
    (
        LLAMA,
        "lora=16 lora_targets=all-linear lora_dropout=0.05 lora_modules=embed_tokens,lm_head "
        "checkpointing=full sequence_length=2048",
    ),
    (LLAMA, "lora=16 quantization=fp4 precision=half"),
    (QWEN, "gpus=8 data_parallel=fsdp precision=mixed"),
    (QWEN, "gpus=4 data_parallel=zero2 precision=half lora=8"),
    (QWEN, "gpus=8 data_parallel=fsdp precision=half lora=8 quantization=nf4"),
    (QWEN, "gpus=8 data_parallel=zero2 precision=mixed cpu_offload=True"),
    (QWEN, "gpus=8 data_parallel=zero1 update=fused"),
    (QWEN, "gpus=8 data_parallel=zero1 lora=8 sequence_length=64"),
    (LLAMA, "tensor_parallel=8 precision=mixed"),
    ("Qwen/Qwen2.5-0.5B", "tensor_parallel=2 sequence_length=128"),
    (LLAMA, "tensor_parallel=8 sequence_parallel=True precision=mixed"),
    (LLAMA, "gpus=8 context_parallel=8 checkpointing=full sequence_length=65536"),
    (
        QWEN,
        "gpus=8 data_parallel=fsdp precision=mixed sequence_length=1024 context_parallel=2 "
        "context_rotation=alltoall",
    ),
    ("mistralai/Mixtral-8x7B-v0.1", "expert_parallel=8 precision=half"),
    (LLAMA, "pipeline_parallel=4 accumulation=8"),
    ("gpt2-m", "pipeline_parallel=4 accumulation=8 precision=half"),
    ("gpt2-m", "pipeline_parallel=2 accumulation=2 gpus=8 optimizer=lion"),
    (QWEN, "pipeline_parallel=2 accumulation=4 context_parallel=2 gpus=8 data_parallel=fsdp"),
    (
        "ibm-granite/granite-3.1-8b-base",
        "pipeline_parallel=2 accumulation=2 lora=8 lora_targets=all-linear",
    ),
    (LLAMA, "pipeline_parallel=4 accumulation=8 pipeline_schedule=interleaved pipeline_stages=3"),
    (
        QWEN,
        "pipeline_parallel=8 pipeline_schedule=gpipe accumulation=16 tied_embeddings=False "
        "precision=mixed checkpointing=selective",
    ),
    (QWEN, "gpus=16 accumulation=2 sequence_length=128"),
    (QWEN, "gpus=12 data_parallel=ddp-view sequence_length=128"),
]


OF_TRAINER: list[tuple[dict[str, Any], str]] = [
    ({}, 'optim="adamw_torch"'),
    ({"update": "fused"}, 'optim="adamw_torch_fused"'),
    ({"optimizer": "sgd", "accumulation": 4}, "gradient_accumulation_steps=4"),
    ({"optimizer_bits": 8}, "bitsandbytes.optim.AdamW8bit"),
    ({"paged_optimizer": True}, 'optim="paged_adamw_32bit"'),
    ({"paged_optimizer": True, "optimizer": "lion"}, 'optim="paged_lion_32bit"'),
    ({"paged_optimizer": True, "optimizer_bits": 8}, "bitsandbytes.optim.PagedAdamW8bit"),
    ({"paged_optimizer": True, "optimizer_bits": 8, "lora": 8}, 'optim="paged_adamw_8bit"'),
    ({"optimizer": "momentum", "update": "loop"}, '"momentum": 0.9, "foreach": False'),
    ({"checkpointing": "full", "attention": "math"}, "with sdpa_kernel(SDPBackend.MATH):"),
    ({"checkpointing": "full", "checkpoint_every": 2}, '"every_n_layers": 2}'),
    ({"precision": "half", "lora": 4, "gpus": 8}, "torchrun --nproc-per-node=8 train.py"),
]


def origin_for(architecture: Architecture) -> Origin:
    """The catalog's model, perhaps with fewer layers than it has there."""
    return replace(origin_of(architecture.name), architecture=architecture)


def test_every_type_of_the_catalog_has_a_program_that_compiles() -> None:
    for name in ONE_OF_EACH_TYPE.values():
        origin = origin_of(name)
        plan = Plan(sequence_length=64) if _takes_lengths(origin.architecture) else Plan()
        if not type_of(origin.architecture).counted:
            with pytest.raises(NoProgramError, match="our own model"):
                write_program(origin, plan)
            continue
        program = write_program(origin, plan)
        compile(program, name, "exec")
        assert f'"{origin.hub}"' in program or not origin.hub, name


def _takes_lengths(architecture: Architecture) -> bool:
    return not type_of(architecture).fixed_length


@given(cases())
@examples(60)
def test_every_plan_has_a_program_that_compiles_or_a_reason(case: Case) -> None:
    origin = origin_for(case.architecture)
    try:
        program = write_program(origin, case.plan)
    except NoProgramError:
        return  # its message has the reason
    compile(program, case.architecture.name, "exec")


def test_programs_are_formatted_and_use_what_they_import(tmp_path: Path) -> None:
    """Ruff's opinion, with its own defaults: format, imports, unused names."""
    for place, (name, words) in enumerate(PLANS):
        program = write_program(origin_of(name), Plan.parse(options_of(words)))
        (tmp_path / f"loop_{place}.py").write_text(program, encoding="utf-8")
    for place, (options, _) in enumerate(OF_TRAINER):
        program = write_program(origin_of("gpt2-s"), Plan.parse(options), Form.TRAINER)
        (tmp_path / f"trainer_{place}.py").write_text(program, encoding="utf-8")
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
    for asked in (("check", "--select", "I,F,E4,E7,E9"), ("format", "--diff")):
        command = [ruff, *asked, "--isolated", str(tmp_path)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout + found.stderr


def test_each_option_is_followed_by_programs() -> None:
    assert set(FOLLOWED) <= set(Plan.options())
    used = {field for _, words in PLANS for field in options_of(words)}
    assert set(FOLLOWED) - used <= {"batch_size", "reversible"}


def test_a_plan_with_an_option_that_no_program_follows_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("calculator.program.write.FOLLOWED", ("batch_size",))
    with pytest.raises(NoProgramError, match="accumulation"):
        write_program(origin_of("gpt2-s"), Plan(accumulation=2))


def shape(model: Architecture) -> Architecture:
    """The model without its words, its usual length, and flags that are not set."""
    more = tuple((name, value) for name, value in model.more if value)
    plain = replace(model, name="", title="", note="", source="", more=more)
    return replace(plain, sequence_length=0, target_length=None)


@pytest.mark.parametrize("name", ON_THE_HUB)
def test_a_short_name_stands_for_a_model_of_the_same_shape_on_the_hub(name: str) -> None:
    assert shape(MODELS[name]) == shape(find_model(ON_THE_HUB[name]))


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("gpt3")])
def test_the_keys_of_a_model_that_is_not_on_the_hub_describe_it(name: str) -> None:
    assert shape(from_config(origin_of(name).values, name)) == shape(MODELS[name])


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("dalle-together", {}, "model"),
        ("gpt2-s", {"reversible": True}, "reversible"),
        ("gpt2-s", {"sequence_length": 2048}, "sequence_length"),
        ("gpt-j-6b", {"sequence_length": 4096}, "sequence_length"),
        (
            LLAMA,
            {"pipeline_parallel": 2, "tensor_parallel": 2, "accumulation": 2},
            "pipeline_parallel",
        ),
    ],
)
def test_a_plan_that_no_library_carries_out_is_refused_with_a_reason(
    name: str, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(NoProgramError) as refused:
        write_program(origin_of(name), Plan.parse(options))
    assert refused.value.field == field


VALUES = {"model_type": "llama", **CHECKPOINTS["HuggingFaceTB/SmolLM2-135M"].config}


def test_random_tokens_are_rows_of_every_table_that_a_model_looks_them_up_in() -> None:
    values = {"model_type": "gemma4_text", "vocab_size": 503, "vocab_size_per_layer_input": 403}
    assert "torch.randint(403, (1, " in write_program(origin_at("config.json", values), Plan())


def test_a_pasted_configuration_of_a_larger_model_makes_its_text_model() -> None:
    text = {**VALUES, "model_type": "ministral3"}
    larger = {"model_type": "mistral3", "text_config": text}
    program = write_program(origin_at("config.json", larger), Plan(dropout=0.1))
    joined = " ".join(program.split())
    assert "config = Ministral3ForCausalLM.config_class.from_pretrained(" in joined
    assert "attention_dropout=0.1" in joined
    adapted = write_program(
        origin_at("mine/config.json", larger), Plan(lora=8, lora_targets="all-linear")
    )
    assert "model = Ministral3ForCausalLM.from_pretrained(" in adapted


def test_a_hostile_path_stays_text() -> None:
    path = 'a"b\\c\nimport os\nos.remove("x")/config.json'
    program = write_program(origin_at(path, VALUES), Plan())
    modules = {
        name.name
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Import)
        for name in node.names
    }
    assert modules == {"torch"}


def test_the_command_line_prints_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["code", "gpt2-s", "--batch-size", "4", "--checkpointing", "full"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    compile(out, "program", "exec")
    assert "calculator estimate gpt2-s --batch-size 4 --checkpointing full" in out
    assert "gradient_checkpointing_enable" in out


@pytest.mark.parametrize(("options", "words"), OF_TRAINER)
def test_trainer_gets_the_plan_as_arguments(options: dict[str, Any], words: str) -> None:
    program = write_program(origin_of("gpt2-s"), Plan.parse(options), Form.TRAINER)
    assert words in program
    assert ("bf16=True" in program) == ("precision" not in options)


@pytest.mark.parametrize(
    "words",
    [
        *("precision=mixed", "optimizer=muon", "update_in_backward=true", "offload=optimizer"),
        "gpus=2 data_parallel=ddp-view",
    ],
)
def test_what_trainer_cannot_do_is_said(words: str) -> None:
    with pytest.raises(NoProgramError, match="write the loop yourself"):
        write_program(origin_of("gpt2-s"), Plan.parse(options_of(words)), Form.TRAINER)
