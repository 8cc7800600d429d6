"""Nemotron 3 and 4, Minitron (transformers' NemotronForCausalLM).

Source: transformers (models/nemotron/modeling_nemotron.py).
"""

from dataclasses import dataclass

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Made, Tensor
from calculator.autograd.sizes import ONE
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.basic import LayerNorm
from calculator.models.decoder import PartlyTurnedAttention
from calculator.models.llama import Arcee


@dataclass(eq=False)
class ShiftedNorm(LayerNorm):
    """nn.LayerNorm with its weight plus one, in 16 bits under autocast."""

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        t = x.tape
        assert self.bias is not None
        inputs: list[Tensor] = [x, op.shift(t.weight(self.weight)), t.weight(self.bias)]
        if t.autocast is not None:
            inputs = [op.cast(each, t.autocast) for each in inputs]
        row = Made((*x.shape[:-1], ONE), FLOAT32)
        # the sum is no parameter, and is kept for backward with what autocast copied
        return t.operation(inputs, x.shape, inputs[0].dtype, saves=inputs, beside=[row, row])


@dataclass(eq=False)
class Nemotron(Arcee):
    """Arcee's feed-forward layer; norms with biases; a half of each head is turned."""

    norm_class = ShiftedNorm
    attention_class = PartlyTurnedAttention
    turned_share = 0.5

    @classmethod
    def rotary_size(cls, c: Configuration, head_size: int) -> int:
        """The channels of a head that are turned: a part, to which the class joins the others."""
        found = super().rotary_size(c, head_size)
        if found == head_size:
            rule = "must be below 1: heads that are turned whole are not counted"
            raise InputError("partial_rotary_factor", 1, rule)
        return found
