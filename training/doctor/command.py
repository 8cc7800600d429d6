"""`python -m training doctor RUN`, and the short form that `join` begins with."""

import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
import textwrap
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TextIO

from training.doctor.examination import JOINABLE, examine, examine_machine, name_of
from training.doctor.findings import POINTS, Finding, NotFitError, PointName, Verdict, worst
from training.doctor.setup import Setup
from training.run import supervisor
from training.run.patience import Silence, processor_seconds, told
from training.run.runfile import RunFile

CHECKING = "doctor: checking this machine and the run"
LONGEST_SECONDS = 120.0  # without any progress
LOOK_SECONDS, WORK_SECONDS = 0.5, 0.2  # between two looks; of processor time that are progress
COLOURS = {Verdict.FINE: "32", Verdict.WARNING: "33", Verdict.PROBLEM: "31"}
MARGIN = 26  # columns before a finding's text


def run(run_file: RunFile | None, folder: Path, options: argparse.Namespace) -> int:
    """Run all checks and print the findings; returns 1 if there is a problem, else 0.

    Without a run, this machine is compared with the recipes that come with us.
    """
    logging.disable(logging.CRITICAL)  # the findings say in words what libraries would log
    began = time.monotonic()
    setup = Setup(
        run=run_file or RunFile(name_of(JOINABLE[0]), JOINABLE[0]),
        folder=folder,
        host=options.host,
        port=options.port,
        announce=tuple(options.announce),
        reachable=not options.behind_firewall,
        micro_batch=options.micro_batch,
    )
    telling = nullcontext() if options.json else told("checking", sys.stderr)
    with telling:
        findings = examine(setup) if run_file else examine_machine(setup)
    verdict = worst(findings)
    if options.json:
        report = {
            "version": 1,
            "run": run_file.name if run_file else None,
            "verdict": verdict.value,
            "seconds": round(time.monotonic() - began, 1),
            "findings": [finding.to_json() for finding in findings],
        }
        print(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        for finding in findings:
            print(show(finding, sys.stdout))
        print(_summary(findings))
    return 1 if verdict is Verdict.PROBLEM else 0


def show(finding: Finding, stream: TextIO) -> str:
    """A finding and what to do as text, wrapped and colored in a terminal."""
    word = finding.verdict.value
    if stream.isatty() and "NO_COLOR" not in os.environ:
        word = f"\x1b[{COLOURS[finding.verdict]}m{word}\x1b[0m" + " " * (8 - len(word))
    head = f"{word:<8}  {POINTS[finding.point].title:<14}  "
    text = finding.cause
    if finding.verdict is not Verdict.FINE:
        text += f". What to do: {finding.fix}"
    if not stream.isatty():
        return head + text  # one line, to be searched
    width = max(60, shutil.get_terminal_size().columns)
    lines = textwrap.wrap(text, width - MARGIN, break_on_hyphens=False, break_long_words=False)
    return head + ("\n" + " " * MARGIN).join(lines)


def _summary(findings: list[Finding]) -> str:
    count = dict.fromkeys(Verdict, 0)
    for finding in findings:
        count[finding.verdict] += 1
    if not count[Verdict.WARNING] + count[Verdict.PROBLEM]:
        return "all fine"
    parts = [
        f"{number} {verdict.value}{'s' if number != 1 else ''}"
        for verdict in (Verdict.PROBLEM, Verdict.WARNING)
        if (number := count[verdict])
    ]
    return ", ".join(parts)


def before_join(options: argparse.Namespace, folder: Path) -> list[str]:
    """Run the checks in a separate process, print the problems, and adapt the command.

    Args:
        options: those of `join`. folder: the volunteer's.

    Returns:
        Options to add to the command: ``--behind-firewall`` if others cannot connect to this
        machine.

    Raises:
        NotFitError: if there is a problem that waiting does not fix.
    """
    with told(CHECKING):
        findings = _ask([options.run, *_place(options, folder)])
    if findings is None:
        print("doctor: it gave no answer; joining without it", flush=True)
        return []
    ill = [finding for finding in findings if finding.verdict is not Verdict.FINE]
    print(f"doctor: {_summary(findings)}", flush=True)
    for finding in ill:
        print(show(finding, sys.stdout), flush=True)
    if any(finding.verdict is Verdict.PROBLEM and not finding.passes for finding in ill):
        print("not joining until this is fixed; --no-doctor joins anyway", flush=True)
        raise NotFitError
    if not any(f.point is PointName.REACHABILITY and not f.passes for f in ill):
        return []
    print("joining as with --behind-firewall: this machine connects to the others", flush=True)
    return ["--behind-firewall"]


def _place(options: argparse.Namespace, folder: Path) -> list[str]:
    """The options that doctor and `join` share."""
    shared = ["--folder", str(folder), *supervisor.endpoint_words(options)]
    if options.micro_batch is not None:
        shared += ["--micro-batch", str(options.micro_batch)]
    return shared


def _ask(arguments: list[str]) -> list[Finding] | None:
    """The findings of a doctor in another process, which frees its imports when it ends."""
    command = [*supervisor.COMMAND, "doctor", *arguments, "--json"]
    nothing, output = subprocess.DEVNULL, subprocess.PIPE
    try:
        with subprocess.Popen(command, stdin=nothing, stdout=output, stderr=nothing) as doctor:
            report = json.loads(_await_answer(doctor))
        return [Finding.from_json(value) for value in report["findings"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _await_answer(doctor: subprocess.Popen[bytes]) -> bytes:
    """All that a doctor says, however long it computes; nothing where it has come to a halt."""
    silence = Silence(partial(processor_seconds, doctor.pid), WORK_SECONDS)
    while True:
        try:
            return doctor.communicate(timeout=LOOK_SECONDS)[0]
        except subprocess.TimeoutExpired:
            if silence.seconds() > LONGEST_SECONDS:
                doctor.kill()
