import argparse
import io
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training.doctor.conftest import MakeSetup
from training.__main__ import make_parser
from training.doctor import command, examination, software
from training.doctor.examination import examine
from training.doctor.findings import Finding, NotFitError, PointName, Verdict, fine, worst
from training.volunteer import fitting

SICK = Finding(PointName.PACKAGES, Verdict.PROBLEM, "numpy is missing", "install it")
AWAY = Finding(PointName.ENTRY_POINTS, Verdict.PROBLEM, "no answer", "wait", passes=True)
UNREACHABLE = Finding(PointName.REACHABILITY, Verdict.WARNING, "a firewall", "open it")
WELL = fine(PointName.PYTHON, "3.11.7")


def test_every_point_gets_a_finding(make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_setup: object) -> Iterator[Finding]:
        yield fine(PointName.SYSTEM, "half of it")
        raise ZeroDivisionError("a bug\nof ours")

    hang = threading.Event()

    def never(_setup: object, _readings: object) -> Iterator[Finding]:
        hang.wait(30)
        yield from ()

    monkeypatch.setattr(software, "look_at_system", fail)
    monkeypatch.setattr(examination.line, "visit", never)
    findings = examine(make_setup(), seconds=1.0)
    hang.set()
    assert [finding.point for finding in findings] == list(PointName)
    by_point = {finding.point: finding for finding in findings}
    system = by_point[PointName.SYSTEM]
    assert system.cause == "could not be checked (ZeroDivisionError: a bug)"
    for point in (PointName.PORT, PointName.ENTRY_POINTS, PointName.REACHABILITY):
        assert by_point[point].cause == "no answer within 1 s"
        assert by_point[point].passes


def test_without_a_run_the_doctor_says_which_recipes_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(fitting, "free_bytes", lambda _device: 2**30)  # paper needs several
    monkeypatch.setattr(command.logging, "disable", lambda _level: None)
    options = argparse.Namespace(**(vars(OPTIONS) | {"run": None, "json": True}))
    status = command.run(None, tmp_path, options)
    report = json.loads(capsys.readouterr().out)
    findings = [Finding.from_json(value) for value in report["findings"]]
    fits = {f.cause.split(":")[0]: f.verdict for f in findings if f.point is PointName.MEMORY}
    assert report["run"] is None
    assert fits["cannot train the recipe paper"] is Verdict.WARNING
    assert fits["can train the recipe language"] is Verdict.FINE
    assert not {f.point for f in findings} & {PointName.ENTRY_POINTS, PointName.ACCESS}
    assert status == int(worst(findings) is Verdict.PROBLEM)


def test_colours_are_for_terminals_and_never_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = command.show(SICK, io.StringIO())
    assert plain == ("problem   Packages        numpy is missing. What to do: install it")
    monkeypatch.setattr(terminal := io.StringIO(), "isatty", lambda: True)
    assert command.show(SICK, terminal).startswith("\x1b[31mproblem\x1b[0m   Packages ")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in command.show(SICK, terminal)


OPTIONS = argparse.Namespace(
    run="run.toml", host="0.0.0.0", port=0, announce=[], behind_firewall=False, micro_batch=None
)


def join_with(findings: list[Finding] | None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(command, "_ask", lambda _arguments: findings)
    return command.before_join(OPTIONS, Path("folder"))


def test_a_problem_ends_the_joining(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NotFitError):
        join_with([WELL, SICK], monkeypatch)
    printed = capsys.readouterr().out
    assert "3.11.7" not in printed
    assert "numpy is missing. What to do: install it" in printed


def test_what_may_pass_does_not_end_the_joining_nor_does_a_port_that_nobody_reaches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert join_with([AWAY], monkeypatch) == []
    assert join_with([UNREACHABLE], monkeypatch) == ["--behind-firewall"]
    assert "joining as with --behind-firewall" in capsys.readouterr().out


def test_a_doctor_that_fails_does_not_keep_anybody_from_joining(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command.supervisor, "COMMAND", ("false",))
    assert command.before_join(OPTIONS, Path("folder")) == []
    assert "joining without it" in capsys.readouterr().out


@pytest.mark.parametrize("works", [True, False])
def test_a_busy_doctor_is_waited_for(monkeypatch: pytest.MonkeyPatch, works: bool) -> None:
    """The limit was two minutes by the clock, however little of a processor there was."""
    monkeypatch.setattr(command, "LONGEST_SECONDS", 2.0)
    monkeypatch.setattr(command, "WORK_SECONDS", 0.05)
    body = "time.process_time()" if works else "time.sleep(0.1)"
    program = f"import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: {body}"
    answer = json.dumps({"findings": [AWAY.to_json()]})
    monkeypatch.setattr(
        command.supervisor, "COMMAND", (sys.executable, "-c", f"{program}\nprint({answer!r})")
    )
    assert command._ask([]) == ([AWAY] if works else None)


def test_doctor_and_join_look_at_the_same_place() -> None:
    place = {"host": "::1", "port": 4001, "announce": ["/a"], "behind_firewall": True}
    options = argparse.Namespace(**place, micro_batch=3)
    typed = ["doctor", "run.toml", *command._place(options, Path("folder"))]
    parsed = vars(make_parser().parse_args(typed))
    assert vars(options).items() <= parsed.items()
    assert parsed["folder"] == Path("folder")
