"""The step that all families share: forward, loss, backward."""

from typing import assert_never

from calculator.architecture import Family
from calculator.families import bert, gpt2, gptj, t5
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
        case Family.BERT:
            return bert.forward(t, s)
        case Family.T5:
            return t5.forward(t, s)
        case Family.GPTJ:
            return gptj.forward(t, s)
        case _:
            assert_never(s.family)
