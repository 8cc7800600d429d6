"""Refusals: whose they are, and the way out of each."""

import pytest

from calculator.__main__ import main
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.laws import RefusedError
from calculator.plan import Plan
from calculator.way_out import WayOutError, as_command, offering, way_out
from tests.calculator.answers import refusal
from tests.calculator.plans import ask, case_of, options_of
from tests.calculator.real import small_config
from validation.drawn import drawn

PACKED_SHARDS = "lora=8 lora_targets=all-linear quantization=nf4 precision=half gpus=2 "
PACKED_SHARDS += "data_parallel=fsdp checkpointing=none"
DRAWN = 40  # random plans, most of which break some rule


def test_a_plan_is_refused_by_a_law_and_the_way_out_is_answered() -> None:
    refused = 0
    for each in drawn(4, DRAWN):
        try:
            estimate(each.architecture, each.plan)
        except InputError as error:
            changes = way_out(each.architecture, each.plan, error)
            assert changes, each.command
            estimate(each.architecture, each.plan.but(**changes))
            refused += 1
    assert refused > DRAWN // 4


@pytest.mark.parametrize(
    ("options", "is_law", "out"),
    [
        ("quantization=nf4", True, "--lora 16"),
        ("cpu_offload=True", True, "--data-parallel fsdp --gpus 2"),
        ("update_in_backward=True accumulation=4", True, "--accumulation 1"),
        ("tensor_parallel=3", True, "--tensor-parallel 2"),
        ("gpus=4 tensor_parallel=2", True, "--data-parallel fsdp"),
        ("context_parallel=4 sequence_length=1001", True, "--sequence-length 1000"),
        ("lora=8 freeze=embeddings", True, "without --freeze"),
        ("lora=8 lora_targets=nobody", None, "--lora-targets q_proj,v_proj"),
        ("gpus=4 data_parallel=fsdp optimizer=apollo", True, "--optimizer adam"),
        ("attention=flash precision=fp32", True, "--attention sdpa"),
        ("pipeline_parallel=2 accumulation=2 gradient_scaler=True", True, "--no-gradient-scaler"),
        ("gpus=4 data_parallel=fsdp offload=optimizer", True, "--offload none --cpu-offload"),
        ("gpus=4 data_parallel=zero1 offload=optimizer", True, "--data-parallel ddp-view"),
        (
            "tensor_parallel=2 lora=8 lora_targets=down_proj checkpointing=full",
            True,
            "--checkpointing none",
        ),
        (
            "tensor_parallel=2 sequence_parallel=True checkpointing=full activation_offload=pinned",
            True,
            "--activation-offload pageable",
        ),
    ],
)
def test_the_way_out_changes_what_a_reader_would(
    options: str, is_law: bool | None, out: str
) -> None:
    case = case_of("Qwen/Qwen3-0.6B", options)
    with pytest.raises(WayOutError) as caught, offering(case.architecture, case.plan):
        assert case.report
    assert as_command(caught.value.changes) == f"try {out}"
    cause = caught.value.__cause__
    assert (cause.is_law if isinstance(cause, RefusedError) else None) is is_law
    assert case.but(**caught.value.changes).report


ALONE = {"hidden_size_per_layer_input": 0}


@pytest.mark.parametrize(
    ("config", "values", "options", "rule"),
    [
        ("gemma4_text", {}, "pipeline_parallel=2", "inputs made of token ids"),
        ("gemma4_text", ALONE, "pipeline_parallel=5", "keys and values of another stage"),
        # those that store and those that reuse are in one stage
        ("gemma4_text", ALONE, "pipeline_parallel=2", ""),
        ("gemma4_text-experts", {}, "pipeline_parallel=2", ""),
        ("glm4_moe", {}, "expert_parallel=2 gpus=4 data_parallel=fsdp", "all tokens stands beside"),
        ("mixtral", {}, "expert_parallel=5 gpus=10 data_parallel=fsdp", ""),
        # the contact head's 18 weights are 9 bytes, its 12 are 6
        ("esm", {"num_hidden_layers": 3}, PACKED_SHARDS, "fill the 2 of each element"),
        ("esm", {"num_hidden_layers": 2}, PACKED_SHARDS, ""),
        ("esm", {"num_hidden_layers": 2}, f"{PACKED_SHARDS} precision=fp32", "fill the 4"),
    ],
)
def test_what_a_class_cannot_do_apart_is_a_law(
    config: str, values: dict[str, object], options: str, rule: str
) -> None:
    # each was run on the counting GPU: PyTorch stopped where there is a rule
    model = from_config(small_config(config) | values, config)
    common = "sequence_length=60 accumulation=5 checkpointing=operations"
    plan = Plan.parse(options_of(f"{common} {options}"))
    if not rule:
        estimate(model, plan)
        return
    with pytest.raises(RefusedError, match=rule) as caught:
        estimate(model, plan)
    assert caught.value.is_law


def test_the_terminal_ends_a_refusal_with_what_to_add(capsys: pytest.CaptureFixture[str]) -> None:
    words = "Qwen/Qwen3-0.6B --tensor-parallel 3"
    for command in ("estimate", "fit", "curve", "code"):
        said = refusal([command, *words.split()], capsys)
        assert said.startswith("error: tensor_parallel = '3': must divide the 16 heads")
        assert said.endswith("; try --tensor-parallel 2\n")
    assert main(["estimate", *words.split(), "--tensor-parallel", "2"]) == 0


def test_the_page_gets_the_way_out_as_words_and_an_address() -> None:
    state = {"model": "Qwen/Qwen3-0.6B", "tensor_parallel": "3", "gpu": "a100-80"}
    error = ask("answer", **state)["error"]
    assert error["field"] == "tensor_parallel"
    assert error["way_out"]["words"] == "Set Tensor parallelism to 2"
    assert error["way_out"]["query"] == "model=Qwen%2FQwen3-0.6B&tensor_parallel=2&gpu=a100-80"
    assert "way_out" not in ask("answer", model="nobody")["error"]
