"""Transformers' own classes, on the meta device, where weights take no memory."""

import importlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from calculator.models.registry import TYPES


def oracle(test: Any) -> Any:
    """Mark a test that needs the real classes."""
    for mark in (
        pytest.mark.oracle,
        pytest.mark.filterwarnings("ignore"),  # of the libraries, which are not ours
        pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers' classes"),
    ):
        test = mark(test)
    return test


def small_config(name: str) -> dict[str, Any]:
    """The config.json of a small model of ours."""
    path = Path(__file__).parents[2] / "validation" / "configs" / f"{name}.json"
    return json.loads(path.read_text("utf-8"))


def libraries() -> tuple[Any, Any]:
    return importlib.import_module("torch"), importlib.import_module("transformers")


def real_model(kind: str, **values: Any) -> Any:
    """The class that is counted of a type, with a configuration's values."""
    torch, transformers = libraries()
    config = transformers.AutoConfig.for_model(kind, **values)
    with torch.device("meta"):
        return getattr(transformers, TYPES[kind].counted)(config)


def elements(model: Any) -> int:
    return sum(item.numel() for item in model.parameters())
