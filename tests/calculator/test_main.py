import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given

from calculator.__main__ import main
from calculator.catalog import find_model
from calculator.command import command_for
from calculator.curve import curve
from calculator.estimate import estimate
from tests.calculator.answers import answered, refusal
from tests.calculator.plans import Case, cases, examples

ROOT = Path(__file__).parents[2]
Captured = pytest.CaptureFixture[str]


BAD = [
    ("estimate gpt3-3bx", "model", "gpt3-3bx", "did you mean 'gpt3-3b'?"),
    ("estimate gpt2-s --batch-size 0", "batch_size", "0", "from 1 to"),
    ("estimate gpt2-s --sharing-groups 13", "sharing_groups", "13", "gpt2-s has 12 layers"),
    ("estimate gpt2-s --optimizer-bits 4", "optimizer_bits", "4", "must be one of: 32, 16, 8"),
    ("estimate gpt2-s --attention flash --precision fp32", "attention", "flash", "has code for"),
    *(
        (f"compare gpt2-s{end}", "compare", "gpt2-s", "followed by -- and what")
        for end in ("", " --")
    ),
    ("compare gpt2-s -- --batch-size 0", "batch_size", "0", "from 1 to"),
    ("compare gpt2-s -- gpt2x", "model", "gpt2x", "did you mean"),
    ("estimate gpt2-s --batchsize 2", "command line", "--batchsize", "did you mean --batch-size?"),
    ("curve gpt2-s --points x", "points", "x", "must be a whole number"),
    ("curve gpt2-s --points 0", "points", "0", "at least 1"),
    ("estimate no-such-folder/config.json", "model", "no-such-folder/config.json", "no such file"),
    ("explain gpt2-s no-such-file", "message", "no-such-file", ""),
    ("explain gpt2-s .", "message", ".", ""),
]


@pytest.mark.parametrize(("words", "field", "value", "rule"), BAD)
def test_a_bad_option_exits_with_2_and_one_line_of_field_value_and_rule(
    words: str, field: str, value: str, rule: str, capsys: Captured
) -> None:
    said = refusal(words.split(), capsys)
    assert f"{field} = '{value}'" in said
    assert rule in said


def test_a_model_in_a_commands_place_is_told_where_it_goes(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["Qwen/Qwen3-4B"])
    assert "estimate MODEL" in capsys.readouterr().err


@given(cases(catalog_only=True))
@examples(6)
def test_the_json_of_a_command_is_the_report(case: Case) -> None:
    words = shlex.split(command_for(case.architecture, case.plan))[3:]
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", lambda text: printed.append(text))
        assert main([*words, "--json"]) == 0
    assert [json.loads(text) for text in printed] == [case.judged.as_json()]


def test_a_process_prints_what_main_prints(capsys: Captured) -> None:
    words = "estimate t5-small --batch-size 2 --json"
    command = [sys.executable, "-m", "calculator", *words.split()]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == answered(words, capsys)


@pytest.mark.parametrize("words", ["models", "estimate t5-3b --json"])
def test_a_reader_that_goes_away_ends_a_command_without_a_trace(words: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as `| head` does once it has its lines
    command = [sys.executable, "-m", "calculator", *words.split()]
    done = subprocess.run(command, check=False, stdout=writing, stderr=subprocess.PIPE, cwd=ROOT)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    "words",
    [
        ["estimate", "a" * 300],
        ["estimate", "b/" * 3000],
        ["estimate", "two\nlines"],
        ["estimate", "two\nlines.json"],
        ["estimate", "gpt2-s", "--two\nlines"],
        ["estimate", "gpt2-s", "--batch-size", "two\nlines"],
        ["estimate", "gpt2-s", "--batch-size", "9" * 10_000],
        ["estimate", "gpt2-s", "--precision", "x" * 10_000],
        ["two\nlines" * 1000],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_any_mistake_is_told_in_one_line_of_bounded_length(
    words: list[str], capsys: Captured
) -> None:
    code: int | str | None
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.endswith("\n")
    assert err[:-1].isprintable()
    assert len(err) < 1500


def test_the_curve_is_printed_as_csv_and_as_json(capsys: Captured) -> None:
    model = find_model("gpt2-s")
    assert answered("curve gpt2-s", capsys) == f"{curve(model).as_csv()}\n"
    few = json.loads(answered("curve gpt2-s --points 30 --json", capsys))
    assert few == curve(model, most=30).as_json()
    peaks = [few["peak"]["gpu"], max(point["gpu"] for point in few["points"])]
    assert peaks == [estimate(model).gpu.total] * 2


def test_compare_prints_two_plans_and_their_difference(capsys: Captured) -> None:
    common, full = "gpt2-s --batch-size 4", "--checkpointing full"
    first, second = (
        json.loads(answered(f"estimate {common} {more} --json", capsys)) for more in ("", full)
    )
    found = json.loads(answered(f"compare {common} --json -- {full}", capsys))
    assert (found["first"], found["second"]) == (first, second)
    difference = found["difference"]
    assert difference["gpu"]["peak"] == second["gpu"]["peak"] - first["gpu"]["peak"] < 0
    assert sum(difference["gpu"]["parts"].values()) == difference["gpu"]["peak"]
    for place, phase in enumerate(difference["phases"]):
        assert phase["gpu"] == second["phases"][place]["gpu"] - first["phases"][place]["gpu"]
        assert sum(phase["parts"].values()) == phase["gpu"]
    lines = answered(f"compare {common} -- {full}", capsys).splitlines()
    assert any(line.split() == ["checkpointing", "none", "full"] for line in lines)
    assert len({len(line) for line in lines[:1] + [line for line in lines if "peak" in line]}) == 1


def test_compare_has_the_second_plans_status(capsys: Captured) -> None:
    words, large, small = "compare gpt2-s --gpu t4", "--batch-size 64", "--batch-size 1"
    assert main(f"{words} {large} -- {small}".split()) == 0
    out = capsys.readouterr().out
    assert "first: Tesla T4 16 GB: does not fit." in out
    assert "second: Tesla T4 16 GB: fits." in out
    assert main(f"{words} {small} -- {large}".split()) == 1


def test_fit_says_which_cards_lack_a_kernel(capsys: Captured) -> None:
    lines = answered("fit gpt2-s --attention flash", capsys).splitlines()
    (t4,) = [line for line in lines if line.startswith("Tesla T4")]
    assert "attention = 'flash': needs compute capability 8.0" in t4
    assert [line for line in lines if line.startswith("GeForce RTX 3090") and ": fits." in line]
    found = json.loads(answered("fit gpt2-s --attention flash --json", capsys))
    assert {"t4", "v100-16"} <= {each["gpu"] for each in found["refused"]}
    assert {"rtx-3090", "h100"} <= {each["gpu"] for each in found["gpus"]}
    assert main(["fit", "gpt2-s", "--attention", "flash", "--precision", "fp32"]) == 2
