"""The step that all families share: forward, loss, backward."""

from typing import assert_never

from calculator.architecture import Family
from calculator.families import gpt2
from calculator.families.structure import Structure
from calculator.tape import Moment, Tape, Tensor


def step(t: Tape, s: Structure) -> None:
    """Forward, loss and backward of one micro-batch, on token ids and labels of 8 bytes each."""
    t.ledger.begin(Moment.FORWARD)
    t.inputs = (t.input("N"), t.input("M" if s.family is Family.T5 else "N"))
    loss = _forward(t, s)
    t.end_autocast()
    t.backward([loss], [t.like(loss)])


def _forward(t: Tape, s: Structure) -> Tensor:
    match s.family:
        case Family.GPT2:
            return gpt2.forward(t, s)
        case Family.BERT | Family.T5 | Family.GPTJ | Family.DALLE:
            raise AssertionError
        case _:
            assert_never(s.family)
