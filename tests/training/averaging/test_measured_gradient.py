"""benchmarks/gradient.json is what its command measures."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import gradient
from training.averaging.wire import WireCompression, WireFormat

RECORDED: dict[str, Any] = json.loads(gradient.PATH.read_text("utf-8"))


def test_an_error_is_relative_to_the_length_of_the_gradient() -> None:
    exact = {"a": torch.tensor([3.0, 0.0]), "b": torch.tensor([4.0])}
    sent = {"a": torch.tensor([3.0, 0.3]), "b": torch.tensor([4.4])}
    assert gradient.difference(sent, exact) == pytest.approx(0.5 / 5)
    assert gradient.difference(exact, exact) == 0


def test_rounding_moves_no_value_into_another_bin() -> None:
    exact = torch.randn(100_000, generator=torch.Generator().manual_seed(16))
    sent = gradient.through(WireCompression(WireFormat.ADAPTIVE, 1), exact)
    assert sent.unique().numel() <= 256
    before, after = gradient.histograms(exact, exact), gradient.histograms(sent, exact)
    # of 128 bins, 32 on each side are beyond three standard deviations
    for old, new in zip(before["wide"][33:95], after["wide"][33:95], strict=True):
        assert new == pytest.approx(old, abs=2)  # for single precision at the edges
    assert sum(count > 0 for count in after["zoom"]) <= gradient.ZOOM_LEVELS
    assert sum(after["wide"]) + after["outside"] == 100_000
    # of a normal distribution 0.27 % lie beyond three standard deviations; 5e-4 is three of theirs
    assert gradient.describe("normal", exact)["beyond_3_sigma"] == pytest.approx(0.0027, abs=5e-4)


def test_the_recorded_histograms_hold_the_whole_tensor() -> None:
    tensor = RECORDED["tensor"]
    exact, half, byte = RECORDED["formats"]
    for row in (exact, half, byte):
        assert sum(row["wide"]) + row["outside"] == tensor["elements"]
    assert byte["values"] <= 256 < half["values"] < exact["values"]
    assert exact["error"] == 0 < half["error"] < byte["error"] < RECORDED["other_batch"]
    assert RECORDED["parameters"] == 464_234  # as the run's card says


def test_the_command_measures_what_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = gradient.measure(RECORDED["sequences"])
    assert found["tensor"]["name"] == RECORDED["tensor"]["name"]
    assert found["other_batch"] == pytest.approx(RECORDED["other_batch"], rel=0.02)
    for now, before in zip(found["formats"], RECORDED["formats"], strict=True):
        assert now["bytes"] == before["bytes"]
        assert now["error"] == pytest.approx(before["error"], rel=0.02)
        assert now["tensor_error"] == pytest.approx(before["tensor_error"], rel=0.02)
