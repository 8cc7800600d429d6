"""The page's own training held against PyTorch's: gradients and optimizers."""

import math
from dataclasses import asdict, replace
from typing import Any

import pytest
import torch

from tests.training.tab.scripts import ask
from training.model.configuration import TextToImageConfig
from training.model.transformer import TextToImageTransformer
from training.optimizer.lamb import Lamb, parameter_groups
from training.pictures.in_page import shape_of
from training.run.recipes import REHEARSAL, TAB
from training.sparse.shared import flatten

SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 5,
    "num_attention_heads": 2,
    "head_size": 16,
    "text_vocabulary_size": 32,
    "text_length": 6,
    "image_vocabulary_size": 128,
    "image_side": 4,
    "sharing_groups": 2,
    "convolution_kernel": 3,
}
# Each kind of attention in the last layer; without sharing or shifts; sizes that fill no tile, and
# heads of 6 channels, whose rotation has one frequency.
SMALL_SHAPES: list[dict[str, object]] = [
    {},
    {"last_attention_kind": "full"},
    {"last_attention_kind": "row", "sharing_groups": None, "token_shift": False},
    {"last_attention_kind": "column", "head_size": 6, "hidden_size": 20, "text_length": 5},
]
EXACT = replace(REHEARSAL, optimizer=replace(REHEARSAL.optimizer, state_bits=32))


def random_model(**changes: object) -> TextToImageTransformer:
    """A small model whose every parameter matters."""
    torch.manual_seed(3)
    model = TextToImageTransformer(TextToImageConfig(**(SHAPE | changes)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def random_batch(config: TextToImageConfig, sequences: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Captions with padding at their ends, and codes."""
    text = torch.randint(1, config.text_vocabulary_size, (sequences, config.text_length))
    lengths = torch.randint(1, config.text_length + 1, (sequences, 1))
    text[torch.arange(config.text_length) >= lengths] = config.padding_id
    codes = config.image_vocabulary_size, (sequences, config.image_side**2)
    return text, torch.randint(*codes)


def as_batch(text: torch.Tensor, codes: torch.Tensor) -> dict[str, Any]:
    """A batch as the page has it."""
    return {"text": text.flatten().tolist(), "codes": codes.flatten().tolist()}


def test_parameters_have_pytorchs_names_and_order() -> None:
    model = random_model()
    assert [
        (one["name"], tuple(one["shape"])) for one in ask("tensors", shape=shape_of(model))
    ] == [(name, tuple(parameter.shape)) for name, parameter in model.named_parameters()]


@pytest.mark.parametrize("changes", [*SMALL_SHAPES, asdict(TAB.model)])
@pytest.mark.parametrize("plain", [False, True])
def test_every_gradient_is_pytorchs(changes: dict[str, object], plain: bool) -> None:
    model = random_model(**changes)
    batches = [random_batch(model.config, 3) for _ in range(2)]
    losses = []
    for text, codes in batches:
        loss = model(text, codes).loss
        loss.backward()
        losses.append(loss.item())
    answer = ask(
        "gradients",
        shape=shape_of(model),
        weights=flatten(list(model.parameters())),
        batches=[as_batch(*batch) for batch in batches],
        plain=plain,
    )
    assert answer["losses"] == pytest.approx(losses, rel=1e-5)
    parameters = dict(model.named_parameters())
    parts = answer["gradients"].split([parameter.numel() for parameter in parameters.values()])
    for (name, parameter), part in zip(parameters.items(), parts, strict=True):
        gradient = parameter.grad.flatten()  # type: ignore[union-attr]
        assert (part - gradient).abs().max() <= 1e-3 * gradient.abs().max(), name


def steps_of(
    model: TextToImageTransformer, optimizer: torch.optim.Optimizer, longest: float = math.inf
) -> dict[str, Any]:
    """A model as the page gets it, and the rates and gradients of steps that are made here."""
    given: dict[str, Any] = {"shape": shape_of(model), "rates": [0.01, 0.02, 0.005]}
    given |= {"weights": flatten(list(model.parameters())), "gradients": []}
    for rate in given["rates"]:
        for group in optimizer.param_groups:
            group["lr"] = rate
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        given["gradients"].append(flatten([p.grad for p in model.parameters()]))  # type: ignore[misc]
        torch.nn.utils.clip_grad_norm_(list(model.parameters()), longest)
        optimizer.step()
    return given


def test_the_optimizers_steps_are_pythons() -> None:
    model = random_model()
    optimizer = Lamb(parameter_groups(model, EXACT), EXACT.optimizer)
    steps = steps_of(model, optimizer)
    moved = ask("moved", kind="Lamb", settings=asdict(EXACT.optimizer), **steps)
    torch.testing.assert_close(moved, flatten(list(model.parameters())), rtol=1e-4, atol=1e-5)
