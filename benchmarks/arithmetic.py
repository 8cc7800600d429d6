"""Arithmetic of one sequence of the 2021 run's model: what is executed, and what has to be."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from benchmarks.figures import Figure, Table
from training.model.attention import AttentionKind, Kernel, attend, attention_mask
from training.model.build import config_of
from training.model.configuration import TextToImageConfig
from training.model.layers import DepthWeights, SharedWeights
from training.model.reversible import Branch, recompute
from training.model.transformer import TextToImageTransformer
from training.run.recipes import PAPER

CPU = torch.device("cpu")
_ROUNDS = 3  # the fastest counts: what else the machine does only ever adds time


def run(quick: bool) -> Table:
    """Count a training step on one sequence, and time each kind of attention by each kernel."""
    config = config_of(PAPER)
    assert isinstance(config, TextToImageConfig)
    figures = [
        Figure("executed, whole masks", executed_flops(config, in_lines=False) / 1e12, "TFLOP"),
        Figure("executed, line by line", executed_flops(config, in_lines=True) / 1e12, "TFLOP"),
        Figure("useful", useful_flops(config) / 1e12, "TFLOP"),
    ]
    for kind in (AttentionKind.ROW, AttentionKind.COLUMN, AttentionKind.CONVOLUTIONAL):
        for kernel in (Kernel.SDPA, Kernel.LINES):
            seconds = attention_seconds(config, kind, kernel, 1 if quick else _ROUNDS)
            figures.append(Figure(f"{kind} attention, {kernel}", 1000 * seconds, "ms"))
    figures += compiled_branches(config, 1 if quick else _ROUNDS)
    title = (
        "A step on one sequence of the paper's model; attention forward and back on the CPU, "
        f"{torch.get_num_threads()} threads"
    )
    return Table(title, figures)


def executed_flops(config: TextToImageConfig, in_lines: bool) -> int:
    """Floating-point operations of a forward and a backward pass, as PyTorch counts them."""
    with torch.device("meta"):
        model = TextToImageTransformer(config)
        words = torch.ones(1, config.text_length, dtype=torch.long)
        codes = torch.ones(1, config.layout.image_length, dtype=torch.long)
    if in_lines:
        model.attend_in_lines()
    counter = _Counter()
    with counter:
        model(words, codes).loss.backward()
    return counter.flops


class _Counter(TorchDispatchMode):
    """Adds up what PyTorch's formulas say of each operation.

    PyTorch's own counter follows modules by hooks, which reversible layers do not get along with.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and count it."""
        out = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.flops += int(formula(*args, **(kwargs or {}), out_val=out))
        return out


def useful_flops(config: TextToImageConfig) -> int:
    """Those of a model that recomputes nothing and multiplies no pair that a mask leaves out.

    Two for each weight of a matrix and position, and two for each channel of a pair that is seen,
    once for its score and once for its value; three times as many forward and back as forward.
    """
    layout, width = config.layout, config.hidden_size
    inner = config.num_attention_heads * config.head_size
    matrices = 4 * width * inner + 3 * config.feed_forward_multiplier * width**2
    forward = 0
    for depth in range(config.num_hidden_layers):
        kind = config.attention_kind(depth)
        seen = int(attention_mask(kind, layout, config.convolution_kernel, CPU).sum())
        forward += 2 * matrices * layout.positions + 4 * inner * seen
    words = config.text_vocabulary_size + config.text_length
    forward += 2 * width * words * layout.text_length
    forward += 2 * width * config.image_vocabulary_size * layout.image_length
    return 3 * forward


def attention_seconds(
    config: TextToImageConfig, kind: AttentionKind, kernel: Kernel, rounds: int
) -> float:
    """Seconds of processor time of one layer's attention, forward and back, of one sequence."""
    shape = (3, 1, config.num_attention_heads, config.layout.positions, config.head_size)
    parts = torch.randn(shape, requires_grad=True)

    def once() -> None:
        query, key, value = parts.unbind(0)
        mixed = attend(query, key, value, kind, config.layout, config.convolution_kernel, kernel)
        mixed.sum().backward()

    once()  # makes the tables
    return min(_seconds(once) for _ in range(rounds))


def compiled_branches(config: TextToImageConfig, rounds: int) -> list[Figure]:
    """A reversible layer's branches under `torch.compile`, run again and back.

    Wall-clock seconds: the compiler's own threads would not count as this program's.
    """
    own, shared = DepthWeights(config, 0), SharedWeights(config)
    for parameter in (*own.parameters(), *shared.parameters()):
        torch.nn.init.normal_(parameter, std=0.02)
    own.in_lines = True
    layer = own.with_shared(shared, None, 0)
    value = torch.randn(1, config.layout.positions, config.hidden_size)
    figures = []
    for name, branch, parameters in (
        ("attention branch", layer.f, layer.f_parameters),
        ("feed-forward branch", layer.g, layer.g_parameters),
    ):
        for way, call in (("eager", branch), ("compiled", torch.compile(branch))):

            def once(call: Branch = call, parameters: Any = parameters) -> None:
                recompute(call, value, parameters, torch.ones_like(value))

            once()  # makes the tables, and compiles
            seconds = min(_seconds(once, time.perf_counter) for _ in range(rounds))
            figures.append(Figure(f"{name}, {way}", 1000 * seconds, "ms"))
    return figures


def _seconds(call: Callable[[], None], clock: Callable[[], float] = time.process_time) -> float:
    began = clock()
    call()
    return clock() - began
