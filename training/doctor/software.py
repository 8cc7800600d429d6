"""System, Python, packages and the limit of open files."""

import importlib.metadata
import json
import platform
import re
import sys
import tomllib
from pathlib import Path

from training.doctor.findings import Finding, PointName, Verdict, fine
from training.doctor.setup import MISSING, Setup
from training.run import limits

DISTRIBUTION = "training-transformers-together"
TESTED_PYTHONS = ((3, 11), (3, 13))  # oldest and newest that the tests run on

# Known problems with other versions.
REASONS = {
    "numpy": "with 2.4 or newer, hivemind cannot unpack tensors that travel in 8 bits",
    "hivemind": "peers of different versions may not understand each other",
}
MACHINES = {"Linux": {"x86_64", "aarch64"}, "Darwin": {"arm64"}}


def look_at_system(_setup: Setup) -> list[Finding]:
    """Check that hivemind has a build for this system."""
    system, machine, release = platform.system(), platform.machine(), platform.release()
    name = f"{system} {release} on {machine}"
    if system == "Windows":
        fix = "install WSL (`wsl --install` in PowerShell) and run this program in its Linux"
        return [Finding(PointName.SYSTEM, Verdict.PROBLEM, f"{name}: no build of hivemind", fix)]
    if system == "Darwin" and machine == "x86_64":
        fix = "join from a Mac with Apple silicon, from Linux, or from a notebook"
        cause = f"{name}: no build of PyTorch for Macs with Intel"
        return [Finding(PointName.SYSTEM, Verdict.PROBLEM, cause, fix)]
    if machine not in MACHINES.get(system, set()):
        fix = "join from Linux or macOS on a 64-bit Intel, AMD or ARM processor"
        return [Finding(PointName.SYSTEM, Verdict.WARNING, f"{name}: not tested", fix)]
    return [fine(PointName.SYSTEM, f"{name}, in WSL" if "microsoft" in release.lower() else name)]


def look_at_python(_setup: Setup) -> list[Finding]:
    """Check that we test this version of Python."""
    version = sys.version_info
    oldest, newest = TESTED_PYTHONS
    shown = f"{version.major}.{version.minor}.{version.micro}"
    if (version.major, version.minor) > newest:
        cause = f"{shown} is newer than the versions we test"
        fix = f"if packages fail, use Python {newest[0]}.{newest[1]}"
        return [Finding(PointName.PYTHON, Verdict.WARNING, cause, fix)]
    if (version.major, version.minor) < oldest:
        fix = f"install Python {oldest[0]}.{oldest[1]} or newer"
        return [Finding(PointName.PYTHON, Verdict.PROBLEM, f"{shown} is too old", fix)]
    return [fine(PointName.PYTHON, shown)]


def look_at_packages(setup: Setup) -> list[Finding]:
    """Compare the installed packages with the pins of the extra, and import the large ones."""
    broken = setup.broken_imports
    try:
        pins = read_pins()
        differences, missing = compare(pins)
    except ModuleNotFoundError:  # `packaging`, which comes with the extra
        pins, differences = [], []
        missing = [f"{name} is missing" for name, why in broken.items() if why == MISSING]
    broken_builds = [
        f"{name} does not import ({why})" for name, why in broken.items() if why != MISSING
    ]
    fix = f"install the pinned ones: {install_command()}"
    if missing or broken:
        cause = "; ".join([*missing, *differences, *broken_builds])
        return [Finding(PointName.PACKAGES, Verdict.PROBLEM, cause, fix)]
    if differences:
        return [Finding(PointName.PACKAGES, Verdict.WARNING, "; ".join(differences), fix)]
    return [fine(PointName.PACKAGES, f"all {len(pins)} as pinned")]


def compare(pins: list[str]) -> tuple[list[str], list[str]]:
    """Requirements installed in another version, and missing ones, in words."""
    from packaging.requirements import Requirement

    differences, missing = [], []
    for requirement in map(Requirement, pins):
        if requirement.marker and not requirement.marker.evaluate({"extra": "training"}):
            continue
        name, wanted = requirement.name, str(requirement.specifier)
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(f"{name} {wanted} is missing")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            why = f": {REASONS[name]}" if name in REASONS else ""
            differences.append(f"{name} is {version}, not {wanted}{why}")
    return differences, missing


def read_pins() -> list[str]:
    """Requirements of the extra `training`, from this checkout or else the installed package."""
    project = _checkout() / "pyproject.toml"
    if project.is_file():
        table = tomllib.loads(project.read_text("utf-8"))["project"]
        if table["name"] == DISTRIBUTION:
            return list(table["optional-dependencies"]["training"])
    required = importlib.metadata.requires(DISTRIBUTION) or []
    return [line for line in required if re.search(r"""extra\s*==\s*["']training["']""", line)]


def install_command() -> str:
    """The command that reinstalls the extra from its origin."""
    if (_checkout() / "pyproject.toml").is_file():
        return f'pip install "{_checkout()}[training]"'
    found = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    if not found:
        return f'pip install "{DISTRIBUTION}[training]"'
    origin = json.loads(found)
    kind = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f'pip install "{DISTRIBUTION}[training] @ {kind}{origin["url"]}"'


def _checkout() -> Path:
    return Path(__file__).resolve().parents[2]


def look_at_open_files(_setup: Setup) -> list[Finding]:
    """Raise the limit of open files if it is low and can be raised."""
    found = limits.raise_open_files()
    if found is None:
        return [fine(PointName.OPEN_FILES, "this system sets no limit")]
    before, now = found
    if now < limits.WANTED_FILES:
        cause = f"at most {now:,}, and no more is allowed; {limits.WANTED_FILES:,} are enough"
        fix = f"`ulimit -Hn {limits.WANTED_FILES}` as root, or the `nofile` limit of the container"
        return [Finding(PointName.OPEN_FILES, Verdict.WARNING, cause, fix)]
    raised = f", raised from {before:,}" if before < now else ""
    return [fine(PointName.OPEN_FILES, f"at most {now:,}{raised}")]
