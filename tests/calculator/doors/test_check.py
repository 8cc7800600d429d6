"""`check` on files of our own making, in the shape that each library reads."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.__main__ import main
from calculator.cards import find_card
from calculator.catalog import MODELS
from calculator.doors.answer import answer
from calculator.doors.check import read_file
from calculator.doors.file import File, parse_file
from calculator.doors.formats import TABLES, read
from calculator.doors.patch import edited
from calculator.doors.settle import settle
from calculator.doors.table import Table, in_words, read_keys
from calculator.errors import InputError
from tests.calculator.answers import refusal
from tests.calculator.plans import examples, options_of

FILES = Path(__file__).parent / "files"
Captured = pytest.CaptureFixture[str]

# what each library documents that these keys mean, and its defaults where a file is silent
PLANS = {
    "axolotl.yml": "batch_size=8 sequence_length=2048 accumulation=2 precision=half "
    "optimizer_bits=8 paged_optimizer=True checkpointing=full attention=flash "
    "lora=16 lora_targets=all-linear quantization=nf4-double",
    # it widens what it trains, unless pure_bf16; checkpoints, unless told otherwise
    "llamafactory.yaml": "batch_size=4 sequence_length=1024 accumulation=4 precision=amp "
    "checkpointing=full update=fused",
    "torchtune.yaml": "batch_size=4 sequence_length=1024 precision=half checkpointing=full "
    "chunked_loss=torch lora=16 "
    "lora_targets=q_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
    # fp32 shards, gathered in bf16
    "torchtitan.toml": "batch_size=2 sequence_length=4096 precision=mixed checkpointing=full "
    "data_parallel=fsdp gpus=8",
    # TRL loads in fp32 unless dtype is given
    "trl.yaml": "batch_size=2 sequence_length=1024 accumulation=8 precision=amp checkpointing=full",
    "arguments.json": "batch_size=16 precision=amp gradient_scaler=True update=fused",
    # checkpoints, unless told otherwise
    "swift.sh": "batch_size=8 sequence_length=1024 accumulation=4 precision=half "
    "checkpointing=full lora=16 lora_targets=all-linear quantization=nf4-double",
    "torchrun.sh": "batch_size=8 sequence_length=2048 accumulation=2 precision=mixed "
    "data_parallel=fsdp gpus=4",
    # TRL checkpoints by default
    "program.py": "batch_size=8 sequence_length=2048 precision=half checkpointing=full "
    "lora=16 lora_targets=all-linear quantization=nf4",
}


def checked(captured: Captured, *words: str) -> tuple[int, str]:
    status = main(["check", "--offline", *words])
    out, err = captured.readouterr()
    assert err == ""
    return status, out


def run_of(captured: Captured, *words: str) -> Any:
    (run,) = json.loads(checked(captured, *words, "--json")[1])["runs"]
    return run


@pytest.mark.parametrize("name", PLANS)
def test_a_file_says_the_plan_that_its_library_would_carry_out(name: str) -> None:
    found = settle([read(read_file(str(FILES / name)))], {})
    changed = {key: str(value) for key, value in found.plan.changed().items()}
    wanted = options_of(PLANS[name])
    assert {key: str(getattr(found.plan, key)) for key in wanted} == wanted
    assert {key for key in changed if key not in wanted} <= {"format", "lora_dropout", "update"}


def test_a_notebook_says_what_the_program_in_its_cells_does() -> None:
    program = (FILES / "program.py").read_text("utf-8")
    kinds = {"%%capture\n!pip install \\\n  trl": "code", "a heading": "markdown", "1 +": "code"}
    kinds |= {f"!nvidia-smi\nif True:\n  %time\n{program}": "code"}
    cells = [{"cell_type": kind, "source": text.splitlines(True)} for text, kind in kinds.items()]
    found = read(parse_file("run.ipynb", json.dumps({"cells": cells, "nbformat": 4})))
    assert found.facts == read(read_file(str(FILES / "program.py"))).facts
    assert edited(found.file, {"bf16": True}) is None  # a change is said in words


def test_files_of_one_run_go_together(capsys: Captured) -> None:
    names = [str(FILES / name) for name in ("accelerate.yaml", "deepspeed.json", "trl.yaml")]
    run = run_of(capsys, *names, "--gpu", "24GiB")
    assert run["formats"] == ["accelerate", "DeepSpeed", "TRL"]
    plan = run["plan"]
    assert (plan["gpus"], plan["data_parallel"], plan["batch_size"]) == (4, "fsdp", 2)
    assert plan["precision"] == "mixed"  # DeepSpeed keeps fp32 masters of 16-bit weights


# needs more changes than three
LARGE = """\
base_model: Qwen/Qwen3-8B
micro_batch_size: 4
sequence_len: 4096
optimizer: adamw_torch
bf16: true
"""


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        *(("axolotl.yml", "12GiB"), ("torchtitan.toml", "24GiB"), ("trl.yaml", "16GiB")),
        *(("program.py", "12GiB"), ("swift.sh", "10GiB"), ("large.yml", "24GiB")),
    ],
)
def test_the_patch_makes_the_file_fit(
    name: str, gpu: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = LARGE if name == "large.yml" else (FILES / name).read_text("utf-8")
    (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    run = run_of(capsys, name, "--gpu", gpu)
    assert run["status"] == 1
    patch = run["change"]["patch"]
    subprocess.run(["git", "apply", "-"], input=patch, text=True, check=True)
    assert run_of(capsys, name, "--gpu", gpu)["status"] == 0
    assert len(patch.splitlines()) < 40  # other lines and comments stay


def test_what_is_not_counted_decides_what_can_be_said(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a status needs no change that would make it fit
    monkeypatch.setattr("calculator.doors.answer.repairs_in_steps", lambda *_: iter(()))
    text = (FILES / "trl.yaml").read_text("utf-8")
    file = tmp_path / "run.yaml"
    for key, small, large in (
        ("use_liger_kernel: true", 2, 0),  # takes less than counted
        ("beta: 0.1", 1, 2),  # a reference model takes more
        ("our_own_key: 3", 2, 2),  # unknown
    ):
        file.write_text(f"{text}{key}\n", "utf-8")
        assert checked(capsys, str(file), "--gpu", "8GiB")[0] == small, key
        status, out = checked(capsys, str(file), "--gpu", "141GiB")
        assert status == large, key
        assert key.partition(":")[0] in out


def test_a_pull_request_gets_a_table_and_a_patch(capsys: Captured) -> None:
    status, out = checked(capsys, str(FILES / "trl.yaml"), "--gpu", "16GiB", "--markdown")
    assert status == 1
    assert out.startswith("| File | Model | Needs | GPU | Verdict |\n| --- |")
    assert "| does not fit |" in out
    assert "```diff\n--- a/" in out


BAD: dict[str, tuple[str | bytes | None, str]] = {
    "empty.yml": ("", "is empty"),
    "missing.yml": (None, "cannot be read"),
    "bytes.yml": (b"\xff\xfe\x00", "UTF-8"),
    "broken.yml": ("a: [1, 2", "is no YAML"),
    "broken.json": ("{'a': 1}", "is no JSON"),
    "broken.toml": ("a = ", "is no TOML"),
    "broken.py": ("def f(:", "is no Python"),
    "other.py": ("print(1)", "has no keys"),
    "broken.ipynb": ('{"cells": 1}', "is no Notebook: has no cells"),
    "other.sh": ("echo 1", "is no Shell: has no command with options"),
    "other.yml": ("a: 1", "configures no training"),
    "list.yml": ("- 1", "has no keys"),
    "page.yml": ("<!doctype html>", "web page"),
    "config.json": ('{"model_type": "gpt2"}', "give it as --model"),
    "binary.yml": ("a\0b", "binary"),
    "run.txt": ("a: 1", "must end in"),
    "large.yml": ("a: 1\n" * 1_000_000, "must have at most"),
    "deep.json": ("[" * 100_000, "nests too deep"),
    "aliases.yml": (
        "a: &a {x: 1, y: 2, z: 3}\n"
        + "".join(
            f"{new}: &{new} {{x: *{old}, y: *{old}, z: *{old}}}\n"
            for old, new in zip("abcdefghij", "bcdefghijk", strict=True)
        ),
        "at most",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line_of_field_value_rule_and_status_2(
    name: str, tmp_path: Path, capsys: Captured
) -> None:
    content, rule = BAD[name]
    if content is not None:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    said = refusal(["check", str(tmp_path / name)], capsys)
    assert said.startswith("error: file = ")
    assert rule in said


def test_without_pyyaml_the_message_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InputError, match="pip install pyyaml"):
        parse_file("run.yml", "a: 1")
    assert parse_file("run.toml", "a = 1").values == {"a": 1}  # which needs the library alone


def test_no_harmless_pattern_hides_a_key_and_every_edit_is_a_key_that_its_table_knows() -> None:
    for table in TABLES:
        for why, patterns in table.named:
            for pattern in patterns.split():
                key = pattern.replace("*", "x")
                file = File("a.json", "", "JSON", {key: 2})
                assert [note.words for note in read_keys(file, table).notes] == [why.words], key
        for key in (key for edit in table.edits.values() for key in edit):
            assert {key, f"{key}.device"} & table.keys.keys(), (table.title, key)


@pytest.mark.oracle
def test_every_argument_of_trainer_peft_and_bitsandbytes_is_known() -> None:
    import peft
    import transformers

    arguments = transformers.TrainingArguments.__dataclass_fields__
    bits = ["load_in_8bit", "load_in_4bit", "bnb_4bit_quant_type", "llm_int8_threshold"]
    text = json.dumps(dict.fromkeys((*arguments, *bits, "class"), 2))
    assert [note.key for note in read(parse_file("a.json", text)).unknown] == []
    call = ", ".join(f"{name}=2" for name in peft.LoraConfig.__dataclass_fields__)
    assert [note.key for note in read(parse_file("a.py", f"LoraConfig({call})")).unknown] == []


# what each means is read in `test_call`
PROGRAM = """
TrainingArguments("out", bf16=True, per_device_train_batch_size=4, optim="adamw_torch",
                  gradient_accumulation_steps=steps())
AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
"""


def test_what_a_program_computes_has_to_be_given(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "train.py"
    file.write_text(PROGRAM, "utf-8")
    run = run_of(capsys, str(file), "--gpu", "80GiB")
    assert (run["model"], run["plan"]["batch_size"]) == ("Qwen/Qwen2.5-0.5B", 4)
    assert run["status"] == 2  # what steps() gives is not known
    assert run_of(capsys, str(file), "--gpu", "80GiB", "--accumulation", "2")["status"] == 0


@given(st.text(max_size=200), st.sampled_from([".yml", ".json", ".toml", ".py", ".sh", ".ipynb"]))
@examples(40)
def test_no_text_ends_in_anything_but_a_file_or_a_refusal(text: str, suffix: str) -> None:
    with contextlib.suppress(InputError):
        read(parse_file(f"run{suffix}", text))


VALUES = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False)
VALUES |= st.text(max_size=8) | st.lists(st.text(max_size=5), max_size=2)


@given(st.data(), st.sampled_from(TABLES))
@examples(60)
def test_any_values_of_known_keys_give_an_answer_or_a_reason(
    data: st.DataObject, table: Table
) -> None:
    keys = data.draw(st.lists(st.sampled_from(sorted(table.keys)), max_size=8, unique=True))
    file = File("run.json", "", "JSON", {key: data.draw(VALUES) for key in keys})
    asked = settle([read_keys(file, table)], {}, "gpt2-s")
    found = answer(asked, MODELS.__getitem__, find_card("8GiB"), {})
    assert found.status in (0, 1, 2)
    assert found.verdict


@pytest.mark.parametrize("name", PLANS)
def test_a_change_of_one_key_changes_no_other(name: str) -> None:
    file = read_file(str(FILES / name))
    table = read(file).table
    for edit in table.edits.values():
        changes = {key: 3 if value is None else value for key, value in edit.items()}
        text = edited(file, changes)
        if text is None:
            continue
        after = parse_file(name, text).values
        touched = {key for key in file.values if any(key.startswith(each) for each in changes)}
        assert {k: v for k, v in file.values.items() if k not in touched} == {
            k: v for k, v in after.items() if not any(k.startswith(each) for each in changes)
        }
        for key, value in changes.items():
            assert in_words(after.get(key, value)) == in_words(value)


def test_a_choice_that_the_calculator_lacks_is_left_out_and_named(
    tmp_path: Path, capsys: Captured
) -> None:
    text = (FILES / "axolotl.yml").read_text("utf-8")
    file = tmp_path / "run.yml"
    more = "lora_modules_to_save: [embed_tokens, lm_head]\nfsdp: [full_shard]\n"
    file.write_text(text + more, "utf-8")
    run = run_of(capsys, str(file), "--gpu", "80GiB")
    left = {note["key"] for note in run["notes"] if "is ignored" in note["words"]}
    # bitsandbytes does not update shards
    assert left == {"optimizer_bits", "paged_optimizer"}
    assert run["status"] == 0  # those states would have taken less


def test_pairs_are_split_into_pairs_and_the_update_stays(tmp_path: Path, capsys: Captured) -> None:
    text = (FILES / "trl.yaml").read_text("utf-8").replace("batch_size: 2", "batch_size: 4")
    file = tmp_path / "run.yaml"
    file.write_text(f"{text}beta: 0.1\n", "utf-8")
    run = run_of(capsys, str(file), "--gpu", "40GiB")
    assert run["plan"]["batch_size"] == 8
    patch = run["change"]["patch"]
    batch, steps = (
        int(patch.partition(f"+{key}: ")[2].split()[0])
        for key in ("per_device_train_batch_size", "gradient_accumulation_steps")
    )
    assert batch * steps == 4 * 8
