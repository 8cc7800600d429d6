"""Captions as token ids: the words of the shapes, or any Hugging Face tokenizer."""

from collections.abc import Sequence
from typing import Any

import torch

from calculator.errors import InputError
from training.run.recipes import ModelSettings
from training.run.status import first_line
from training.shapes.samples import WORDS


class WordTokenizer:
    """One id for each word of the shapes' captions, from 1; 0 fills up short captions."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._ids = {word: index for index, word in enumerate(WORDS, start=1)}

    def __call__(self, captions: Sequence[str]) -> torch.Tensor:
        """Token ids of captions: int64 [B, T].

        Raises:
            InputError: a word that the shapes' captions do not have, or too many words.
        """
        ids = torch.zeros((len(captions), self.length), dtype=torch.int64)
        for row, caption in enumerate(captions):
            words = caption.lower().split()
            unknown = [word for word in words if word not in self._ids]
            if unknown:
                rule = f"has the unknown word {unknown[0]!r}; known are: {', '.join(WORDS)}"
                raise InputError("caption", caption, rule)
            if len(words) > self.length:
                raise InputError("caption", caption, f"must have at most {self.length} words")
            ids[row, : len(words)] = torch.tensor([self._ids[word] for word in words])
        return ids


class HubTokenizer:
    """A tokenizer of transformers, such as T5's; its padding becomes id 0."""

    def __init__(self, name: str, length: int, vocabulary_size: int) -> None:
        self._tokenizer: Any = find_tokenizer(name)
        if len(self._tokenizer) > vocabulary_size:
            rule = f"has {len(self._tokenizer)} tokens, the model knows {vocabulary_size}"
            raise InputError("tokenizer", name, rule)
        self.length = length

    def __call__(self, captions: Sequence[str]) -> torch.Tensor:
        """Token ids of captions, cut at T: int64 [B, T]; padding alone says where they end."""
        encoded = self._tokenizer(
            list(captions), add_special_tokens=False, truncation=True, max_length=self.length
        )
        ids = torch.zeros((len(captions), self.length), dtype=torch.int64)
        for row, tokens in enumerate(encoded["input_ids"]):
            ids[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.int64)
        return ids


def find_tokenizer(name: str) -> Any:
    """A tokenizer of transformers from a folder or the Hub.

    Raises:
        InputError: there is none.
    """
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        rule = f"must be a Hugging Face tokenizer ({first_line(error)})"
        raise InputError("tokenizer", name, rule) from error


def load_tokenizer(name: str, model: ModelSettings) -> WordTokenizer | HubTokenizer:
    """The tokenizer that a text-to-image model was made for."""
    if name == "shapes":
        return WordTokenizer(model.text_length)
    return HubTokenizer(name, model.text_length, model.text_vocabulary_size)
