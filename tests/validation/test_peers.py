"""Other calculators' predictions beside measured or calculated peaks."""

import json
from pathlib import Path

import pytest

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.plan import Attention, Plan
from calculator.resolution import resolve
from validation.compare import Comparison
from validation.configuration import Configuration
from validation.peers import KERNELS, PEERS, read_predictions, score

OPTIONS = {"batch_size": "1", "sequence_length": "512", "precision": "fp32", "optimizer": "adam"}


@pytest.fixture
def half_too_high(tmp_path: Path) -> Path:
    """A file with one prediction, half as much again as our peak with eager attention."""
    plan = Plan.parse({**OPTIONS, "attention": "eager"})
    peak = estimate(find_model("bert-base"), plan).gpu.total
    config = {"model": "bert-base", **OPTIONS, "batch_size": 1, "sequence_length": 512}
    row = {"calculator": "a", "version": "1", "config": config, "total": peak * 3 // 2}
    path = tmp_path / "peers.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    return path


def measured(attention: str, factor: float) -> Comparison:
    configuration = Configuration("bert-base", Plan.parse({**OPTIONS, "attention": attention}))
    report = estimate(configuration.architecture, configuration.plan)
    return Comparison(configuration, {"peak": round(report.gpu.total * factor)}, report)


def test_every_prediction_is_of_one_version_of_a_calculator_that_the_page_describes() -> None:
    versions = {(item.calculator, item.version) for item in read_predictions()}
    assert sorted(name for name, _ in versions) == sorted(peer.name for peer in PEERS)


def test_every_prediction_is_of_a_configuration_that_its_model_can_have() -> None:
    for item in read_predictions():
        for kernel in KERNELS:
            resolve(find_model(item.model), item.plan(kernel))


def test_without_a_measured_row_the_reference_is_our_own_figure(half_too_high: Path) -> None:
    (found,) = score(read_predictions(half_too_high), [])
    assert found.error(Attention.EAGER) == pytest.approx(0.5)
    assert not any(found.measured.values())
    assert found.family == "bert"


def test_a_measured_row_is_the_reference_of_its_own_kernel_only(half_too_high: Path) -> None:
    (found,) = score(read_predictions(half_too_high), [measured("eager", 2.0)])
    assert found.error(Attention.EAGER) == pytest.approx(1.5 / 2 - 1)
    assert found.measured == {Attention.EAGER: True, Attention.SDPA: False}
