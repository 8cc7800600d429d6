"""Sentences of the grammar, which a recognizer of its own reads."""

import pytest

from calculator.errors import InputError
from tests.training.shapes.sentences import is_sentence
from training.shapes import grammar


def test_every_text_is_made_of_sentences_with_the_words_that_are_listed() -> None:
    seen: set[str] = set()
    for index in range(2000):
        text = grammar.write_text(index)
        *sentences, rest = text.split(".")
        assert not rest
        assert 1 <= len(sentences) <= 3
        assert all(is_sentence(sentence.strip() + " .") for sentence in sentences)
        seen.update(text.split())
    assert seen == set(grammar.WORDS)


def test_a_negative_index_is_refused() -> None:
    with pytest.raises(InputError, match="index"):
        grammar.write_text(-1)
