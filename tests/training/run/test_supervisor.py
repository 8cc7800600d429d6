import contextlib
import os
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tests.training.processes import wait_for
from training.run import status, supervisor
from training.run.patience import processor_seconds
from training.run.supervisor import Worker, supervise

PATIENCE = 60.0


def python(folder: Path, program: str) -> Worker:
    return Worker([sys.executable, "-c", textwrap.dedent(program)], folder, log=folder / "log.txt")


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_killing_a_worker_ends_what_it_started_as_well(tmp_path: Path) -> None:
    worker = python(
        tmp_path,
        """
        import pathlib, subprocess, time
        child = subprocess.Popen(["sleep", "600"])
        pathlib.Path("child").write_text(str(child.pid))
        time.sleep(600)
        """,
    )
    with contextlib.chdir(tmp_path):
        worker.start()
    wait_for(
        "the child", lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text()
    )
    child = int((tmp_path / "child").read_text())
    assert is_running(child)
    worker.kill()
    wait_for("its end", lambda: not is_running(child))
    assert worker.exit_code is not None


def test_a_start_that_says_nothing_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = python(tmp_path, "import time; time.sleep(600)")
    worker.start()
    try:
        assert not worker.hangs
        monkeypatch.setattr(supervisor, "START_SECONDS", -1.0)
        assert worker.hangs
        content = {"started": True}
        monkeypatch.setattr(os, "getpid", lambda: worker.process.pid)  # type: ignore[union-attr]
        status.write(tmp_path, content)
        assert worker.has_started
        assert not worker.hangs
    finally:
        monkeypatch.undo()
        worker.kill()


def test_a_start_that_takes_long_and_says_how_far_it_is_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = python(tmp_path, "import time; time.sleep(600)")
    worker.start()
    try:
        worker._silence._since -= supervisor.START_SECONDS + 1
        assert worker.hangs
        pid = worker.process.pid
        monkeypatch.setattr(os, "getpid", lambda: pid)
        status.write(tmp_path, {"started": False})
        assert not worker.hangs
        monkeypatch.setattr(time, "time", lambda: 0.0)
        status.write(tmp_path, {"started": False})
        monkeypatch.undo()
        assert worker.hangs
    finally:
        monkeypatch.undo()
        worker.kill()


def test_a_busy_start_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WORK_SECONDS", 0.02)
    busy = python(tmp_path / "busy", "while True: pass")
    idle = python(tmp_path / "idle", "import time; time.sleep(600)")

    def hangs_later(worker: Worker) -> bool:
        """True if it hangs when the time of a start has passed since it was last looked at."""
        worker._silence._since -= supervisor.START_SECONDS + 1
        return worker.hangs

    def has_computed() -> bool:
        return processor_seconds(busy.process.pid) - busy._silence._seen > supervisor.WORK_SECONDS

    for worker in (busy, idle):
        worker.start()
    try:
        wait_for("the idle one to hang", lambda: hangs_later(idle))
        for _ in range(3):
            wait_for("the busy one to compute", has_computed)
            assert not hangs_later(busy)
    finally:
        for worker in (busy, idle):
            worker.kill()


def test_a_worker_that_crashes_is_started_again_until_it_is_no_bad_luck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(supervisor, "PAUSE_SECONDS", {3: 0.0})
    worker = python(tmp_path, "print('here', flush=True); raise SystemExit(3)")
    assert supervise(worker, threading.Event()) == 1
    assert (tmp_path / "log.txt").read_text().count("here") == supervisor.CRASHES
    assert "giving up" in capsys.readouterr().out


@pytest.mark.parametrize("code", [0, supervisor.INPUT_ERROR])
def test_an_end_that_is_meant_is_accepted(tmp_path: Path, code: int) -> None:
    worker = python(tmp_path, f"print('here', flush=True); raise SystemExit({code})")
    assert supervise(worker, threading.Event()) == code
    assert (tmp_path / "log.txt").read_text().count("here") == 1


def test_a_request_to_stop_ends_the_worker(tmp_path: Path) -> None:
    worker = python(
        tmp_path,
        """
        import pathlib, time
        pathlib.Path("here").touch()
        time.sleep(600)
        """,
    )
    stop = threading.Event()
    with contextlib.chdir(tmp_path):
        thread = threading.Thread(target=supervise, args=(worker, stop))
        thread.start()
        wait_for("its start", lambda: (tmp_path / "here").exists())
    stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert worker.exit_code is not None
