"""States in CUDA's managed memory; measured rows hold whole steps."""

from dataclasses import replace

import pytest

from calculator.catalog import find_gpu
from calculator.planner.advice import advise_in_steps
from calculator.planner.need import Verdict, describe_need, need_of
from calculator.units import format_bytes
from tests.calculator.answers import answered
from tests.calculator.plans import case_of

PAGED = "sequence_length=64 paged_optimizer=True"


def test_the_verdict_counts_what_must_be_on_the_gpu_and_says_where_the_rest_is() -> None:
    gpu, plain = find_gpu("l4"), case_of("gpt2-xl", "sequence_length=64 optimizer_bits=32")
    need = need_of(case_of("gpt2-xl", PAGED).on("l4").report)
    assert need.fits(gpu.memory)
    assert plain.on("l4").need.verdict(gpu.memory) is Verdict.DOES_NOT_FIT
    words = describe_need(need, gpu)
    assert "have no room beside that and are in RAM" in words
    roomy = describe_need(need, find_gpu("a100-80"))
    assert roomy.endswith("have room beside that on the GPU.")
    none = describe_need(replace(need, typical=gpu.memory), gpu)
    assert none.endswith("each step moves all of them to the GPU and back.")
    assert "paged" not in describe_need(need, find_gpu("gtx-1080-ti"))


def test_what_is_left_over_is_not_offered_twice(capsys: pytest.CaptureFixture[str]) -> None:
    case = case_of("gpt2-s", PAGED)
    size = format_bytes(case.report.paged)
    said = answered("fit gpt2-s --sequence-length 64 --paged-optimizer --gpu t4", capsys)
    assert f"of which paged states take up to {size}" in said
    *_, advice = advise_in_steps(case.architecture, case.plan, find_gpu("t4"))
    assert advice.note.endswith(f"are left. Paged states take up to {size} of it.")


def test_json_has_the_bytes_and_both_ends_of_what_may_happen() -> None:
    report = case_of("gpt2-s", PAGED).report
    value = report.as_json()
    assert value["paged"] == {
        "bytes": report.paged,
        "peak_with_all": value["gpu"]["peak"] + report.paged,
        "most_to_ram": report.paged,
        "most_to_gpu": report.paged,
    }
