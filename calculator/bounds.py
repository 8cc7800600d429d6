"""The range of a real card's reserved bytes around the computed ones, by the kind of plan.

What a program does between its tensors' births decides where the allocator puts them, and a matrix
of attention scores that finds no room takes a segment of its own. So the figure of a real card is
some per cent off, by the kind of plan. These ranges are fitted: to 57 steps of one Tesla T4 with
LoRA (fitcheck-llm 0.3.1, torch 2.10 and 2.14), to 139 of one H100 that we measured (torch 2.11),
and for several GPUs to two of torchtitan's runs. Of 157 random plans that we then measured on an
H200, 150 are within: 49 of 51 with LoRA and 101 of 106 that train all weights.
"""

from typing import Final, NamedTuple

from calculator.plan import Attention, BaseBits, Plan


class Range(NamedTuple):
    """Real bytes over computed ones in thousandths, and the measured steps that it stands on."""

    low: int
    high: int
    steps: int


# adapters without matrices of scores, nothing packed: 47 of 50 steps within
FUSED: Final = Range(970, 1040, 50)
# packed weights, which transformers loads in no fixed order: -0.4 to 7.4 %
PACKED: Final = Range(990, 1075, 17)
# matrices of scores, of which one more or less is reserved: 33 of 35 within
WITH_SCORES: Final = Range(950, 1100, 35)
# all weights, on a Hopper: 88 of 94 steps within
WHOLE: Final = Range(960, 1060, 94)
# FSDP's blocks wait for other streams: 1.6 % once known differences are counted, 10.3 % without
SEVERAL: Final = Range(990, 1090, 2)


def range_of(plan: Plan) -> Range:
    """The range for a resolved plan.

    >>> range_of(Plan(lora=8, attention="efficient"))
    Range(low=970, high=1040, steps=50)
    """
    if plan.all_gpus > 1:
        return SEVERAL
    if not plan.lora:
        return WHOLE
    if plan.attention in (Attention.EAGER, Attention.MATH):
        return WITH_SCORES
    if plan.quantization is not BaseBits.NONE:
        return PACKED
    return FUSED
