"""States in CUDA's managed memory; measured rows hold whole steps."""

from dataclasses import replace

import pytest

from calculator.__main__ import main
from calculator.catalog import find_gpu, find_model
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.planner.advice import advise_in_steps
from calculator.planner.need import Verdict, describe_need, judged, need_of
from calculator.units import format_bytes

PLAN = Plan(sequence_length=64, paged_optimizer=True)
PLAIN = replace(PLAN, paged_optimizer=False, optimizer_bits=32)


def test_the_verdict_counts_what_must_be_on_the_gpu_and_says_where_the_rest_is() -> None:
    model, gpu = find_model("gpt2-xl"), find_gpu("l4")
    report = estimate(model, replace(PLAN, batch_size=1).on(gpu))
    need = need_of(report)
    plain = need_of(judged(model, PLAIN.on(gpu)))
    assert need.verdict(gpu.memory) is Verdict.FITS
    assert plain.verdict(gpu.memory) is Verdict.DOES_NOT_FIT
    words = describe_need(need, gpu)
    assert "have no room beside that and are in RAM" in words
    roomy = describe_need(need, find_gpu("a100-80"))
    assert roomy.endswith("have room beside that on the GPU.")
    none = describe_need(replace(need, typical=gpu.memory), gpu)
    assert none.endswith("each step moves all of them to the GPU and back.")
    assert "paged" not in describe_need(need, find_gpu("gtx-1080-ti"))


def test_what_is_left_over_is_not_offered_twice(capsys: pytest.CaptureFixture[str]) -> None:
    size = format_bytes(estimate(find_model("gpt2-s"), PLAN).paged)
    words = ["gpt2-s", "--sequence-length", "64", "--paged-optimizer", "--gpu", "t4"]
    assert main(["fit", *words]) == 0
    assert f"of which paged states take up to {size}" in capsys.readouterr().out
    *_, advice = advise_in_steps(find_model("gpt2-s"), PLAN, find_gpu("t4"))
    assert advice.note.endswith(f"are left. Paged states take up to {size} of it.")


def test_json_has_the_bytes_and_both_ends_of_what_may_happen() -> None:
    report = estimate(find_model("gpt2-s"), PLAN)
    value = report.as_json()
    assert value["paged"] == {
        "bytes": report.paged,
        "peak_with_all": value["gpu"]["peak"] + report.paged,
        "most_to_ram": report.paged,
        "most_to_gpu": report.paged,
    }
