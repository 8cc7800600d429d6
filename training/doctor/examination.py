"""All checks, run side by side, each with a deadline; no failure ends in a traceback."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from training.doctor import clock, hardware, line, services, software
from training.doctor.clock import Reading
from training.doctor.findings import Finding, PointName, Verdict
from training.doctor.setup import Setup
from training.run.patience import Silence
from training.run.runfile import RunFile
from training.run.status import first_line

SECONDS = 20.0  # for all checks that wait for others, from when nothing is computed any more
LOOK_SECONDS, WORK_SECONDS = 0.05, 0.2  # between two looks; of processor time that are progress
# Recipes that a run may have as they are.
JOINABLE = ("paper", "paper-local", "language", "sparse", "rehearsal")
_OF_MACHINE = (
    PointName.SYSTEM,
    PointName.PYTHON,
    PointName.PACKAGES,
    PointName.OPEN_FILES,
    PointName.DISK,
    PointName.GPU,
    PointName.EIGHT_BITS,
)


@dataclass(frozen=True)
class Check:
    """A function that checks something, and the points that it reports on."""

    points: tuple[PointName, ...]
    look: Callable[[], Iterable[Finding]]


def examine(setup: Setup, seconds: float = SECONDS) -> list[Finding]:
    """Run every check; the findings are in the order of the points."""
    findings: list[Finding] = []
    readings: list[Reading] = []
    for check in _here(setup):
        findings += _run(check)
    findings += _run_side_by_side(_elsewhere(setup, readings), seconds)
    findings.append(clock.judge(list(readings)))
    order = list(PointName)
    return sorted(findings, key=lambda finding: order.index(finding.point))


def examine_machine(setup: Setup) -> list[Finding]:
    """Check this machine without a run, and which recipes that come with us fit.

    A recipe that does not fit is a warning: others may. The disk is held against the setup's.
    """
    checks = (*_here(setup), *_elsewhere(setup, []))
    findings = [
        finding for check in checks if check.points[0] in _OF_MACHINE for finding in _run(check)
    ]
    for recipe in JOINABLE:
        of_recipe = replace(setup, run=RunFile(name_of(recipe), recipe))
        look = partial(hardware.look_at_memory, of_recipe)
        for found in _run(Check((PointName.MEMORY,), look)):
            fits = found.verdict is Verdict.FINE
            cause = f"{'can' if fits else 'cannot'} train the recipe {recipe}: {found.cause}"
            verdict = Verdict.FINE if fits else Verdict.WARNING
            findings.append(replace(found, cause=cause, verdict=verdict))
    return findings


def name_of(recipe: str) -> str:
    """The name of a run that is not there."""
    return f"any-{recipe}"


def _here(setup: Setup) -> tuple[Check, ...]:
    return (
        Check((PointName.SYSTEM,), lambda: software.look_at_system(setup)),
        Check((PointName.PYTHON,), lambda: software.look_at_python(setup)),
        Check((PointName.PACKAGES,), lambda: software.look_at_packages(setup)),
        Check((PointName.OPEN_FILES,), lambda: software.look_at_open_files(setup)),
        Check((PointName.FOLDER,), lambda: hardware.look_at_folder(setup)),
        Check((PointName.DISK,), lambda: hardware.look_at_disk(setup)),
    )


def _elsewhere(setup: Setup, readings: list[Reading]) -> tuple[Check, ...]:
    network = (PointName.PORT, PointName.ENTRY_POINTS, PointName.REACHABILITY)

    def meet() -> Iterable[Finding]:
        if setup.recipe.sparse is not None:
            return services.look_at_exchange(setup, readings)
        return line.visit(setup, readings)

    return (
        Check((PointName.MEMORY,), lambda: hardware.look_at_memory(setup)),
        Check((PointName.GPU,), lambda: hardware.look_at_gpu(setup)),
        Check((PointName.EIGHT_BITS,), lambda: hardware.look_at_eight_bits(setup)),
        Check(network, meet),
        Check((PointName.ACCESS,), lambda: services.look_at_access(setup)),
        Check((PointName.DATA,), lambda: services.look_at_data(setup)),
        Check((PointName.LIVE,), lambda: services.look_at_live(setup)),
    )


def _run(check: Check) -> list[Finding]:
    try:
        return list(check.look())
    except Exception as error:  # one broken check must not hide the others
        cause = f"could not be checked ({type(error).__name__}: {first_line(error)})"
        fix = "please report this line to the organizers"
        return [Finding(point, Verdict.WARNING, cause, fix) for point in check.points]


def _run_side_by_side(checks: tuple[Check, ...], seconds: float) -> list[Finding]:
    found: dict[Check, list[Finding]] = {}

    def run(check: Check) -> None:
        found[check] = _run(check)

    # A thread that hangs must not keep the process alive: hence no pool and no wait at the end.
    threads = [threading.Thread(target=run, args=(check,), daemon=True) for check in checks]
    for thread in threads:
        thread.start()
    silence = Silence(time.process_time, WORK_SECONDS)
    while any(thread.is_alive() for thread in threads) and silence.seconds() < seconds:
        time.sleep(LOOK_SECONDS)
    done = dict(found)
    findings = [finding for check in checks for finding in done.get(check, [])]
    cause = f"no answer within {seconds:.0f} s"
    fix = "try again; if that does not help, check this machine's connection"
    late = (point for check in checks if check not in done for point in check.points)
    return findings + [Finding(point, Verdict.WARNING, cause, fix, passes=True) for point in late]
