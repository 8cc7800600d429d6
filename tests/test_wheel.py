"""The wheel and the source archive, made by the build backend that pyproject.toml names."""

import email
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from templates.render import render_page
from tools.console import ROOT
from training.doctor.software import read_pins

PACKAGES = ("calculator", "training", "validation")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
BACKEND = (
    "import sys; from setuptools import build_meta; "
    "print(getattr(build_meta, f'build_{sys.argv[1]}')(sys.argv[2]))"
)


def built(kind: str, source: Path, target: Path) -> Path:
    target.mkdir(exist_ok=True)
    command = [sys.executable, "-W", "ignore", "-c", BACKEND, kind, str(target)]
    return target / subprocess.check_output(command, text=True, cwd=source).splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the source archive, as pip makes it from that."""
    folder = tmp_path_factory.mktemp("wheel")
    copied = folder / "copied"
    for name in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, copied / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, copied / name)
    archive = built("sdist", copied, folder / "dist")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return built("wheel", folder / archive.name.removesuffix(".tar.gz"), folder / "dist")


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    files = [path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()]
    wanted = {path.relative_to(ROOT) for path in files if "__pycache__" not in path.parts}
    assert names <= {path.as_posix() for path in wanted}
    for path in wanted:  # but the measurements of `validation`
        is_needed = path.parts[0] != "validation" or path.suffix == ".py"
        assert not is_needed or path.as_posix() in names


def test_the_wheel_has_two_commands_the_doctors_pins_and_no_dependencies(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (metadata,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        needed = email.message_from_bytes(packed.read(metadata)).get_all("Requires-Dist", [])
        commands = packed.read(metadata.replace("METADATA", "entry_points.txt")).decode()
    for name, place in PROJECT["scripts"].items():
        assert f"{name} = {place}" in commands
    assert all("extra ==" in line for line in needed)
    pins = [line.split(";")[0].strip() for line in needed if line.endswith('extra == "training"')]
    assert pins == [pin.split(";")[0].strip() for pin in read_pins()]


def test_the_calculator_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    place, _, function = PROJECT["scripts"]["transformer-memory"].partition(":")
    program = f"import sys; from {place} import {function}; sys.exit({function}())"
    command = [sys.executable, "-S", "-c", program, "estimate", "gpt2-s"]
    environment = {"PYTHONPATH": str(wheel)}
    said = subprocess.check_output(command, text=True, cwd=tmp_path, env=environment)
    assert "124,439,808 parameters" in said  # the paper's figure for GPT-2


def test_the_citation_is_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert (cited["version"], cited["license"]) == (PROJECT["version"], PROJECT["license"])
    assert f"version = {{{cited['version']}}}" in render_page("about")
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert all("name" in author for author in cited["authors"])
