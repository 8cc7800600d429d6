"""Sizes that most types have, by the names of `Architecture`."""

from calculator.autograd.sizes import size

HIDDEN, HEADS, HEAD, FEED, VOCABULARY = (
    size(name)
    for name in ("hidden_size", "heads", "head_size", "feed_forward_size", "vocabulary_size")
)
