"""DeepSpeed's ZeRO beside the calculator: ``python -m validation.deepspeed_zero``.

Real processes train a small model over gloo on the CPU, under DeepSpeed's stages 1, 2 and 3. Each
counts the storages that it holds, by part.
"""

import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from calculator.estimate import estimate
from calculator.parts import Phase
from validation.compare import EXACT
from validation.configuration import Configuration, parse
from validation.rows import Row, write_whole

ROWS: Final = Path(__file__).with_name("deepspeed.jsonl")
VERSION: Final = "0.19.8"
SMALL: Final = "validation/configs/llama-wide.json"
# Models with numbers of GPUs; 3 do not divide all of the second one's tensors.
MODELS: Final = {"gpt2-s": 2, SMALL: 3}
PERSISTENT: Final = 100_000  # DeepSpeed's default: parameters up to this size stay whole
MICRO_BATCHES: Final = 2
# Our plan for each stage. On one GPU each of them holds 16 bytes per weight, as DeepSpeed does.
PLANS: Final = {
    1: "--data-parallel zero1 --precision amp",
    2: "--data-parallel zero2 --precision mixed",
    3: "--data-parallel fsdp --precision mixed",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One training run; stage 3 keeps parameters of up to `persistent` elements whole."""

    model: str
    gpus: int
    stage: int
    persistent: int = 0

    @property
    def ours(self) -> Configuration:
        """Our plan that divides the same things."""
        return _configuration(self, PLANS[self.stage])


def runs() -> Iterator[Run]:
    """All runs of the committed rows."""
    for model, gpus in MODELS.items():
        yield from (Run(model, gpus, stage) for stage in PLANS)
    yield Run(SMALL, MODELS[SMALL], 3, PERSISTENT)


def _configuration(run: Run, words: str) -> Configuration:
    shape = f"--gpus {run.gpus} --sequence-length 16"
    return parse(f"{run.model} {shape} {words}".split())


def counted(run: Run) -> tuple[int, int, int]:
    """Bytes of weights, gradients and states that the calculator counts for our plan."""
    configuration = run.ours
    report = estimate(configuration.architecture, configuration.resolved)
    weights, gradients, states = (getattr(report.phases[Phase.UPDATE], name) for name in EXACT)
    return weights, gradients, states


def published(run: Run) -> tuple[float, float, float]:
    r"""Bytes per weight of 16-bit weights and gradients, and of masters with Adam's moments.

    $$2 + 2 + 12/N, \quad 2 + 2/N + 12/N, \quad 2/N + 2/N + 12/N$$

    for stages 1, 2 and 3 on N GPUs.

    Source: zero (section 5)
    """
    shared = 1 / run.gpus
    weights = 2 * (shared if run.stage >= 3 else 1)
    return weights, 2 * (shared if run.stage >= 2 else 1), 12 * shared


def measure(run: Run) -> Row:
    """The bytes of each rank's parts.

    Raises:
        ModuleNotFoundError: without DeepSpeed.
    """
    if find_spec("deepspeed") is None:
        raise ModuleNotFoundError(
            f"DeepSpeed is not installed; install deepspeed=={VERSION}, see validation/README.md"
        )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    words = (sys.executable, "-m", "validation.deepspeed_zero", json.dumps(asdict(run)))
    processes = [
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=_environment(run, port, at))
        for at in range(run.gpus)
    ]
    try:
        ranks = [process.communicate(timeout=500)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    if any(process.returncode for process in processes):
        raise RuntimeError(f"{run} failed; the ranks' errors are above")
    found = [json.loads(text.splitlines()[-1]) for text in ranks]  # DeepSpeed prints lines, too
    versions = {name: version(name) for name in ("deepspeed", "torch", "transformers")}
    return {**asdict(run), "ranks": found, "versions": versions}


def _environment(run: Run, port: int, rank: int) -> dict[str, str]:
    own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": run.gpus, "MASTER_PORT": port}
    fixed = {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    return {**os.environ, **fixed, **{name: str(value) for name, value in own.items()}}


def _train(run: Run) -> dict[str, int]:
    """One rank's bytes by part in its second step, counted in that rank's process."""
    import deepspeed
    import torch

    from validation.models import build_task

    task = build_task(_configuration(run, "--precision half"), "cpu")
    parameters = sum(each.numel() for each in task.model.parameters())
    optimizer = torch.optim.AdamW(task.model.parameters())
    engine, optimizer, *_ = deepspeed.initialize(
        model=task.model, optimizer=optimizer, config=_settings(run)
    )
    held = {}
    for _ in range(2):
        for _ in range(MICRO_BATCHES):
            engine.backward(engine(**task.inputs).loss)
            held[engine.is_gradient_accumulation_boundary()] = _parts(engine, optimizer)
            engine.step()
    after = _parts(engine, optimizer)
    during = {
        "gradients_between_micro_batches": held[False]["gradients"],
        "gradients_before_update": held[True]["gradients"],
    }
    return {"parameters": parameters, **after, **during}


def _settings(run: Run) -> dict[str, Any]:
    bucket = 50_000_000 if run.model == "gpt2-s" else 1_000_000  # above any tensor
    zero = {"stage": run.stage, "reduce_bucket_size": bucket, "allgather_bucket_size": bucket}
    if run.stage == 3 and run.persistent != PERSISTENT:
        zero["stage3_param_persistence_threshold"] = run.persistent
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": MICRO_BATCHES,
        "bf16": {"enabled": True},
        "zero_optimization": zero,
        "zero_force_ds_cpu_optimizer": False,  # torch's AdamW, not the one for offload
    }


def _parts(engine: Any, optimizer: Any) -> dict[str, int]:
    """Bytes of all storages that are alive, by the first part that has them; `rest` has no name."""
    parameters = list(engine.module.parameters())

    def own(*names: str) -> list[Any]:
        return [getattr(optimizer, name, None) for name in names]

    groups = {
        "weights": [
            *(each.data for each in parameters),
            *(getattr(each, "ds_tensor", None) for each in parameters),
            *own("bit16_groups_flat", "lp_param_buffer"),
        ],
        "buffers": list(engine.module.buffers()),
        "masters": own("single_partition_of_fp32_groups", "fp32_partitioned_groups_flat"),
        "moments": list(optimizer.optimizer.state.values()),
        "gradients": [
            *(each.grad for each in parameters),
            *own("averaged_gradients", "all_grad_tensors", "grads_in_partition"),
            *own("grad_partitions_flat_buffer"),
        ],
        "buckets": [each.buffer for each in optimizer.ipg_buckets.values()],
    }
    gc.collect()
    groups["rest"] = [each for each in gc.get_objects() if _is_tensor(each)]
    seen: set[int] = set()
    return {name: _bytes(items, seen) for name, items in groups.items()}


def _bytes(items: Iterable[Any], seen: set[int]) -> int:
    """Bytes of the tensors' storages that are not in `seen`, and put them there."""
    found = {each.untyped_storage().data_ptr(): each.untyped_storage() for each in _tensors(items)}
    total: int = sum(each.nbytes() for address, each in found.items() if address not in seen)
    seen.update(found)
    return total


def _tensors(items: Iterable[Any]) -> Iterator[Any]:
    """All tensors with memory in lists and dictionaries, however deep."""
    for item in items:
        if _is_tensor(item):
            if item.device.type != "meta":
                yield item
        elif type(item) in (list, tuple, dict):
            yield from _tensors(item.values() if type(item) is dict else item)


def _is_tensor(item: Any) -> bool:
    import torch

    return issubclass(type(item), torch.Tensor)


def read_runs(path: Path = ROWS) -> list[tuple[Run, Row]]:
    """The committed runs and what each of their ranks held."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [(Run(*(row[name] for name in Run.__slots__)), row) for row in rows]


def held(row: Row) -> tuple[int, int, int]:
    """The fullest rank's bytes of weights, of gradients, and of masters with moments.

    Its gradients are those that it holds between two micro-batches of a step.
    """
    ranks = [_three(rank) for rank in row["ranks"]]
    return max(ranks, key=sum)


def _three(rank: dict[str, int]) -> tuple[int, int, int]:
    states = rank["masters"] + rank["moments"]
    return rank["weights"], rank["gradients_between_micro_batches"], states


def main(words: list[str]) -> int:
    """Measure everything, or be one rank of the run in `words`."""
    if words:
        print(json.dumps(_train(Run(**json.loads(words[0])))), flush=True)
        return 0
    try:
        for run in runs():
            _keep(run, measure(run))
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _keep(run: Run, row: Row) -> None:
    """Write a run's row in the place of its earlier one."""
    rows = {**(dict(read_runs()) if ROWS.exists() else {}), run: row}
    lines = (json.dumps(rows[each], separators=(",", ":")) for each in runs() if each in rows)
    write_whole(ROWS, "".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
