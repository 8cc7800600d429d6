"""The project's own virtual environment: made once, filled from hash-pinned requirement files."""

import enum
import hashlib
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

from tools.console import ROOT, BuildError, run, step
from tools.files import only_one

VENV = ROOT / ".venv"
REQUIREMENTS = ROOT / "requirements"
STAMPS = VENV / "stamps"


class Group(enum.StrEnum):
    """A requirement file; the value is its name under requirements/."""

    SITE = "site"
    TEST = "test"
    CHECK = "check"
    TORCH = "torch"
    TORCH_CUDA = "torch-cuda"
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
        for group in groups:
            _install(group)
            if group is Group.TORCH and _torch_wants_cuda():
                _install(Group.TORCH_CUDA)
    return venv_python()


def _base_python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor} {sys.base_prefix}"


def _is_whole() -> bool:
    """Whether the environment was made to the end, by this very Python."""
    mark = STAMPS / "python"
    made_by = mark.read_text() if mark.is_file() else ""
    return made_by == _base_python() and venv_python().exists()


def _create() -> None:
    with step("Making the virtual environment .venv"):
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            venv.EnvBuilder(with_pip=True, symlinks=sys.platform != "win32").create(VENV)
        except (subprocess.CalledProcessError, OSError, SystemExit) as error:
            shutil.rmtree(VENV, ignore_errors=True)
            raise BuildError(
                "Python cannot make a virtual environment here. On Debian and Ubuntu its "
                f"package is apart: apt install python3-venv. ({error})"
            ) from error
        STAMPS.mkdir()
        (STAMPS / "python").write_text(_base_python())


def _install(group: Group) -> None:
    """Install one requirement file unless its stamp says that this was done."""
    requirement_file = REQUIREMENTS / f"{group}.txt"
    wanted = hashlib.sha256(requirement_file.read_bytes()).hexdigest()
    stamp = STAMPS / group
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    # The files are complete, so pip needs no resolver, and nothing unpinned can come in.
    command = [venv_python(), "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--no-input", "--no-build-isolation", "--disable-pip-version-check"]
    with step(f"Installing {_PURPOSE[group]}"):
        run([*command, "-r", requirement_file], f"pip could not install {requirement_file.name}.")
    stamp.write_text(wanted)


_PURPOSE = {
    Group.SITE: "the packages of the site",
    Group.TEST: "the packages of the tests",
    Group.CHECK: "the packages of the checks",
    Group.TORCH: "PyTorch (a large download the first time)",
    Group.TORCH_CUDA: "NVIDIA's libraries for PyTorch (a large download the first time)",
    Group.TRAINING: "the packages of training and validation",
    Group.NODE: "npm, since this machine has no Node.js",
}


def _torch_wants_cuda() -> bool:
    """Whether the torch that pip found is one that needs NVIDIA's libraries from pip."""
    program = (
        "from importlib.metadata import requires\n"
        "from pip._vendor.packaging.requirements import Requirement\n"
        "wanted = [Requirement(line) for line in requires('torch') or []]\n"
        "print(any(r.name.startswith(('nvidia-', 'cuda-')) and "
        "(r.marker is None or r.marker.evaluate({'extra': ''})) for r in wanted))"
    )
    answer = run([venv_python(), "-c", program], "PyTorch's requirements could not be read.")
    return answer.strip().endswith("True")
