"""The tutorial's notebook, run as committed on a small model and a small local data set."""

import re
import tomllib
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from calculator.config_file import read_config
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.units import format_bytes
from tests.notebooks import tiny
from tests.notebooks.execution import code_of, execute, read
from tools.console import ROOT

NAME = "tutorial.ipynb"
PARAMETERS = {"SEQUENCE_LENGTH": 64, "MICRO_BATCH": 2, "ACCUMULATION": 2, "STEPS": 30}
PARAMETERS |= {"WARMUP_STEPS": 3, "LEARNING_RATE": 3e-3, "VALIDATION_SEQUENCES": 8}
PARAMETERS |= {"RESULT": "result"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tutorial")
    tiny.save_data(folder / "c4")
    tiny.save_model(folder / "gpt2")
    return folder


@pytest.fixture(scope="module")
def printed(folder: Path) -> dict[str, str]:
    parameters = {"MODEL": str(folder / "gpt2"), "DATA": str(folder / "c4"), **PARAMETERS}
    return execute(NAME, parameters, folder)


def test_the_model_learns_the_texts(printed: dict[str, str]) -> None:
    before, after = (
        float(figure) for figure in re.findall(r"(\d+\.\d+) (?:before|after)", printed["after"])
    )
    assert after < before - 0.5


def test_the_loss_of_every_tenth_step_is_printed(printed: dict[str, str]) -> None:
    steps = re.findall(r"^step +(\d+)  loss \d+\.\d{3}  [\d,]+ tokens", printed["training"], re.M)
    assert steps == ["1", "10", "20", "30"]


def test_the_prediction_is_the_calculators(printed: dict[str, str], folder: Path) -> None:
    options = {"batch_size": 2, "sequence_length": 64, "precision": "fp32", "accumulation": 2}
    plan = Plan.parse({**options, "optimizer_bits": 8, "checkpointing": "full"})
    report = estimate(read_config(folder / "gpt2"), plan)
    lines = dict(line.split(maxsplit=1) for line in printed["memory"].splitlines())
    assert lines["predicted"] == format_bytes(report.gpu.total)
    assert lines["optimizer"] == format_bytes(report.gpu.optimizer)
    assert lines["measured"].startswith("nothing")


def test_the_trained_model_can_be_loaded_again(printed: dict[str, str], folder: Path) -> None:
    assert printed["sample"].startswith("The best way to train a large model is")
    model = AutoModelForCausalLM.from_pretrained(folder / "result")
    assert model.config.n_layer == 2


def test_the_notebook_installs_the_versions_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    pins = project["project"]["optional-dependencies"]["training"]
    installed = re.findall(r'"(\S+==\S+)"', code_of(read(NAME), "install"))
    assert installed
    assert set(installed) <= set(pins)
