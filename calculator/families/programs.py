"""The step that all families share: forward, loss, backward."""

from typing import assert_never

from calculator.architecture import Family
from calculator.families import bert, dalle, gpt2, gptj, t5
from calculator.families.structure import Structure
from calculator.graph import Tensor
from calculator.ledger import Moment
from calculator.tape import Tape


def step(t: Tape, s: Structure) -> None:
    """Forward, loss and backward of one micro-batch, on token ids and labels of 8 bytes each."""
    t.ledger.begin(Moment.FORWARD)
    t.inputs = tuple(t.input(elements) for elements in input_shapes(s.family))
    loss = _forward(t, s)
    t.end_autocast()
    t.backward([loss], [t.like(loss)])


def input_shapes(family: Family) -> tuple[str, str]:
    """Token ids and labels; DALL-E reads text tokens and image codes."""
    match family:
        case Family.T5:
            return "N", "M"
        case Family.DALLE:
            return "B*t", "B*i"
        case Family.BERT | Family.GPT2 | Family.GPTJ:
            return "N", "N"
        case _:
            assert_never(family)


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
        case Family.DALLE:
            return dalle.forward(t, s)
        case _:
            assert_never(s.family)
