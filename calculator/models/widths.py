"""Sizes that most types have, by the names of `Architecture`."""

from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import at_least, size

HIDDEN, HEADS, HEAD, FEED, VOCABULARY = (
    size(name)
    for name in ("hidden_size", "heads", "head_size", "feed_forward_size", "vocabulary_size")
)
# of a table, enlarged where the sequence is longer than the model's own
POSITIONS = at_least(size("positions"), SEQUENCE)
