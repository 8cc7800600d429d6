import contextlib
import os
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tests.training.processes import PATIENCE, wait_for
from training.run import status, supervisor
from training.run.patience import processor_seconds
from training.run.supervisor import Worker, supervise


def python(folder: Path, program: str) -> Worker:
    return Worker([sys.executable, "-c", textwrap.dedent(program)], folder, log=folder / "log.txt")


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_start_hangs_that_neither_ends_nor_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = python(tmp_path, "import time; time.sleep(600)")
    worker.start()
    try:
        assert not worker.hangs
        worker._silence._since -= supervisor.START_SECONDS + 1
        assert worker.hangs
        pid, now = worker.process.pid, time.time()
        monkeypatch.setattr(os, "getpid", lambda: pid)
        for started, told, hangs in ((False, now, False), (False, 0.0, True), (True, 0.0, False)):
            monkeypatch.setattr("time.time", lambda told=told: told)
            status.write(tmp_path, {"started": started})
            monkeypatch.setattr("time.time", lambda: now)
            assert (worker.has_started, worker.hangs) == (started, hangs)
    finally:
        monkeypatch.undo()
        worker.kill()


def test_a_busy_start_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WORK_SECONDS", 0.02)
    busy = python(tmp_path, "while True: pass")
    busy.start()
    pid, silence = busy.process.pid, busy._silence
    try:
        for _ in range(3):
            wait_for("it to compute", lambda: processor_seconds(pid) - silence._seen > 0.02)
            silence._since -= supervisor.START_SECONDS + 1
            assert not busy.hangs
    finally:
        busy.kill()


@pytest.mark.parametrize(
    ("code", "starts", "end"),
    [(code, 1, code) for code in (0, supervisor.INPUT_ERROR, supervisor.NOT_ADMITTED)]
    + [(3, supervisor.CRASHES, 1)],
)
def test_a_worker_is_started_again_until_its_end_is_meant_or_no_bad_luck(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: int,
    starts: int,
    end: int,
) -> None:
    monkeypatch.setattr(supervisor, "PAUSE_SECONDS", {3: 0.0})
    worker = python(tmp_path, f"print('here', flush=True); raise SystemExit({code})")
    assert supervise(worker, threading.Event()) == end
    assert (tmp_path / "log.txt").read_text().count("here") == starts
    assert ("giving up" in capsys.readouterr().out) is (starts > 1)


def test_a_request_to_stop_ends_the_worker_and_what_it_started_as_well(tmp_path: Path) -> None:
    worker = python(
        tmp_path,
        """
        import pathlib, subprocess, time
        child = subprocess.Popen(["sleep", "600"])
        pathlib.Path("child").write_text(str(child.pid))
        time.sleep(600)
        """,
    )
    stop, noted = threading.Event(), tmp_path / "child"
    with contextlib.chdir(tmp_path):
        thread = threading.Thread(target=supervise, args=(worker, stop))
        thread.start()
        wait_for("its start", lambda: noted.exists() and noted.read_text())
    child = int(noted.read_text())
    assert is_running(child)
    stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert worker.exit_code is not None
    wait_for("the child's end", lambda: not is_running(child))
