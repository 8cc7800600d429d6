"""LAMB's states and time of one update in 8 and 32 bits, for the parameters of the 2021 run."""

import math
import time
from dataclasses import replace

import torch

from benchmarks.figures import Figure, Table
from training.model.build import config_of
from training.model.configuration import TextToImageConfig
from training.model.transformer import TextToImageTransformer
from training.optimizer.lamb import Lamb
from training.run.recipes import RECIPES

_STEPS = 3  # the fastest counts: what else the machine does only ever adds time


def run(quick: bool) -> Table:
    """Update all parameters of the paper's recipe, or with `quick` every eighth tensor."""
    parameters = _parameters(8 if quick else 1)
    count = sum(parameter.numel() for parameter in parameters)
    figures = [Figure("parameters", count, "")]
    for name, bits in (("32 bits", 32), ("8 bits, bitsandbytes", 8)):
        state_bytes, seconds = _measure(parameters, bits)
        figures.append(Figure(f"{name}: states", state_bytes / count, "B per parameter"))
        figures.append(Figure(f"{name}: one update", seconds, "s"))
    title = f"LAMB on the CPU, {torch.get_num_threads()} threads (the fastest of {_STEPS} updates)"
    return Table(title, figures)


def _parameters(every: int) -> list[torch.nn.Parameter]:
    config = config_of(RECIPES["paper"])
    assert isinstance(config, TextToImageConfig)
    with torch.device("meta"):
        model = TextToImageTransformer(config)
    chosen = list(model.parameters())[::every]
    return [torch.nn.Parameter(torch.randn(parameter.shape) * 0.02) for parameter in chosen]


def _measure(parameters: list[torch.nn.Parameter], bits: int) -> tuple[int, float]:
    """Bytes of all states, and the seconds of the fastest update."""
    optimizer = Lamb(parameters, replace(RECIPES["paper"].optimizer, state_bits=bits))
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter) * 1e-3
    fastest = math.inf
    for _ in range(_STEPS):
        began = time.perf_counter()
        optimizer.step()
        fastest = min(fastest, time.perf_counter() - began)
    state_bytes = sum(
        tensor.numel() * tensor.element_size()
        for parameter in parameters
        for tensor in optimizer.state[parameter].values()
    )
    return state_bytes, fastest
