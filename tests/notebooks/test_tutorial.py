"""The tutorial's notebook, run as committed on a small model and a small local data set."""

import re
import tomllib
from pathlib import Path

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


def test_a_reader_trains_is_told_the_memory_and_the_loss_and_loads_the_result(
    tmp_path: Path,
) -> None:
    tiny.save_data(tmp_path / "c4")
    tiny.save_model(tmp_path / "gpt2")
    places = {"MODEL": str(tmp_path / "gpt2"), "DATA": str(tmp_path / "c4")}
    printed = execute(NAME, {**places, **PARAMETERS}, tmp_path)
    # the prediction is the calculator's
    options = {"batch_size": 2, "sequence_length": 64, "precision": "fp32", "accumulation": 2}
    plan = Plan.parse({**options, "optimizer_bits": 8, "checkpointing": "full"})
    report = estimate(read_config(tmp_path / "gpt2"), plan)
    lines = dict(line.split(maxsplit=1) for line in printed["memory"].splitlines())
    assert lines["predicted"] == format_bytes(report.gpu.total)
    assert lines["optimizer"] == format_bytes(report.gpu.optimizer)
    assert lines["measured"].startswith("nothing")
    # the loss of every tenth step is printed, and it falls
    steps = re.findall(r"^step +(\d+)  loss \d+\.\d{3}  [\d,]+ tokens", printed["training"], re.M)
    assert steps == ["1", "10", "20", "30"]
    before, after = map(float, re.findall(r"(\d+\.\d+) (?:before|after)", printed["after"]))
    assert after < before - 0.5
    assert printed["sample"].startswith("The best way to train a large model is")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "result")
    assert model.config.n_layer == 2


def test_the_notebook_installs_the_versions_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    pins = project["project"]["optional-dependencies"]["training"]
    installed = re.findall(r'"(\S+==\S+)"', code_of(read(NAME), "install"))
    assert installed
    assert set(installed) <= set(pins)
