"""Rows of a reader's own machine: the path of a real card, and the file that is sent in."""

import json
import re
from pathlib import Path

import pytest

from templates.pieces.accuracy import by_card
from tests.validation.measurer import Measure
from validation.__main__ import main
from validation.compare import compare, summary
from validation.configuration import parse
from validation.rows import Row
from validation.table import beside, table

pytestmark = pytest.mark.oracle

STEP = "gpt2-s --layers 2 --batch-size 2 --sequence-length 96 --optimizer lamb --optimizer-bits 8"


@pytest.fixture(scope="module")
def card(measure: Measure) -> Row:
    """A row by the code that reads a card's allocator, on the one card that every machine has."""
    return measure(f"call on_a_card {STEP}")


def test_a_card_reports_what_the_counting_device_counts(measure: Measure, card: Row) -> None:
    counted = measure(STEP)
    for name in ("peak", "phase", "weights", "gradients", "optimizer", "parameters"):
        assert card[name] == counted[name], name
    for name, phase in card["phases"].items():
        assert phase["peak"] == counted["phases"][name]["peak"], name
    assert card["allocated"] == counted["peak"]
    assert card["seconds"] > 0
    assert card["workspaces"] == 0
    assert card["gpu"]["card"] == "Stand-In 4000"
    (found,) = compare([card])
    assert not any(found.static_errors().values())
    assert any("backward" in line for line in summary([found]))
    (row,) = by_card([found])
    assert row.cells[0].startswith("Stand-In 4000, driver ")


def test_one_line_has_what_a_card_allocates_and_reserves(card: Row) -> None:
    row = card | {"reserved": 2**30, "seconds": 0.25}
    words = beside(row).split()
    measured = f"{row['peak'] / 2**20:.0f}"  # nothing but tensors on the counting device
    assert words[2:4] == [measured, "MiB"]
    assert words[8:10] == ["1.00", "GiB"]
    assert words[-2:] == ["0.25", "s"]
    lines = "\n".join(table(parse(STEP.split()), row))
    assert re.search(r"\nstep +0.25 s", lines)  # a card without peaks has no seconds of the clock's
    row["gpu"] = row["gpu"] | {"card": "Tesla T4"}
    lines = "\n".join(table(parse(STEP.split()), row))
    predicted = re.search(r"\nstep +([\d.]+) s +0.25 s +[-+][\d.]+ %", lines)
    assert predicted
    assert 0 < float(predicted[1]) < 0.25
    for name in ("forward", "loss", "backward", "update", "peak", "allocated", "reserved", "step"):
        assert f"\n{name} " in lines
    row["phases"] = {name: row["phases"][name] for name in ("backward", "update")}
    assert "\nloss " not in "\n".join(table(parse(STEP.split()), row))


def test_steps_that_fit_are_measured_into_a_file(measure: Measure, tmp_path: Path) -> None:
    lines = measure(f"call contribution {tmp_path}", "cpu")
    (path,) = tmp_path.iterdir()
    (row,) = map(json.loads, path.read_text().splitlines())
    assert row["configuration"]["model"] == "google/bert_uncased_L-2_H-128_A-2"
    assert re.match(r" +[\d.]+ MiB +[\d.]+ MiB +[-+]\d\.\d\d % +google/bert_uncased", lines[2])
    assert "gpt3-175b --batch-size 64: may need " in lines[3]
    assert f"One row is in {path}" in " ".join(lines)
    again = measure(f"call contribution {tmp_path}", "cpu")
    assert "already in the file" in again[2]
    assert len(path.read_text().splitlines()) == 1


def test_a_machine_without_a_gpu_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert main(["measure", "--device", "cuda"]) == 2
    assert "PyTorch finds no GPU here" in capsys.readouterr().err
