"""A small transformer and its inputs; a Hub; files that need not outlive a power failure."""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.training.answering import served
from tests.training.hub_repository import HubRepository
from training.model.configuration import TextToImageConfig
from training.model.transformer import TextToImageTransformer
from training.pictures.codes import CodeModel

torch.set_num_threads(1)  # before any fixture: several would wait for each other's

Batch = dict[str, torch.Tensor]

SHAPE = {
    "text_vocabulary_size": 20,
    "text_length": 5,
    "image_vocabulary_size": 16,
    "image_side": 4,
    "hidden_size": 32,
    "num_hidden_layers": 6,
    "num_attention_heads": 2,
    "head_size": 16,
    "convolution_kernel": 3,
    "layer_scale": 1.0,  # layers must matter, or every test of them would pass
    "initializer_range": 0.1,
}


@pytest.fixture(scope="session", autouse=True)
def _own_event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that is closed: hivemind's futures would make one each, and nobody ends that."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.close()


@pytest.fixture(autouse=True)
def _event_loop_stays(_own_event_loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """`asyncio.run` leaves no loop behind: the next test's fixtures would make their own."""
    yield
    asyncio.set_event_loop(_own_event_loop)


@pytest.fixture(scope="session", autouse=True)
def _disk_is_not_awaited() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        yield


@pytest.fixture
def hub() -> Iterator[HubRepository]:
    with served(server := HubRepository()):
        yield server


@pytest.fixture(scope="session")
def vq_gan() -> CodeModel:
    """The VQ-GAN that comes with us."""
    return CodeModel.load("shapes")


@pytest.fixture
def shape() -> dict[str, Any]:
    return dict(SHAPE)


@pytest.fixture
def config(shape: dict[str, Any]) -> TextToImageConfig:
    return TextToImageConfig(**shape)


@pytest.fixture
def model(config: TextToImageConfig) -> TextToImageTransformer:
    torch.manual_seed(0)
    return TextToImageTransformer(config)


@pytest.fixture
def text_ids() -> torch.Tensor:
    ids = torch.randint(1, 20, (3, 5), generator=torch.Generator().manual_seed(1))
    ids[0, 3:] = 0  # one caption is shorter
    return ids


@pytest.fixture
def image_codes() -> torch.Tensor:
    return torch.randint(0, 16, (3, 16), generator=torch.Generator().manual_seed(2))


@pytest.fixture
def batch(text_ids: torch.Tensor, image_codes: torch.Tensor) -> Batch:
    return {"text_ids": text_ids, "image_codes": image_codes}
