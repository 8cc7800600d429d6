import os
from pathlib import Path

import pytest

from training.run import atomic, health, status


def folder_of(state: Path, run: str) -> Path:
    return state / "training-transformers-together" / run / "join"


def test_a_peer_with_a_status_is_alive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status.write(folder_of(tmp_path, "our-run"), {"started": True})
    assert health.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "newest status: 0 s old\n"


def test_the_newest_status_of_all_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    atomic.write_json(folder_of(tmp_path, "an-old-one") / "status.json", {"time": 0})
    (folder_of(tmp_path, "broken") / "status.json").parent.mkdir(parents=True)
    (folder_of(tmp_path, "broken") / "status.json").write_text("{")
    assert health.main([str(tmp_path)]) == 1
    status.write(folder_of(tmp_path, "our-run"), {})
    assert health.main([str(tmp_path)]) == 0
    now = os.times().elapsed  # any clock: only the distance counts
    monkeypatch.setattr("time.time", lambda: now + 10**10)
    assert health.main([str(tmp_path)]) == 1


def test_nobody_is_not_alive(tmp_path: Path) -> None:
    assert health.main([str(tmp_path)]) == 1
    assert health.main([]) == 2
