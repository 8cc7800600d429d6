"""Commands on the pages: the command line understands each one."""

import re
import shlex
import tomllib

import pytest

from templates.pieces.commands import at_once, install, places
from tests.pages.rendered import render_page
from tests.pages.typed import commands_of, is_understood
from tools.console import ROOT
from tools.source import Source, find_source
from training.run.runfile import parse

# The libraries that a command imports before it reads its options warn of their own future.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PAGES = ("join", "run-your-own", "local-steps", "security")


def test_every_command_on_the_pages_is_understood() -> None:
    for line in sorted({line for page in PAGES for line in commands_of(page)}):
        with pytest.MonkeyPatch.context() as patch:
            is_understood(line.replace(" STEP", " 500"), patch)


def test_the_pages_tell_the_commands_that_matter() -> None:
    told = {line.split()[3] for page in PAGES for line in commands_of(page)}
    named = "doctor join rehearse encode monitor authority generate ban rollback"
    assert told >= {*named.split()}


def test_the_container_starts_a_volunteer(monkeypatch: pytest.MonkeyPatch) -> None:
    (docker,) = [place for place in places(find_source()) if place.title == "Docker"]
    arguments = docker.lines[-1].rpartition(" volunteer ")[2]
    is_understood(f"python -m training {arguments}", monkeypatch)
    image = (ROOT / "Dockerfile").read_text("utf-8")
    assert 'ENTRYPOINT ["python", "-m", "training"]' in image
    assert f"EXPOSE {re.findall(r'--port ([0-9]+)', arguments)[0]}" in image
    assert "VOLUME /state" in image
    assert "ARG VARIANT=" in image


@pytest.mark.parametrize("source", [Source(), Source("https://example.org/run")])
def test_one_line_installs_and_joins(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    uvx, _, package, command, *arguments = shlex.split(at_once(source))
    assert uvx == "uvx"
    assert package in install(source)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts[command] == "training.__main__:main"
    is_understood(f"python -m training {' '.join(arguments)}", monkeypatch)


def test_the_run_file_on_the_page_is_one_and_the_extra_that_is_installed_exists() -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", render_page("run-your-own"), re.M | re.S)
    run = parse(text)
    assert run.recipe == "paper"
    assert run.authority.startswith("https://")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (name, extra) = re.findall(r'"([\w-]+)\[(\w+)\]', install(Source("https://example.org/run")))[0]
    assert project["name"] == name
    assert extra in project["optional-dependencies"]
