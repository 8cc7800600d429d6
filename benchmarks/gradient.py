"""Compression of a real gradient: its values in 32, 16 and 8 bits, and the error of each.

The gradient is that of the rehearsal's last checkpoint for one global step's sequences of captioned
shapes, sent through the trainer's own wire formats. Besides the table, the histograms go to
benchmarks/gradient.json, from which 'How it works' draws them.
"""

import json
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.figures import Figure, Table, machine
from tools.console import ROOT
from tools.files import write_atomically

PATH = ROOT / "benchmarks/gradient.json"
CHECKPOINT = "docs/live/rehearsal/checkpoints/000450"
SHAPES = 512  # captioned pictures from which both batches are drawn
# In 8 bits, hivemind rounds to 256 levels from 3 standard deviations below the mean to 3 above.
LEVELS, SIGMAS = 256, 6
WIDE_BINS, LEVELS_IN_A_BIN = 128, 4  # 12 standard deviations
ZOOM_FROM, ZOOM_LEVELS, BINS_IN_A_LEVEL = 16, 8, 4
METHOD = (
    "Gradients of the mean loss, in 32 bits, of the checkpoint named, for two batches that share "
    "no picture. Each tensor goes through training.averaging.wire's formats and back, as on its "
    "way to one other peer: 32 bits as it is, 16 bits in float16, 8 bits as the rehearsal's "
    "recipe has it, with tensors below its threshold in 16. An error is the length of the "
    "difference divided by the length of the gradient. Histograms are of the largest tensor; "
    "places count standard deviations from its mean."
)


def run(quick: bool) -> Table:
    """Measure the gradient of the recipe's batch, or with `quick` of an eighth of it."""
    from training.run.recipes import RECIPES

    recipe = RECIPES["rehearsal"]
    content = measure(recipe.swarm.target_batch_size // (8 if quick else 1))
    words = machine("") | {"torch": version("torch"), "hivemind": version("hivemind")}
    del words["chromium"]
    path = ROOT / "bench/gradient.json" if quick else PATH
    content = {"version": 1, "method": METHOD, "machine": words, **content}
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
    figures = [Figure("difference to another batch's gradient", content["other_batch"], "")]
    for sent in content["formats"]:
        name = f"{sent['bits']} bits"
        figures += [
            Figure(f"{name}: bytes of the whole gradient", sent["bytes"], "B"),
            Figure(f"{name}: error of the whole gradient", sent["error"], ""),
            Figure(f"{name}: error of the largest tensor", sent["tensor_error"], ""),
        ]
    return Table(f"Gradient of {content['sequences']} sequences, sent once", figures)


def measure(sequences: int, shapes: int = SHAPES) -> dict[str, Any]:
    """The gradient of so many sequences in each format, for benchmarks/gradient.json."""
    from training.averaging.wire import WireCompression, WireFormat, expected_bytes
    from training.data.encode import encode
    from training.data.streaming import stream
    from training.model import checkpoint
    from training.pictures.codes import CodeModel
    from training.run.recipes import RECIPES

    recipe = RECIPES["rehearsal"]
    model = checkpoint.load(ROOT / CHECKPOINT).train()
    with TemporaryDirectory() as folder:
        encode("shapes", Path(folder), recipe.data, CodeModel.load("shapes"), shapes)
        batches = stream(recipe, b"gradient", folder, sequences)
        first, second = (_gradient(model, next(batches)) for _ in range(2))
    name = max(first, key=lambda one: first[one].numel())
    formats = {32: WireFormat.EXACT, 16: WireFormat.FLOAT16, 8: WireFormat.ADAPTIVE}
    rows = []
    for bits, wire_format in formats.items():
        wire = WireCompression(wire_format, recipe.swarm.compression_threshold)
        sent = {one: through(wire, tensor) for one, tensor in first.items()}
        rows.append(
            {
                "bits": bits,
                "bytes": expected_bytes(list(first.values()), wire),
                "error": difference(sent, first),
                "tensor_error": difference({name: sent[name]}, first),
                "values": int(sent[name].unique().numel()),
                "from_beyond": error_from_beyond(sent[name], first[name]),
                **histograms(sent[name], first[name]),
            }
        )
    return {
        "checkpoint": CHECKPOINT,
        "sequences": sequences,
        "parameters": sum(tensor.numel() for tensor in first.values()),
        "threshold": recipe.swarm.compression_threshold,
        "in_8_bits": sum(
            tensor.numel()
            for tensor in first.values()
            if tensor.numel() >= recipe.swarm.compression_threshold
        ),
        "other_batch": difference(second, first),
        "tensor": describe(name, first[name]),
        "formats": rows,
    }


def describe(name: str, tensor: Any) -> dict[str, Any]:
    """A tensor's name, size and spread, and the share of it that 8 bits cut off."""
    places = _places(tensor, tensor)
    return {
        "name": name,
        "shape": list(tensor.shape),
        "elements": tensor.numel(),
        "standard_deviation": float(tensor.std()),
        "farthest": float(places.abs().max()),
        "beyond_3_sigma": float((places.abs() > SIGMAS / 2).double().mean()),
    }


def through(wire: Any, tensor: Any) -> Any:
    """The tensor as it arrives at another peer."""
    from hivemind.compression.base import CompressionInfo

    return wire.extract(wire.compress(tensor, CompressionInfo.from_tensor(tensor)))


def difference(sent: dict[str, Any], exact: dict[str, Any]) -> float:
    """The length of the difference, relative to the length of the exact tensors together."""
    lost = sum(float((sent[name].double() - exact[name].double()).square().sum()) for name in sent)
    return float((lost / sum(float(exact[name].double().square().sum()) for name in sent)) ** 0.5)


def error_from_beyond(sent: Any, exact: Any) -> float:
    """The part of the squared error that elements beyond the outermost levels have."""
    lost = (sent.double() - exact.double()).square().flatten()
    beyond = _places(exact, exact).abs() > SIGMAS / 2
    return float(lost[beyond].sum() / lost.sum()) if lost.any() else 0.0


def histograms(sent: Any, exact: Any) -> dict[str, Any]:
    """Counts of the elements of `sent` by place, in standard deviations of `exact`.

    `wide` has bins of four of the 8-bit format's levels each, `zoom` four bins for each level; all
    edges between levels are edges of bins: rounding moves no element into another level's bins.
    """
    level = SIGMAS / LEVELS
    places = _places(sent, exact) / level + 0.5  # whole numbers are the edges between levels
    half = WIDE_BINS * LEVELS_IN_A_BIN // 2
    wide = _counts(places, -half, half, WIDE_BINS)
    zoom = _counts(places, ZOOM_FROM, ZOOM_FROM + ZOOM_LEVELS, ZOOM_LEVELS * BINS_IN_A_LEVEL)
    return {"wide": wide, "outside": sent.numel() - sum(wide), "zoom": zoom}


def _counts(places: Any, low: int, high: int, bins: int) -> list[int]:
    import torch

    inside = places[(places >= low) & (places < high)]
    numbers = ((inside - low) * bins / (high - low)).long()
    return [int(count) for count in torch.bincount(numbers, minlength=bins)]


def _places(sent: Any, exact: Any) -> Any:
    """Standard deviations from the mean, as the 8-bit format measures them."""
    exact = exact.double()
    return ((sent.double() - exact.mean()) / exact.std()).flatten()


def _gradient(model: Any, batch: Any) -> dict[str, Any]:
    model.zero_grad()
    model(**batch).loss.backward()
    return {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
