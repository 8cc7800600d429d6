"""Heads whose width is no multiple of 8: flash pads them, as PyTorch 2.13 was measured to do.

Every expected number is what the counting device of `validation` measured on the real class.
"""

from dataclasses import replace

import pytest

from calculator.catalog import MODELS
from calculator.estimate import estimate
from calculator.plan import Attention, Plan, Precision
from tests.calculator.plans import attention_kernels


@pytest.mark.parametrize(
    ("model", "sizes", "options", "forward", "loss", "backward", "update"),
    [
        (
            "gpt2-s",
            {"hidden_size": 120, "heads": 10, "feed_forward_size": 480},
            {"batch_size": 3, "precision": "amp"},
            12_737_024,
            14_935_552,
            13_756_928,
            6_142_976,
        ),
        (
            "bert-base",
            {"hidden_size": 132, "heads": 11, "feed_forward_size": 400},
            {"batch_size": 2, "precision": "mixed"},
            7_260_160,
            7_879_680,
            7_624_192,
            9_098_240,
        ),
    ],
)
def test_flash_pads_heads_of_twelve_to_sixteen(
    model: str,
    sizes: dict[str, int],
    options: dict[str, object],
    forward: int,
    loss: int,
    backward: int,
    update: int,
) -> None:
    odd = replace(MODELS[model], layers=3, vocabulary_size=1003, head_size=12, **sizes)
    plan = Plan.parse({"sequence_length": 77, "optimizer": "sgd", **options})
    peaks = [memory.total for memory in estimate(odd, plan).phases.values()]
    assert peaks == [forward, loss, backward, update]


@pytest.mark.parametrize(
    ("head_size", "precision", "takes"),
    [(16, "fp32", True), (12, "fp32", True), (10, "fp32", False), (12, "amp", False)],
)
def test_the_efficient_kernel_wants_heads_of_whole_16_bytes(
    head_size: int, precision: str, takes: bool
) -> None:
    # torch's sdp_utils.cpp: multiples of 8 elements in 16 bits, of 4 in 32 bits
    shape = {"hidden_size": 10 * head_size, "heads": 10, "head_size": head_size}
    odd = replace(MODELS["bert-base"], **shape)
    found = attention_kernels(odd, Precision(precision), 64)
    assert (Attention.EFFICIENT in found) is takes


def test_heads_that_no_fused_kernel_takes_run_in_the_reference_one() -> None:
    odd = replace(MODELS["bert-base"], layers=3, hidden_size=100, heads=10, head_size=10)
    chosen, math = (
        estimate(odd, Plan.parse({"precision": "fp32", "attention": name})).phases
        for name in ("sdpa", "math")
    )
    assert chosen == math
