"""One rank alone holds what it holds beside real others, which talk over gloo."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calculator.allocator import BLOCK
from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.layers.ring import place_of
from calculator.parameters import parameter_tensors
from calculator.plan import Plan
from calculator.resolution import resolve
from calculator.states import state_bytes
from calculator.techniques.expert_parallel import with_most_rows
from calculator.techniques.turns import turns_of
from calculator.techniques.zero import fullest_rank, updated_parts
from calculator.tensors import ParameterTensor
from calculator.units import format_bytes
from validation.configuration import parse

pytestmark = pytest.mark.oracle

Abreast = Callable[..., None]
Measure = Callable[..., dict[str, Any]]
Held = dict[int, dict[str, float]]  # bytes by rank and name
Holds = Callable[[dict[str, Any]], dict[str, float]]
SHAPE = "--sequence-length 64 --precision fp32 --attention eager"
WORDS = f"validation/configs/llama.json --layers 3 {SHAPE}"
ATTEMPTS = 3  # on a busy machine gloo's threads may keep a tensor a moment longer


def peaks(row: dict[str, Any]) -> dict[str, float]:
    return {phase: measured["peak"] for phase, measured in row["phases"].items()}


def states(row: dict[str, Any]) -> dict[str, float]:
    """Bytes of what lives between two steps."""
    return {name: row[name] for name in ("weights", "gradients", "optimizer")}


def without_buffers(row: dict[str, Any]) -> dict[str, float]:
    """As `states`; what a first pass left behind counts as buffers."""
    return states(row) | {"weights": row["weights"] - row["buffers"]}


def kept(row: dict[str, Any]) -> dict[str, float]:
    """As `without_buffers`, with the activations."""
    return without_buffers(row) | {"activations": row["activations"]}


def parts(words: str) -> list[list[ParameterTensor]]:
    """The weights that each GPU of ZeRO's first stage updates."""
    configuration = parse(words.split())
    plan = configuration.resolved
    return updated_parts(parameter_tensors(configuration.architecture, plan), plan)


def together(
    abreast: Abreast, words: str, folder: Path, processes: int = 2
) -> list[dict[str, Any]]:
    abreast(folder, processes, words=words.split())
    return [json.loads((folder / f"row-{rank}.json").read_text()) for rank in range(processes)]


def assert_as_beside_others(
    abreast: Abreast, words: str, folder: Path, processes: int, alone: Held, held: Holds = states
) -> None:
    """Each rank of `alone` holds what it holds beside as many real processes as there are.

    Gloo's threads keep tensors of an exchange a little longer than it takes, so that a busy
    machine can only add: of some attempts, the least counts.
    """
    least: Held = {rank: dict.fromkeys(wanted, math.inf) for rank, wanted in alone.items()}
    for attempt in range(ATTEMPTS):
        inside = folder / str(attempt)
        inside.mkdir()
        rows = together(abreast, words, inside, processes)
        for rank, known in least.items():
            found = held(rows[rank])
            least[rank] = {name: min(found[name], known[name]) for name in known}
        if least == alone:
            break
    assert least == alone


@pytest.mark.parametrize("way", ["ddp", "ddp-view"])
def test_a_replica_alone_needs_what_it_needs_beside_another(
    measure: Measure, abreast: Abreast, tmp_path: Path, way: str
) -> None:
    words = f"{WORDS} --gpus 2 --data-parallel {way}"
    alone = {0: peaks(measure(words, "cpu"))}
    assert_as_beside_others(abreast, words, tmp_path, 2, alone, peaks)


def test_the_fullest_part_of_the_states_alone_needs_what_it_needs_beside_another(
    measure: Measure, abreast: Abreast, tmp_path: Path
) -> None:
    words = f"{WORDS} --gpus 2 --data-parallel zero1"
    fullest = fullest_rank(parts(words), parse(words.split()).resolved)
    alone = {fullest: peaks(measure(words, "cpu"))}
    assert_as_beside_others(abreast, words, tmp_path, 2, alone, peaks)


def test_four_processes_keep_the_states_of_the_parts_that_the_calculator_hands_out(
    abreast: Abreast, tmp_path: Path
) -> None:
    words = f"{WORDS} --gpus 4 --data-parallel zero1"
    plan = parse(words.split()).resolved
    # on the CPU the number of steps of each weight is counted too
    ours = [state_bytes(part, plan) + BLOCK * len(part) for part in parts(words)]
    assert [row["optimizer"] for row in together(abreast, words, tmp_path, 4)] == ours


@pytest.mark.parametrize(
    ("model", "gpus"), [("gpt2-s", 3), ("gpt2-s", 64), ("validation/configs/mixtral.json", 2)]
)
def test_zero_hands_each_rank_the_weights_that_torch_does(
    measure: Measure, model: str, gpus: int
) -> None:
    words = f"{model} --gpus {gpus} --data-parallel zero1 --sequence-length 32"
    ours = [[item.elements for item in part] for part in parts(words)]
    assert ours == measure(f"call parts_by_torch {words}")


MISTRAL = f"validation/configs/mistral.json --layers 2 {SHAPE}"
EXPERTS = f"validation/configs/deepseek_v2.json --layers 3 {SHAPE} --expert-parallel 2"
# gloo's threads keep work tensors in the same memory for a while, so peaks are not compared
APART: dict[str, tuple[str, int, tuple[int, ...], Holds]] = {
    "a shard of two": (f"{WORDS} --gpus 2 --data-parallel zero2 --accumulation 2", 2, (0,), kept),
    "a shard of four": (f"{WORDS} --gpus 4 --data-parallel fsdp --lora 4", 4, (0,), kept),
    "a share of layers": (f"{MISTRAL} --tensor-parallel 2", 2, (0,), states),
    "of tokens, too": (f"{MISTRAL} --tensor-parallel 2 --sequence-parallel", 2, (0,), states),
    "a share of the experts": (EXPERTS, 2, (0, 1), states),
    "a place on a mesh of shards": (
        f"{MISTRAL} --tensor-parallel 2 --gpus 4 --data-parallel fsdp",
        4,
        (0, 3),
        without_buffers,
    ),
    "a place on a mesh of stages": (
        f"{MISTRAL} --tensor-parallel 2 --pipeline-parallel 2 --accumulation 2 --untied-embeddings",
        4,
        (0, 3),
        without_buffers,
    ),
}


@pytest.mark.parametrize("name", APART)
def test_a_part_alone_holds_what_it_holds_beside_others(
    measure: Measure, abreast: Abreast, tmp_path: Path, name: str
) -> None:
    words, processes, ranks, held = APART[name]
    alone = {rank: held(measure(f"call stage_on_the_cpu {rank} {words}")) for rank in ranks}
    assert_as_beside_others(abreast, words, tmp_path, processes, alone, held)


def test_a_gpu_that_gets_all_rows_needs_what_the_note_says(measure: Measure) -> None:
    words = "validation/configs/qwen3_moe.json --sequence-length 90 --expert-parallel 3"
    words += " --precision half --checkpointing full"
    configuration = parse(words.split())
    architecture, plan = configuration.architecture, configuration.resolved
    most = estimate(with_most_rows(architecture, plan), plan).gpu.total
    assert measure(f"call peak_of_all_rows {words}") == most
    notes = " ".join(estimate(architecture, plan).notes)
    assert f"needs {format_bytes(most)} at its peak" in notes


QWEN, GRANITE = "validation/configs/qwen2.json", "validation/configs/granite.json"


@pytest.mark.parametrize(
    ("model", "way"),
    [
        (f"{QWEN} --tied-embeddings", "1f1b --accumulation 2 --checkpointing full"),
        (f"{QWEN} --untied-embeddings", "interleaved --accumulation 4"),
        (f"{GRANITE} --lora 4 --lora-targets all-linear", "1f1b --accumulation 3"),
    ],
)
def test_a_stage_alone_is_what_it_is_in_a_pipeline_of_real_processes(
    measure: Measure, abreast: Abreast, tmp_path: Path, model: str, way: str
) -> None:
    words = (
        f"{model} --layers 5 --sequence-length 48 --precision fp32 --attention eager "
        f"--pipeline-parallel 2 --pipeline-schedule {way}"
    )
    # peft's first run in a process leaves a buffer behind
    counted = without_buffers if "--lora" in words else states

    def held(row: dict[str, Any]) -> dict[str, float]:
        return counted(row) | {name: row[name] for name in ("inputs", "activations")}

    alone = {rank: held(measure(f"call stage_on_the_cpu {rank} {words}")) for rank in range(2)}
    assert_as_beside_others(abreast, words, tmp_path, 2, alone, held)


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


@pytest.mark.parametrize("model", ["gpt2-s --layers 4", "validation/configs/olmo2.json"])
def test_stages_one_after_another_compute_what_the_model_does(measure: Measure, model: str) -> None:
    words = f"{model} --sequence-length 24 --precision fp32 --dropout 0 --pipeline-parallel 3"
    assert measure(f"call in_stages {words} --accumulation 3") < 1e-5
