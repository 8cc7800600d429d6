import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given

from calculator.__main__ import main
from calculator.catalog import MODELS
from calculator.command import command_for
from calculator.estimate import estimate
from tests.calculator.plans import Case, cases, examples

ROOT = Path(__file__).parents[2]
Captured = pytest.CaptureFixture[str]


def answered(captured: Captured, *words: str) -> str:
    assert main(words) == 0
    out, err = captured.readouterr()
    assert err == ""
    return out


BAD = [
    ("estimate gpt2l", "model", "gpt2l", "did you mean 'gpt2-l'?"),
    ("estimate gpt2-s --batch-size 0", "batch_size", "0", "from 1 to"),
    ("estimate gpt2-s --batch-size -2", "batch_size", "-2", "whole number"),
    ("estimate gpt2-s --batch-size nan", "batch_size", "nan", "whole number"),
    ("estimate gpt2-s --batch-size inf", "batch_size", "inf", "whole number"),
    ("estimate gpt2-s --batch-size many", "batch_size", "many", "whole number"),
    ("estimate gpt2-s --sequence-length 1.5", "sequence_length", "1.5", "whole number"),
    ("estimate gpt2-s --dropout nan", "dropout", "nan", "at least 0 and below 1"),
    ("estimate gpt2-s --dropout 1", "dropout", "1", "at least 0 and below 1"),
    ("estimate gpt2-s --accumulation 0", "accumulation", "0", "from 1 to"),
    ("estimate gpt2-s --sharing-groups 13", "sharing_groups", "13", "gpt2-s has 12 layers"),
    ("estimate gpt2-s --precision fp8", "precision", "fp8", "must be one of: fp32, amp"),
    ("estimate gpt2-s --optimizer adamw", "optimizer", "adamw", "did you mean 'adam'?"),
    ("estimate gpt2-s --optimizer-bits 4", "optimizer_bits", "4", "must be one of: 32, 16, 8"),
    ("estimate gpt2-s --target-length 8", "target_length", "8", "only T5"),
    ("estimate gpt-j-6b --attention flash", "attention", "flash", "has code for: eager, sdpa"),
    ("estimate gpt2-s --attention flash --precision fp32", "attention", "flash", "has code for"),
    ("estimate no-such-folder/config.json", "model", "no-such-folder/config.json", "no such file"),
]


@pytest.mark.parametrize(("words", "field", "value", "rule"), BAD)
def test_a_bad_option_exits_with_2_and_one_line_of_field_value_and_rule(
    words: str, field: str, value: str, rule: str, capsys: Captured
) -> None:
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    assert f"{field} = '{value}'" in err
    assert rule in err


@pytest.mark.parametrize(
    "words",
    [
        "",
        "estimat gpt2-s",
        "estimate",
        "estimate gpt2-s --batchsize 2",
        "estimate gpt2-s --batch-size",
    ],
)
def test_words_that_make_no_command_exit_with_2_and_print_nothing_on_standard_output(
    words: str, capsys: Captured
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err


@given(cases(catalog_only=True))
@examples(15)
def test_the_json_of_a_command_is_the_report(case: Case) -> None:
    words = shlex.split(command_for(case.architecture, case.plan))[3:]
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", lambda text: printed.append(text))
        assert main([*words, "--json"]) == 0
    assert [json.loads(text) for text in printed] == [case.report.as_json()]


def test_a_process_prints_what_main_prints(capsys: Captured) -> None:
    words = ["estimate", "t5-small", "--batch-size", "2", "--json"]
    command = [sys.executable, "-m", "calculator", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == answered(capsys, *words)


def test_a_process_with_a_bad_option_ends_as_main_does(capsys: Captured) -> None:
    words = ["estimate", "t5-small", "--batch-size", "0"]
    command = [sys.executable, "-m", "calculator", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert main(words) == 2
    assert (done.returncode, done.stdout, done.stderr) == (2, "", capsys.readouterr().err)


def test_words_for_people_name_peak_parts_and_moments(capsys: Captured) -> None:
    out = answered(capsys, "estimate", "gpt2-s")
    report = estimate(MODELS["gpt2-s"])
    assert "124,439,808 parameters" in out
    assert f"({report.peak_moment})" in out
    for word in ("weights", "optimizer", "forward", "loss", "backward", "update"):
        assert word in out


def test_offload_is_told_with_ram_and_what_is_moved(capsys: Captured) -> None:
    plain = answered(capsys, "estimate", "gpt2-s")
    offloaded = answered(capsys, "estimate", "gpt2-s", "--offload", "optimizer")
    assert "RAM" not in plain
    assert "RAM" in offloaded
    assert "Moved in each step" in offloaded


def test_the_table_names_every_model_with_its_parameters(capsys: Captured) -> None:
    out = answered(capsys, "models")
    assert len(out.splitlines()) == len(MODELS)
    assert all(name in out for name in MODELS)
    assert "774,030,080" in out


def test_the_table_as_json_names_every_model(capsys: Captured) -> None:
    rows = json.loads(answered(capsys, "models", "--json"))
    assert [row["name"] for row in rows] == list(MODELS)


def test_a_config_json_can_stand_for_a_name(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "gpt2"}', encoding="utf-8")
    for name in (path, tmp_path):
        value = json.loads(answered(capsys, "estimate", str(name), "--json"))
        assert value["parameters"] == 124_439_808  # transformers' GPT2Config is GPT-2 Small
