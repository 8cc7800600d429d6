"""Cross-entropy over the vocabulary.

Source: transformers (loss/loss_utils.py), torch (log_softmax, nll_loss).
"""

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, INT64
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import plus
from calculator.parts import Phase


def masked_loss(logits: Tensor, labels: Tensor, wide: bool = False) -> Tensor:
    """The loss over labels that stand at their own places, of `wide` logits: in 32 bits."""
    logits.tape.ledger.begin(Phase.LOSS)
    logits.tape.hand_out(logits)
    return op.cross_entropy(op.cast(logits, FLOAT32) if wide else logits, labels)


def causal_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of a causal model, of logits in 32 bits."""
    logits.tape.ledger.begin(Phase.LOSS)
    wide = op.cast(logits, FLOAT32)
    padded, shifted = shifted_labels(labels)
    loss = op.cross_entropy(wide, shifted)
    del padded  # held until here
    return loss


def shifted_labels(labels: Tensor) -> tuple[Tensor, Tensor]:
    """A causal model's labels padded by one, and shifted by one."""
    t = labels.tape
    batch, length = labels.shape
    padded = t.empty((batch, plus(length, 1)), INT64)
    # the shifted labels are a slice, which is copied unless there is one sequence
    shifted = op.part(padded, batch, length)
    if not t.mode.one_sequence:
        shifted = t.empty((batch, length), INT64)
    return padded, shifted
