"""A model type that nobody has, added from outside of the package: layers, tree, estimate."""

from dataclasses import dataclass

import pytest

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import size
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.loss import masked_loss
from calculator.layers.stack import Block, Stack
from calculator.models.llama import Llama
from calculator.models.model import Model
from calculator.models.registry import TYPES
from calculator.plan import Plan

WIDTH, INNER = size("hidden_size"), size("feed_forward_size")


@dataclass(eq=False)
class Mixer(Block):
    """x + W2 f(W1 norm(x)), the f of some layers being gated."""

    gated: bool

    def __post_init__(self) -> None:
        self.norm = LayerNorm(WIDTH)
        self.expand = Linear(WIDTH, INNER, biased=False)
        self.gate = Linear(WIDTH, INNER, biased=False) if self.gated else None
        self.contract = Linear(INNER, WIDTH)

    def __call__(self, x: Tensor, *_: object) -> Tensor:
        normed = self.norm(x)
        h = op.silu(self.expand(normed))
        if self.gate is not None:
            h = op.multiply(h, self.gate(normed))
        return op.add(x, op.dropout(self.contract(h)))


@dataclass(eq=False)
class MadeUp(Model):
    words: Embedding
    layers: Stack[Mixer]
    title = "made up"

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "MadeUp":
        kinds = (Mixer(gated=False), Mixer(gated=True))  # in turn
        return cls(Embedding(size("vocabulary_size"), WIDTH), Stack(kinds, architecture.layers))

    def forward(self, ids: Tensor, labels: Tensor, /) -> Tensor:
        x = self.layers(self.words(ids))
        with ids.tape.in_layer("head", 0):
            logits = self.words.unembed(x)
        return masked_loss(logits, labels)


def made_up(layers: int) -> Architecture:
    return Architecture("x", "X", "made-up", layers, 64, 1, 64, 256, 1000, 0, 128, 0.1, "nobody")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TYPES, "made-up", MadeUp)


@pytest.mark.parametrize("layers", [1, 2, 7, 10, 13])
def test_its_parameters_are_those_of_its_layers(layers: int) -> None:
    plain = 2 * 64 + 2 * 64 * 256 + 64
    expected = 1000 * 64 + layers * plain + layers // 2 * 64 * 256
    assert estimate(made_up(layers)).parameters == expected


@pytest.mark.parametrize("groups", [1, 3, 4])
def test_layers_in_turn_may_share_weights(groups: int) -> None:
    alone = estimate(made_up(9), Plan())
    shared = estimate(made_up(9), Plan(sharing_groups=groups))
    assert shared.parameters < alone.parameters
    assert shared.gpu.total < alone.gpu.total


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"lora": 8}, "lora.*needs a model that transformers has a class of"),
        ({"gpus": 2}, "gpus.*x is counted on one GPU only: must be 1"),
        ({"gpus": 2, "data_parallel": "fsdp"}, "gpus.*x is counted on one GPU only: must be 1"),
    ],
)
def test_it_is_refused_for_what_was_not_measured(options: dict[str, object], refused: str) -> None:
    with pytest.raises(InputError, match=refused):
        estimate(made_up(3), Plan.parse(options))


def test_a_type_built_on_another_has_no_layers_of_peft_s_table() -> None:
    class Closer(Llama):
        """A type of its own, of which nothing is known."""

    assert Llama.lora_targets
    assert not Closer.lora_targets
