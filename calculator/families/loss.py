"""Cross-entropy over the vocabulary.

Source: transformers (loss/loss_utils.py), torch (log_softmax, nll_loss).
"""

from calculator.graph import Tensor
from calculator.ledger import Moment
from calculator.tape import Tape


def causal_loss(t: Tape, logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of GPT-2 and GPT-J: logits in 32 bits, labels shifted by one."""
    t.ledger.begin(Moment.LOSS)
    wide = t.cast(logits, 4)
    padded = t.like(labels)
    shifted = t.like(labels)
    loss = cross_entropy(t, wide, shifted)
    del padded
    return loss


def cross_entropy(t: Tape, logits: Tensor, targets: Tensor) -> Tensor:
    """log_softmax keeps its result; nll_loss keeps it too, in 32 bits under autocast."""
    result = t.like(logits)
    t.record([logits], [result], [result])
    if t.autocasting:
        result = t.cast(result, 4)
    loss, total_weight = t.empty("1", result.item), t.empty("1", result.item)
    t.record([result], [loss], [result, targets, total_weight])
    return loss
