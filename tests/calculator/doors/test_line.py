"""Options of other libraries on the command line mean what they mean there."""

import json
from pathlib import Path

import pytest

from calculator.__main__ import main
from calculator.doors.line import understood
from calculator.errors import InputError
from tests.calculator.answers import answered

AMP = {"precision": "amp", "format": "bf16"}


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("--bf16", AMP),
        ("--bf16 False --tf32 true", {}),
        ("--fp16", {"precision": "amp", "format": "fp16", "gradient_scaler": True}),
        ("--torch_dtype bfloat16", {"precision": "half", "format": "bf16"}),
        ("--gradient_checkpointing", {"checkpointing": "full"}),
        ("--load_in_4bit --use_peft --lora_r=16", {"quantization": "nf4", "lora": "16"}),
        ("--load-in-4bit --use_bnb_nested_quant", {"quantization": "nf4-double"}),
        ("--lora_target_modules q_proj v_proj --use_peft", {"lora_targets": "q_proj,v_proj"}),
        ("--finetuning_type lora --lora_target all", {"lora_targets": "all-linear"}),
        ("--flash_attn fa2", {"attention": "flash"}),
        ("--mixed_precision bf16 --num_processes 4", {**AMP, "gpus": "4"}),
        ("--fsdp full_shard auto_wrap", {"data_parallel": "fsdp", "gpus": 8}),
        ("--zero 3 --num_processes 4", {"data_parallel": "fsdp", "gpus": "4"}),
        (
            "--zero_stage 2 --recompute-activations",
            {"data_parallel": "zero2", "gpus": 8, "checkpointing": "selective"},
        ),
        ("--use_8bit_adam", {"optimizer_bits": 8}),
        ("--learning_rate 1e-4 --output_dir out --num_train_epochs 3 --packing", {}),
    ],
)
def test_an_option_means_what_its_key_means_in_a_file(
    line: str, options: dict[str, object]
) -> None:
    run = understood(line.split(), {})
    assert run.options == options
    assert not run.notes


def test_our_own_option_decides_what_others_mean_and_what_is_not_counted_is_named() -> None:
    run = understood(["--load_in_4bit", "--bf16"], {"lora": "16"})
    assert run.options == {**AMP, "quantization": "nf4"}
    (note,) = understood(["--use_liger_kernel"], {}).notes
    assert (note.key, note.way) == ("use_liger_kernel", "less")


@pytest.mark.parametrize(
    ("line", "gpus"), [("--tp 4", 4), ("--pp=2 --accumulation 2", 2), ("--cp 2", 2)]
)
def test_gpus_are_the_product_of_what_divides_the_model(
    line: str, gpus: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"estimate meta-llama/Llama-3.2-1B --precision half {line} --json"
    assert json.loads(answered(words, capsys))["plan"]["gpus"] == gpus


def test_a_number_of_gpus_that_nobody_gave_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", "gpt2-s", "--fsdp", "full_shard"]) == 0
    assert "note: 8 GPUs are assumed; --gpus says" in capsys.readouterr().err
    answered("estimate gpt2-s --fsdp full_shard --gpus 4", capsys)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--batch-sise 4", r"did you mean --batch-size\? is an option of neither this command nor"),
        ("--zzz", "an option of neither this command nor a library that is known"),
        ("--qlora", "is a preset here: --preset qlora"),
        ("q_proj --bf16", "several values of one are joined by commas"),
    ],
)
def test_what_no_library_has_is_refused(line: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        understood(line.split(), {})


def test_a_file_of_deepspeed_is_read_beside_the_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stage3.json"
    path.write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}', "utf-8")
    line = f"estimate gpt2-s --deepspeed {path} --nproc_per_node 4 --use_liger_kernel"
    assert main(line.split()) == 0
    said = capsys.readouterr()
    stage, kernels = said.err.splitlines()
    assert stage.startswith(f"note: {path}: zero_optimization.stage is counted as PyTorch's")
    assert kernels.startswith("note: --use_liger_kernel Liger's kernels keep fewer results")
    plain = "estimate gpt2-s --data-parallel fsdp --gpus 4 --precision mixed --format bf16"
    assert answered(plain, capsys) == said.out


@pytest.mark.parametrize("line", ["estimate gpt2-s q_proj", "models --bf16"])
def test_other_words_are_refused_with_status_2(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(line.split())
    assert "unrecognized arguments" in capsys.readouterr().err
