"""The live page compares the recorded rehearsals of both kinds by what their files say."""

import json
from pathlib import Path
from typing import Any

import pytest

from templates.pages.live import side_by_side
from templates.pieces.recorded_run import Run
from tests.folders import written


def step(samples: int, loss: float | None, sent: int, received: int) -> dict[str, Any]:
    return {"samples": samples, "loss": loss, "bytes_sent": sent, "bytes_received": received}


def test_losses_and_a_usual_step_s_traffic_are_compared_for_as_many_sequences(
    tmp_path: Path,
) -> None:
    averaging = [step(100, 5.0, 4000, 4000), step(100, 4.0, 4000, 4000), step(200, 1.0, 8000, 8000)]
    # everybody downloads a checkpoint in the first round
    local = [step(100, 6.0, 100, 99_900), step(100, None, 100, 300), step(50, 2.0, 50, 150)]
    schedules = {"first": {"target_batch_size": 100}, "second": {"round_seconds": 1.0}}
    runs = [{"name": name, "title": name, "note": ""} for name in schedules]
    files = {"runs.json": json.dumps({"runs": runs})}
    for (name, schedule), steps in zip(schedules.items(), (averaging, local), strict=True):
        files[f"{name}/run.json"] = json.dumps({"parameters": 1000, "schedule": schedule})
        files[f"{name}/progress.jsonl"] = "".join(f"{json.dumps(one)}\n" for one in steps)
    found = side_by_side.read(written(tmp_path, files))
    # 400 and 250 sequences: the first run's third step ends beyond the shorter one
    assert ["Loss after 250 sequences", "4.500", "4.000"] in found.rows
    assert "Loss from 5.000 after 100 sequences to 4.000 after 200 sequences" in found.curve
    assert "Loss from 6.000 after 100 sequences to 2.000 after 250 sequences" in found.curve
    # 40 bytes a sequence each way, and one and three
    assert ["Sent by all for 4,096 sequences", "164 kB", "4.10 kB"] in found.rows
    assert ["Received by all for 4,096 sequences", "164 kB", "12.3 kB"] in found.rows
    assert found.less == pytest.approx(80 / 4)
    assert ["Sequences in an exchange, usually", "100", "100"] in found.rows


def test_the_recorded_rehearsals_trained_the_same_model() -> None:
    first, second = Run("rehearsal", ""), Run("sparse", "")
    assert first.card["model"] == second.card["model"]
    assert second.steps[-1]["step"] == second.card["schedule"]["total_steps"]
