"""The project's own virtual environment: made once, filled from hash-pinned requirement files."""

import ast
import enum
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

from tools.console import ROOT, BuildError, run, say, step
from tools.files import only_one

VENV = ROOT / ".venv"
REQUIREMENTS = ROOT / "requirements"
STAMPS = VENV / "stamps"


class Group(enum.StrEnum):
    """A requirement file; the value is its name under requirements/."""

    UV = "uv"
    SITE = "site"
    TEST = "test"
    CHECK = "check"
    TORCH = "torch"
    TORCH_CPU = "torch-cpu"
    TRAINING = "training"
    NODE = "node"


EVERYTHING = (Group.SITE, Group.TEST, Group.CHECK, Group.TORCH, Group.TRAINING)


def venv_python() -> Path:
    """The environment's interpreter."""
    windows = sys.platform == "win32"
    return VENV / ("Scripts/python.exe" if windows else "bin/python")


def ensure(groups: Iterable[Group]) -> Path:
    """Make the environment hold `groups` exactly as pinned, and return its interpreter.

    What is already there is left alone: a stamp holds the hash of each file installed.
    Raises BuildError when it cannot be made.
    """
    with only_one():
        if not _is_whole():
            _create()
        for group in (Group.UV, *groups):
            if group is Group.TORCH:
                _install_torch()
            else:
                _install(group)
    return venv_python()


def _base_python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor} {sys.base_prefix}"


def _is_whole() -> bool:
    """True if this very Python finished creating the environment."""
    mark = STAMPS / "python"
    made_by = mark.read_text() if mark.is_file() else ""
    return made_by == _base_python() and venv_python().exists()


def _create() -> None:
    with step("Making the virtual environment .venv"):
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            # Without pip, whose installation takes longer than all else here.
            venv.EnvBuilder(symlinks=sys.platform != "win32").create(VENV)
        except (OSError, ValueError) as error:  # no room, or a ':' in the path
            shutil.rmtree(VENV, ignore_errors=True)
            raise BuildError(f"Python cannot make a virtual environment here. ({error})") from error
        STAMPS.mkdir()
        (STAMPS / "python").write_text(_base_python())


def _install(group: Group) -> None:
    """Install one requirement file unless its stamp says that this was done.

    uv takes a fraction of pip's time. What it cannot fetch, or where there is no uv, pip does.
    """
    requirement_file, stamp = REQUIREMENTS / f"{group}.txt", STAMPS / group
    if _is_installed(group):
        return
    stamp.unlink(missing_ok=True)
    # The files are complete, so pip needs no resolver, and nothing unpinned can come in.
    options: list[str | Path] = ["--quiet", "--no-deps", "--require-hashes", "--no-build-isolation"]
    options += ["-r", requirement_file]
    with step(f"Installing {_PURPOSE[group]}"):
        if group is Group.UV or not _uv(options):
            command = [*_pip(), "--python", venv_python(), "install", "--no-input", *options]
            run(command, f"pip could not install {requirement_file.name}.")
    stamp.write_text(_fingerprint(group))


@functools.cache
def _pip() -> list[str | Path]:
    """The command of this Python's pip, or else of one put into the environment."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    run(
        [venv_python(), "-m", "ensurepip"],
        "This Python has no pip and cannot install one. On Debian and Ubuntu its package is "
        "apart: apt install python3-venv.",
    )
    return [venv_python(), "-m", "pip"]


def _uv(options: Iterable[str | Path]) -> bool:
    """Run `uv pip` with `options` on the environment; True if it did what it was asked."""
    # Like pip, uv then takes a package from any index that has the pinned file.
    anywhere = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    try:
        settings = {**os.environ, **_pip_settings(), **anywhere}
        uv: list[str | Path] = [venv_python(), "-m", "uv", "pip", "install"]
        run([*uv, "--python", venv_python(), *options], "", environment=settings)
    except BuildError:
        return False
    return True


@functools.cache
def _pip_settings() -> dict[str, str]:
    """The places that pip is told to fetch packages from, in the variables that uv reads."""
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "cert": "SSL_CERT_FILE",
    }
    listed = run([*_pip(), "config", "list"], "pip cannot read its settings.")
    settings: dict[str, str] = {}
    for name, value in re.findall(r"([\w-]+)=(['\"].*['\"])$", listed, re.MULTILINE):
        if name in names:  # the first one counts: variables come before files
            separator = "," if name == "find-links" else " "
            settings.setdefault(names[name], separator.join(ast.literal_eval(value).split()))
    return settings


def _install_torch() -> None:
    """Install PyTorch: its small build for CPUs if pip is offered that, else the registry's.

    The registry has no build for CPUs on Linux; where pip is pointed at PyTorch's own index or a
    folder that has it, and there is no NVIDIA GPU, it saves two gigabytes.
    """
    if _is_installed(Group.TORCH) or _is_installed(Group.TORCH_CPU):
        return
    if shutil.which("nvidia-smi") is None:
        try:
            _install(Group.TORCH_CPU)
        except BuildError:
            say("  pip is offered no build of PyTorch for CPUs here; taking the full one.")
        else:
            return
    _install(Group.TORCH)


def _is_installed(group: Group) -> bool:
    stamp = STAMPS / group
    return stamp.is_file() and stamp.read_text() == _fingerprint(group)


def _fingerprint(group: Group) -> str:
    return hashlib.sha256((REQUIREMENTS / f"{group}.txt").read_bytes()).hexdigest()


_PURPOSE = {
    Group.UV: "uv, which installs the rest",
    Group.SITE: "the packages of the site",
    Group.TEST: "the packages of the tests",
    Group.CHECK: "the packages of the checks",
    Group.TORCH: "PyTorch (a large download the first time)",
    Group.TORCH_CPU: "PyTorch for CPUs",
    Group.TRAINING: "the packages of training and validation",
    Group.NODE: "npm, since this machine has no Node.js",
}
