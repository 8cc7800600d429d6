"""One rank alone holds what it holds beside real others, which talk over gloo."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.layers.ring import place_of
from calculator.parameters import parameter_tensors
from calculator.plan import Plan
from calculator.resolution import resolve
from calculator.techniques.expert_parallel import with_most_rows
from calculator.techniques.turns import turns_of
from calculator.techniques.zero import fullest_rank, updated_parts
from calculator.tensors import ParameterTensor
from calculator.units import format_bytes
from tests.validation.gloo import Abreast
from tests.validation.measurer import Measure
from validation.configuration import parse

pytestmark = pytest.mark.oracle

SHAPE = "--sequence-length 64 --precision fp32 --attention eager"
# gloo's threads may keep a tensor a moment longer: the least of some attempts counts
ATTEMPTS = 3


def parts(words: str) -> list[list[ParameterTensor]]:
    """The weights that each GPU of ZeRO's first stage updates."""
    configuration = parse(words.split())
    plan = configuration.resolved
    return updated_parts(parameter_tensors(configuration.architecture, plan), plan)


@pytest.mark.parametrize(
    ("model", "gpus"), [("gpt2-s", 3), ("gpt2-s", 64), ("validation/configs/mixtral.json", 2)]
)
def test_zero_hands_each_rank_the_weights_that_torch_does(
    measure: Measure, model: str, gpus: int
) -> None:
    words = f"{model} --gpus {gpus} --data-parallel zero1 --sequence-length 32"
    ours = [[item.elements for item in part] for part in parts(words)]
    assert ours == measure(f"call parts_by_torch {words}")


LLAMA = f"validation/configs/llama.json --layers 3 {SHAPE}"
ZERO1 = f"{LLAMA} --gpus 2 --data-parallel zero1"
ZERO2 = f"{LLAMA} --gpus 2 --data-parallel zero2 --accumulation 2"
FULLEST = fullest_rank(parts(ZERO1), parse(ZERO1.split()).resolved)
EXPERTS = f"validation/configs/deepseek_v2.json --layers 3 {SHAPE} --expert-parallel 2"
SHARES = f"validation/configs/mistral.json --layers 2 {SHAPE} --tensor-parallel 2"
SHARES_IN_SHARDS = f"{SHARES} --sequence-parallel --gpus 4 --data-parallel fsdp"
SHARES_IN_STAGES = f"{SHARES} --pipeline-parallel 2 --accumulation 2 --untied-embeddings"
STAGES = f"--layers 5 {SHAPE} --pipeline-parallel 2"
QWEN = f"validation/configs/qwen2.json {STAGES}"
TIED = f"{QWEN} --tied-embeddings --accumulation 2 --checkpointing full"
UNTIED = f"{QWEN} --untied-embeddings --accumulation 4 --pipeline-schedule interleaved"
GRANITE = f"validation/configs/granite.json {STAGES} --lora 4 --lora-targets all-linear"
# what lives between two steps; what a first pass left behind counts as buffers
STATES, OWN = ("weights", "gradients", "optimizer"), ("trained", "gradients", "optimizer")
STREAM = ("inputs", "activations")
# gloo's threads keep work tensors in the same memory for a while, so few peaks are compared
PEAKS = ("forward", "loss", "backward", "update")
# words, processes, those of them that are measured alone too, and what they hold
APART: dict[str, tuple[str, int, Sequence[int], Sequence[str]]] = {
    "a replica": (f"{LLAMA} --gpus 2 --data-parallel ddp", 2, [0], PEAKS),
    "a replica with views": (f"{LLAMA} --gpus 2 --data-parallel ddp-view", 2, [0], PEAKS),
    "the fullest part of the states": (ZERO1, 2, [FULLEST], PEAKS),
    "a shard of two": (ZERO2, 2, [0], (*OWN, *STREAM)),
    "a shard of four": (f"{LLAMA} --gpus 4 --data-parallel fsdp --lora 4", 4, [0], (*OWN, *STREAM)),
    "a share of the experts": (EXPERTS, 2, [0, 1], STATES),
    "a place on a mesh of shares and shards": (SHARES_IN_SHARDS, 4, [0, 3], OWN),
    "a place on a mesh of shares and stages": (SHARES_IN_STAGES, 4, [0, 3], OWN),
    "a stage with a copy of the table": (TIED, 2, [0, 1], (*STATES, *STREAM)),
    "interleaved stages": (UNTIED, 2, [0, 1], (*STATES, *STREAM)),
    # peft's first run in a process leaves a buffer behind
    "a stage with adapters": (f"{GRANITE} --accumulation 3", 2, [0, 1], (*OWN, *STREAM)),
}


@pytest.mark.parametrize("name", APART)
def test_a_part_alone_holds_what_it_holds_beside_others(
    measure: Measure, abreast: Abreast, tmp_path: Path, name: str
) -> None:
    words, processes, ranks, names = APART[name]

    def held(row: dict[str, Any]) -> dict[str, int]:
        peaks = {phase: measured["peak"] for phase, measured in row["phases"].items()}
        known = {**row, **peaks, "trained": row["weights"] - row["buffers"]}
        return {name: known[name] for name in names}

    alone = {rank: held(measure(f"call stage_on_the_cpu {rank} {words}")) for rank in ranks}
    least: dict[int, dict[str, int]] = {}
    for attempt in range(ATTEMPTS):
        inside = tmp_path / str(attempt)
        inside.mkdir()
        abreast(inside, processes, words=words.split())
        for rank in ranks:
            found = held(json.loads((inside / f"row-{rank}.json").read_text()))
            least[rank] = {name: min(found[name], least.get(rank, found)[name]) for name in names}
        if least == alone:
            break
    assert least == alone


def test_a_gpu_that_gets_all_rows_needs_what_the_note_says(measure: Measure) -> None:
    words = "validation/configs/qwen3_moe.json --sequence-length 90 --expert-parallel 3"
    words += " --precision half --checkpointing full"
    configuration = parse(words.split())
    architecture, plan = configuration.architecture, configuration.resolved
    most = estimate(with_most_rows(architecture, plan), plan).gpu.total
    assert measure(f"call peak_of_all_rows {words}") == most
    notes = " ".join(estimate(architecture, plan).notes)
    assert f"needs {format_bytes(most)} at its peak" in notes


def test_interleaved_micro_batches_pass_in_the_order_of_torch(measure: Measure) -> None:
    model = find_model("meta-llama/Llama-3.1-8B")
    for gpus, own, count, passes in measure("call interleaved_orders"):
        stages = {"pipeline_parallel": gpus, "pipeline_stages": own}
        stages |= {"pipeline_schedule": "interleaved", "accumulation": count}
        plan = Plan.parse({"sequence_length": 8, **stages})
        if not passes:
            with pytest.raises(InputError, match=r"accumulation = .* equal rounds"):
                resolve(model, plan)
            continue
        ours = [turns_of(resolve(model, plan), rank) for rank in range(gpus)]
        assert [[[*each] for each in turns.passes] for turns in ours if turns] == passes


@pytest.mark.parametrize(("parts", "rotation"), [(2, ""), (3, "--context-rotation alltoall")])
def test_of_gpus_that_divide_sequences_the_named_one_needs_the_most(
    measure: Measure, parts: int, rotation: str
) -> None:
    words = f"HuggingFaceTB/SmolLM2-135M {rotation} --layers 2 --sequence-length 1008 "
    words += "--precision half --optimizer sgd"
    words += f" --gpus {parts} --context-parallel {parts}"
    peaks = measure(f"call peaks_of_context {words}")
    assert peaks[place_of(parts)] == max(peaks) > min(peaks)
