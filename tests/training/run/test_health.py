import time
from pathlib import Path

import pytest

from training.run import atomic, health, status


def folder_of(state: Path, run: str) -> Path:
    return state / "training-transformers-together" / run / "join"


def test_the_newest_status_of_all_counts_for_two_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert health.main([]) == 2
    assert health.main([str(tmp_path)]) == 1
    atomic.write_json(folder_of(tmp_path, "an-old-one") / "status.json", {"time": 0})
    atomic.write_bytes(folder_of(tmp_path, "broken") / "status.json", b"{")
    assert health.main([str(tmp_path)]) == 1
    status.write(folder_of(tmp_path, "our-run"), {})
    capsys.readouterr()
    assert health.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "newest status: 0 s old\n"
    later = time.time() + health.OLDEST_SECONDS + 1
    monkeypatch.setattr("time.time", lambda: later)
    assert health.main([str(tmp_path)]) == 1
