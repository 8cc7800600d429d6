"""Contents of `pip install` from the repository's address: all modules, and the files they read."""

import email
import shutil
import subprocess
import sys
import zipfile

import pytest

from tools.console import ROOT
from training.doctor.software import read_pins

PACKAGES = ("calculator", "training")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files in the wheel that is built from a copy of the sources."""
    copy = tmp_path_factory.mktemp("sources")
    for name in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    build = "import setuptools.build_meta as build; print(build.build_wheel('.'))"
    answer = subprocess.run(
        [sys.executable, "-c", build], cwd=copy, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    with zipfile.ZipFile(copy / answer.stdout.split()[-1]) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_every_file_of_the_packages_is_in_the_wheel(wheel: dict[str, bytes]) -> None:
    files = [path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()]
    wanted = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
    assert {name for name in wheel if ".dist-info/" not in name} == wanted


def test_it_carries_the_pins_that_the_doctor_reads(wheel: dict[str, bytes]) -> None:
    (metadata,) = [wheel[name] for name in wheel if name.endswith(".dist-info/METADATA")]
    required = email.message_from_bytes(metadata).get_all("Requires-Dist", [])
    extra = [
        line.split(";")[0].strip() for line in required if "'training'" in line.replace('"', "'")
    ]
    assert extra == [pin.split(";")[0].strip() for pin in read_pins()]
