"""Questions of the tests to the process with the counting device; each answer is JSON."""

import random
from collections.abc import Callable
from contextlib import ExitStack
from difflib import SequenceMatcher
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from calculator.models.registry import TYPES, build
from calculator.plan import Plan
from calculator.techniques.expert_parallel import rows_received, with_most_rows
from calculator.techniques.lora import linear_names
from validation.configuration import Configuration, parse
from validation.contribution import contribute
from validation.counting_device import Log, Place, counting_gpu
from validation.measure import measure, measure_rank
from validation.mesh import Axes, axes_of
from validation.models import build_task
from validation.ranks import ranks
from validation.session import Unwatched, session
from validation.storage import block_bytes

# of types whose small config.json has another name
SMALLEST = {
    "bert": "bert-base",
    "gpt2": "gpt2-s",
    "gptj": "gpt-j-6b",
    "t5": "google/t5-v1_1-small",
}

# operation and format of the product, bytes that no tensor's shape names
PRODUCT = ("aten::_softmax_backward_data", "Byte")


def births(function: Callable[[], object], place: Place = Place.GPU) -> list[tuple[str, int]]:
    """Operations and bytes of all that a function allocates."""
    log = Log()
    log.start()
    function()
    log.stop()
    made = [entry for entry in log.entries() if entry.place is place and entry.bytes > 0]
    return [(entry.operation, entry.bytes) for entry in made]


def storages() -> list[int]:
    """Blocks alive on the GPU with a tensor, a view of it, the view alone, and nothing."""
    log, found = Log(), []

    def count() -> None:
        alive = log.alive().values()
        found.append(sum(1 for _, place in alive if place is Place.GPU) - before)

    before = sum(1 for _, place in log.alive().values() if place is Place.GPU)
    with counting_gpu():
        whole = torch.empty(1000, device="cuda")
        count()
        view = whole[:10].view(2, 5)
        count()
        del whole
        count()
        del view
        count()
    return found


def silu() -> list[Any]:
    """Bytes that SiLU's backward allocates for 1,000 elements."""
    with counting_gpu():
        x = torch.empty(1000, device="cuda", requires_grad=True)
        y, gradient = torch.nn.functional.silu(x), torch.empty(1000, device="cuda")
        return births(lambda: torch.autograd.grad(y, x, gradient))


def in_place_sums() -> list[Any]:
    """Bytes of a backward pass in which three gradients meet, on the GPU and for real."""
    found = []
    for device, place in (("cuda", Place.GPU), ("cpu", Place.CPU)):
        with counting_gpu():
            x = torch.empty(1000, device=device, requires_grad=True)
            y = torch.sin(x) + torch.cos(x) + torch.exp(x)
            gradient = torch.empty(1000, device=device)

            def backward(y: Any = y, gradient: Any = gradient) -> None:
                y.backward(gradient)

            found.append([size for _, size in births(backward, place) if size > 64])
    return found


def workspaces() -> dict[str, list[Any]]:
    """Bytes that kernels allocate beside outputs: embeddings, softmax, both attention kernels."""
    found = {}
    with counting_gpu():
        for name, length in (("embedding", 200), ("small embedding", 100)):
            table = torch.empty(length, 8, device="cuda", requires_grad=True)
            rows = torch.nn.functional.embedding(torch.zeros(4000, dtype=torch.int64).cuda(), table)
            found[name] = births(partial(torch.autograd.grad, rows, table, torch.empty_like(rows)))
        scores = torch.empty(6, 200, device="cuda", requires_grad=True)
        shares = scores.softmax(-1)
        found["softmax"] = births(
            partial(torch.autograd.grad, shares, scores, torch.empty_like(shares))
        )
        for name, dtype in (("efficient", torch.float32), ("flash", torch.bfloat16)):
            shape = (2, 3, 200, 64)  # sequences, heads, tokens, width
            q = torch.empty(shape, device="cuda", dtype=dtype, requires_grad=True)
            out = torch.nn.functional.scaled_dot_product_attention(q, q, q)
            head = torch.empty_like(out)

            def backward(q: Any = q, out: Any = out, head: Any = head) -> None:
                torch.autograd.grad(out, q, head)

            found[name] = births(backward)
        return found


def unlike(words: str) -> list[Any]:
    """Allocations of a step that only the counting GPU or only real memory makes.

    Compared by their order and bytes; numbers of 64 bytes and less are left out, and the product
    that only CUDA's softmax backward makes.
    """
    found = []
    for device in ("counting", "cpu"):
        with session(parse(words.split()), device) as made:
            entries = made.step().entries
        place = made.ledger.place
        entries = [item for item in entries if item.place is place and item.bytes > 64]
        entries = [item for item in entries if (item.operation, item.shape[:4]) != PRODUCT]
        found.append([(item.operation, item.node, item.bytes) for item in entries])
    counted, real = found
    matcher = SequenceMatcher(
        None, [item[2] for item in counted], [item[2] for item in real], autojunk=False
    )
    return [
        (counted[i:j], real[k:m]) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"
    ]


def watched(words: str) -> list[int]:
    """The peak of a step with all marks and hooks, and of one without any."""
    with session(parse(words.split()), "counting") as made:
        first = max(peak.total for peak in made.step().peaks.values())
        ledger = made.ledger
        ledger.start()
        made.training.run(Unwatched())
        ledger.start_micro_step()
        ledger.keep()
        return [first, max(ledger.stop().totals)]


class StandInAllocator:
    """A stand-in for a card's caching allocator, fed by the counting device."""

    def __init__(self) -> None:
        self.log = Log()
        self.log.start()
        self.own = self.log.blocks + 1  # older blocks belong to somebody else
        self.reset()

    def allocated(self) -> int:
        alive = self.log.alive().items()
        mine = (size for block, (size, place) in alive if place is Place.GPU and block >= self.own)
        return sum(map(block_bytes, mine))

    def reset(self) -> None:
        self.start, self.level = self.log.size, self.allocated()

    def highest(self) -> int:
        level = highest = self.level
        sizes: dict[int, int] = {}
        for at, entry in enumerate(self.log.entries()):
            if entry.place is Place.GPU and entry.bytes > 0:
                sizes[entry.block] = block_bytes(entry.bytes)
            if at < self.start or entry.place is not Place.GPU:
                continue
            level += sizes[entry.block] if entry.bytes > 0 else 0
            if entry.bytes < 0 and entry.block >= self.own:
                level -= sizes.get(entry.block, block_bytes(-entry.bytes))
            highest = max(highest, level)
        return highest


def on_a_card(words: str) -> dict[str, Any]:
    """The row of a real card, whose allocator is the counting device's."""
    with counting_gpu(), ExitStack() as stack:
        allocator = StandInAllocator()
        card = SimpleNamespace(name="Stand-In 4000", major=8, minor=0, total_memory=2**34)
        for name, answer in {
            "max_memory_allocated": allocator.highest,
            "reset_peak_memory_stats": allocator.reset,
            "memory_allocated": allocator.allocated,
            "memory_reserved": allocator.allocated,
            "empty_cache": lambda: None,
            "synchronize": lambda: None,
            "get_device_properties": lambda _: card,
        }.items():
            stack.enter_context(patch(f"torch.cuda.{name}", answer))
        stack.enter_context(
            patch("torch._C._cuda_clearCublasWorkspaces", lambda: None, create=True)
        )
        return measure(parse(words.split()), "cuda")


def contribution(folder: str) -> list[str]:
    """Output of `measure` without a model, for a small step and one that no machine can hold."""
    steps = (
        "google/bert_uncased_L-2_H-128_A-2 --batch-size 1 --sequence-length 16",
        "gpt3-175b --batch-size 64",
    )
    return list(contribute("cpu", Path(folder), steps))


def names_unlike() -> dict[str, list[str]]:
    """Linear layers by type that the calculator names otherwise than transformers' class does."""
    from transformers.pytorch_utils import Conv1D

    found = {}
    for kind in TYPES:
        path = Path(f"validation/configs/{kind}.json")
        name = str(path) if path.exists() else SMALLEST.get(kind)
        if name is None:
            continue
        # a small config.json is measured whole: some types want a layer of each kind
        configuration = Configuration(name, Plan(), None if path.exists() else 2)
        architecture = configuration.architecture
        ours = set(linear_names(build(architecture, architecture.tied_embeddings)))
        model: Any = build_task(configuration, "meta").model
        head = model.get_output_embeddings()
        linear = [
            path
            for path, module in model.named_modules()
            if isinstance(module, torch.nn.Linear | Conv1D) and module is not head
        ]
        met = {
            path: {name for name in ours if path.endswith(f".{name}")} or ours & {path}
            for path in linear
        }
        wrong = [path for path, names in met.items() if not names]
        wrong += sorted(ours - set().union(*met.values()))
        if wrong:
            found[kind] = wrong
    return found


def chunk_sizes() -> list[list[int]]:
    """Tokens, vocabulary, width, and the tokens that PyTorch's chunked loss takes at once."""
    draw = random.Random(2021)
    found = []
    for _ in range(200):
        tokens, width = draw.randint(3, 100_000), draw.randint(1, 9000)
        rows = draw.randint(width, 300_000)
        options = torch.nn.LinearCrossEntropyOptions()._adjust(
            tokens, width, rows, torch.bfloat16, torch.device("cuda")
        )
        found.append([tokens, rows, width, options.batch_chunk_size])
    return found


def parts_by_torch(words: str) -> list[list[int]]:
    """Elements of each weight that `ZeroRedundancyOptimizer` hands to each rank."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    configuration = parse(words.split())
    with counting_gpu(), ranks(axes_of(configuration.resolved), "cuda"):
        model = build_task(configuration, "cuda").model
        optimizer: Any = ZeroRedundancyOptimizer(
            model.parameters(), optimizer_class=torch.optim.SGD, lr=1.0
        )
        return [
            [item.numel() for group in groups for item in group["params"]]
            for groups in optimizer._partition_parameters()
        ]


def interleaved_orders() -> list[list[Any]]:
    """GPUs, stages on each, micro-batches, and the passes that PyTorch has each GPU take.

    A pass is true for a forward one, its micro-batch, and the number of the GPU's stage; no GPU has
    any where PyTorch refuses the micro-batches.
    """
    from torch.distributed import pipelining

    def one_pass(action: Any) -> list[Any]:
        is_forward = action.computation_type.name == "FORWARD"
        return [is_forward, action.microbatch_index, action.stage_index // gpus]

    found: list[list[Any]] = []
    for gpus in range(2, 6):
        with ranks(Axes(gpus, 1, 1), "cpu"):
            for own, count in product(range(2, 4), range(1, 13)):
                stages: list[Any] = [
                    pipelining.PipelineStage(
                        torch.nn.Linear(1, 1), place * gpus, own * gpus, torch.device("cpu")
                    )
                    for place in range(own)
                ]
                try:
                    order = pipelining.ScheduleInterleaved1F1B(stages, count).pipeline_order
                except ValueError:
                    order = {}
                passes = [[one_pass(each) for each in turns if each] for turns in order.values()]
                found.append([gpus, own, count, passes])
    return found


def stage_on_the_cpu(words: str) -> dict[str, Any]:
    """The row of one stage of a pipeline in real memory: its number, and a configuration."""
    rank, _, configuration = words.partition(" ")
    return measure_rank(parse(configuration.split()), "cpu", int(rank))


def peaks_of_context(words: str) -> list[int]:
    """The peak of each of the GPUs that divide sequences."""
    configuration = parse(words.split())
    found = []
    for rank in range(configuration.resolved.context_parallel):
        with patch("validation.session.fullest", lambda *_, rank=rank: rank):
            found.append(measure_rank(configuration, "counting", rank)["peak"])
    return found


def peak_of_all_rows(words: str) -> int:
    """The peak of a GPU to which all pairs of a token and an expert come that can come to one."""
    configuration = parse(words.split())
    plan = configuration.resolved
    rows = rows_received(with_most_rows(configuration.architecture, plan), plan)
    with patch("validation.spread.received", lambda _: rows):
        return int(measure(configuration, "counting")["peak"])
