"""A stranger joins and is banned: authority, monitor and volunteer as real processes."""

import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO

import pytest

from tests.training.access.conftest import MALLORY
from tests.training.processes import Swarm, wait_for
from training.__main__ import main
from training.authority.standin import StandInHub, StandInUser
from training.rehearsal.command import free_port
from training.run import status, supervisor
from training.run.runfile import RunFile
from training.run.supervisor import Worker

pytestmark = pytest.mark.swarm

LIFETIME = 12  # seconds: a ban takes effect within
REASON = "sent wrong gradients"


@dataclass
class Scene(Swarm):
    """A run whose members need a token, or none."""

    endpoint: str = ""  # of the Hub

    def start(self, name: str, *arguments: str, **environment: str) -> Worker:
        home = str(self.folder / "home")  # where no token is stored
        own = {"HF_TOKEN": "", "HF_HOME": home, "HF_ENDPOINT": self.endpoint} | environment
        return super().start(name, *arguments, **own)

    def moderate(self, *arguments: str) -> str:
        folder = ("--folder", str(self.folder / "authority"))
        with redirect_stdout(StringIO()) as said:
            assert main(["authority", str(self.run_file), *arguments, *folder]) == 0
        return said.getvalue()

    def play(self) -> None:
        port = str(free_port())
        run = RunFile(
            name=f"banned-{os.getpid()}",
            recipe="tiny",
            steps=100_000,  # more than any machine makes meanwhile; who is alone is fast
            organisation="our-org",
            authority=f"http://127.0.0.1:{port}",
        )
        self.run_file.write_text(run.to_toml())
        self.start("authority", "--port", port, "--lifetime", str(LIFETIME))
        self.start("monitor", "--authority-folder", str(self.folder / "authority"))
        self.await_start("authority", "monitor")
        peers = tuple(status.read(self.folder / "monitor")["addresses"])
        self.run_file.write_text(replace(run, initial_peers=peers).to_toml())
        self.start("mallory", HF_TOKEN=MALLORY)
        self.await_start("mallory")
        wait_for("mallory to train", lambda: status.read(self.folder / "mallory")["samples"])
        self.seen["ban"] = self.moderate("ban", "mallory", "--reason", REASON)
        wait_for("mallory to leave", lambda: self.members["mallory"].exit_code is not None)
        self.seen["exit code"] = self.members["mallory"].exit_code
        self.seen["list"] = self.moderate("list")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Play the scene once; the tests look at what came of it."""
    with StandInHub({MALLORY: StandInUser("mallory", ("our-org",))}) as hub:
        yield Scene(tmp_path_factory.mktemp("banned"), endpoint=hub.endpoint).played()


def test_a_ban_ends_a_volunteer_cleanly_and_tells_the_reason(scene: Scene) -> None:
    assert scene.seen["exit code"] == supervisor.NOT_ADMITTED
    terminal = scene.said("mallory")
    assert f"banned this user or this device ({REASON})" in terminal
    assert "leaving the run" in terminal
    assert "Traceback" not in terminal
    assert "mallory is banned, with the devices of the account (1)" in scene.seen["ban"]
    assert f"within {LIFETIME} s" in scene.seen["ban"]


def test_moderators_see_every_decision(scene: Scene) -> None:
    listed = scene.seen["list"]
    assert re.search(rf"user mallory  since \S+  {REASON}", listed)
    assert re.search(r"peer Qm\w+ of mallory", listed)
    assert re.search(r"\S+ admitted mallory Qm\w+", listed)
    assert re.search(r"\S+ refused mallory Qm\w+ banned", listed)


def test_no_token_is_left_in_any_file_or_terminal(scene: Scene) -> None:
    contents = [path.read_bytes() for path in scene.folder.rglob("*") if path.is_file()]
    assert len(contents) > 10
    assert not any(MALLORY.encode() in content for content in contents)
    assert not any(MALLORY in str(value) for value in scene.seen.values())
