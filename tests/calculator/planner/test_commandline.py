import json
import re

import pytest

from calculator.planner.words import WORDS
from tests.calculator.answers import answered, refusal

Captured = pytest.CaptureFixture[str]

# MPT 70B on 512 H100s, 251 sequences of 2,048 a second: MFU 41.25% (llm-foundry's benchmarks)
MPT = (
    "compute --parameters 64862437376 --layers 80 --width 8192 --sequence-length 2048 --gpus 512 "
    "--peak-tflops 989.5 --utilization 0.4125"
)
BAD = [
    (f"{MPT} --recomputation half --tokens 1e12", "recomputation", "must be one of: none, full"),
    (MPT, "tokens", "must be given"),
    (f"{MPT} --tokens many", "tokens", "must be a number"),
    (f"{MPT} --tokens 1e12 --utilization 0.8 --recomputation full", "utilization", "106.7%"),
    (f"{MPT} --tokens 1e12 --gpus 1.5", "gpus", "whole number"),
    (f"{MPT} --tokens 1e12 --gpu t5", "gpu", "must be a card"),
    (f"{MPT} --tokens 1e12 --gpu t4:many", "gpu", "must be a number"),
    ("communicate --parameters 1e8 --peers 0", "peers", "at least 1"),
    ("communicate --parameters 1e8 --bits 64", "bits", "at most 32"),
    ("scale", "flops", "must be given"),
]


def printed(words: str, captured: Captured) -> tuple[dict[str, float], dict[str, str]]:
    """A command's figures, and its text: what stands behind the name of each figure."""
    lines = answered(words, captured).splitlines()
    figures = json.loads(answered(f"{words} --json", captured))
    return figures, dict(re.split(r" {2,}", line, maxsplit=1) for line in lines)


@pytest.mark.parametrize(("words", "field", "rule"), BAD)
def test_a_bad_option_exits_with_2_and_one_line_of_field_and_rule(
    words: str, field: str, rule: str, capsys: Captured
) -> None:
    said = refusal(words.split(), capsys)
    assert said.startswith(f"error: {field} = ")
    assert rule in said


def test_a_day_of_the_benchmarked_cluster_sees_its_tokens(capsys: Captured) -> None:
    # 515,636 tokens a second, as the same table prints
    figures, _ = printed(f"{MPT} --tokens {515_636 * 86_400}", capsys)
    assert figures["days"] == pytest.approx(1, rel=0.001)
    assert figures["gpu_hours"] == pytest.approx(512 * 24, rel=0.001)


@pytest.mark.parametrize(
    "words",
    [
        *("plan gpt2-l", "communicate --parameters 1e8", "scale --flops 1e21"),
        f"{MPT} --tokens 1e12",
    ],
)
def test_the_text_names_every_figure_of_the_json(words: str, capsys: Captured) -> None:
    figures, text = printed(words, capsys)
    assert sorted(text) == sorted(WORDS[key][0] for key in figures)


def test_the_text_has_a_unit_beside_each_figure_that_has_one(capsys: Captured) -> None:
    words = "plan gpt2-l --billion-tokens 1 --volunteers 20 --up 50 --down 50 --utilization 30"
    figures, text = printed(words, capsys)
    assert (text["Time of the run"], text["Time of an exchange"]) == ("22.2 h", "3.7 min")
    assert (text["Sent in one exchange"], text["Money"]) == ("1.39 GB", "no price given")
    assert figures["days"] == pytest.approx(22.2 / 24, abs=0.05 / 24)
    assert figures["exchange_seconds"] == pytest.approx(3.7 * 60, abs=3)
    assert figures["sent_bytes"] == pytest.approx(1.39e9, abs=5e6)
