"""Encoders whose head predicts masked tokens.

Source: transformers (models/bert/modeling_bert.py, BertLMPredictionHead).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.sizes import Size
from calculator.configuration import Configuration
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.loss import masked_loss
from calculator.models.keys import read_shape
from calculator.models.model import LanguageModel
from calculator.models.widths import HIDDEN, VOCABULARY


@dataclass(eq=False)
class MaskedModel(LanguageModel, ABC):
    """An encoder, and dense layer, GELU, norm and the product with all words.

    Attributes:
        tied: whether the product is by the table of words.
        transform: the module's name of the dense layer.
        wide_loss: whether the loss is of logits in 32 bits.
    """

    tied: bool

    language_head = ("dense", "norm", "unused_bias", *LanguageModel.language_head)
    has_reversible_class = False
    transform: ClassVar[str] = "transform.dense"
    wide_loss: ClassVar[bool] = False

    @property
    def head_width(self) -> Size:
        """Width of what the dense layer makes."""
        return HIDDEN

    def make_head(
        self, words: Embedding, dense: bool = True, norm: bool = True, product: bool = True
    ) -> None:
        """The head's layers, after all others; each with a bias or without."""
        bias = Parameter((VOCABULARY,)) if product else None
        if self.unused:
            self.head_bias = bias
        self.dense = Linear(HIDDEN, self.head_width, dense, name=self.transform)
        self.norm = LayerNorm(self.head_width, norm)
        self.head = words if self.tied else Embedding(VOCABULARY, self.head_width)
        self.head_bias = bias
        if not self.tied and self.unused:  # a second bias, which the class does not use
            self.unused_bias = Parameter((VOCABULARY,), trained=False)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes, with a note on the head."""
        note = f"Counted with the masked-language-model head ({cls.counted})."
        return replace(read_shape(cls, c, name), note=note)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The loss of one micro-batch."""
        held: list[Tensor] = []
        last = [self.hidden(ids, held)]
        if self.task_head is not None:
            return self.task_loss(ids, last, labels, held)
        held.clear()
        x = last.pop()
        if ids.tape.mode.chunked_loss:
            h = self.transformed(x)
            del x  # dies here
            return self.loss_in_chunks(h, labels)
        return masked_loss(self.product(self.transformed(x)), labels, wide=self.wide_loss)

    def transformed(self, x: Tensor) -> Tensor:
        """Dense, GELU and norm, before the product with all words."""
        with x.tape.in_layer("head", 0):
            h = self.dense(x)
            h = op.gelu(h)
            return self.norm(h)

    @abstractmethod
    def hidden(self, ids: Tensor, held: list[Tensor]) -> Tensor:
        """The last hidden states; `held` is for what the base model holds until it returns."""
