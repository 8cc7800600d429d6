"""The page and the command line give one answer, with the allocator simulated where it decides."""

import json
import shlex
from functools import cache
from urllib.parse import parse_qsl

import pytest

from calculator.__main__ import main
from calculator.bounds import range_of
from calculator.page.states import read_state
from calculator.planner.need import judged
from calculator.resolution import resolve
from tests.calculator.plans import advise, ask

QWEN = {"model": "Qwen/Qwen3-0.6B", "sequence_length": "512"}
STATES: list[dict[str, str]] = [
    {"model": "Qwen/Qwen3-8B", "preset": "qlora", "gpu": "t4"},
    {"model": "Qwen/Qwen3-8B", "preset": "lora", "gpu": "rtx-4090"},
    {**QWEN, "lora": "16", "attention": "eager", "gpu": "rtx-3070"},
    {**QWEN, "gpus": "4", "data_parallel": "fsdp", "gpu": "rtx-3070"},
    {"model": "gpt2-s", "pipeline_parallel": "2", "accumulation": "2", "gpu": "rtx-3070"},
    {**QWEN, "gpu": "rtx-4090"},
    {"model": "gpt2-s", "batch_size": "16", "gpu": "rtx-3070"},
]
every_state = pytest.mark.parametrize("params", STATES, ids=str)


advised = cache(advise)


@every_state
def test_page_and_terminal_have_one_verdict_one_need_and_one_largest_step(
    params: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    page, largest = ask("answer", **params)["value"], advised(**params)["largest"]
    words = shlex.split(page["command"])[4:]
    status = main(["fit", *words, "--gpu", params["gpu"], "--json"])
    terminal = json.loads(capsys.readouterr().out)
    assert main(["estimate", *words, "--gpu", params["gpu"]]) == status
    assert page["verdict"]["sum"] in capsys.readouterr().out
    assert page["verdict"]["state"] == terminal["verdict"]
    assert page["verdict"]["text"].lower().startswith(f"{terminal['verdict']}. needs ")
    typical, low, high = (terminal[name] for name in ("typical", "low", "high"))
    shown = {"needed": typical, "shown": typical, "low": low, "high": high}
    assert page["monitor"]["report"] == shown
    assert page["figures"]["report.gpu.used"] == page["figures"]["monitor.report.needed"]
    assert largest.get("batch_size", 0) == (terminal["largest_batch"] or 0)
    if "sequence_length" in largest:
        assert largest["sequence_length"] == (terminal["longest_sequence"] or 0)


@every_state
def test_each_way_needs_what_the_page_then_says(params: dict[str, str]) -> None:
    for way in advised(**params)["ways"]:
        if way["query"] is not None:
            there = ask("answer", **dict(parse_qsl(way["query"])))["value"]
            assert there["verdict"]["state"] == "fits"
            assert there["figures"]["monitor.report.needed"] == way["need"]


def test_the_allocator_decides_where_real_cards_bear_it_out() -> None:
    kinds = set()
    for params in STATES:
        architecture, plan, _ = read_state(params)
        kinds.add(range_of(resolve(architecture, plan)))
        assert judged(architecture, plan).overhead.is_simulated
    assert len(kinds) == 5
