"""The notebook that measures, run as committed, on the processor."""

import json
import re
from pathlib import Path
from shutil import which

import pytest

from tests.notebooks.execution import execute


def test_a_step_is_measured_into_a_file(tmp_path: Path) -> None:
    if which("g++") is None:
        pytest.skip("on a processor, a C++ compiler makes what counts the bytes")
    step = "google/bert_uncased_L-2_H-128_A-2 --sequence-length 16"
    printed = execute("measure.ipynb", {"STEP": step, "DEVICE": "cpu"}, tmp_path)
    assert re.search(rf"[-+]\d+\.\d\d % +{step}", printed["measure"])
    (row,) = map(json.loads, (tmp_path / "cpu-processor.jsonl").read_text().splitlines())
    assert row["parameters"] > 0
    assert printed["send"] == "cpu-processor.jsonl 1 rows\n"
