"""Strangers join: authority, monitor and volunteers as real processes, a ban and an outage."""

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO

import pytest
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.access.conftest import ALICE, MALLORY, STRANGER, TOKENS, UNKNOWN
from tests.training.processes import Swarm, wait_for
from training.__main__ import main
from training.access.causes import AccessRefusedError, Cause
from training.access.membership import admitted
from training.authority.books import Books
from training.authority.standin import StandInHub, StandInUser
from training.rehearsal.command import free_port
from training.run import status, supervisor
from training.run.runfile import RunFile, load
from training.run.supervisor import COMMAND, Worker

pytestmark = pytest.mark.swarm

LIFETIME = 12  # seconds: a ban takes effect within
VISITORS = {"mallory again": MALLORY, "a stranger": STRANGER, "an unknown": UNKNOWN}
REASON = "sent wrong gradients"


@dataclass
class Scene(Swarm):
    """A run whose members need a token, or none."""

    endpoint: str = ""  # of the Hub

    def start(self, name: str, *arguments: str, **environment: str) -> Worker:
        home = str(self.folder / "home")  # where no token is stored
        own = {"HF_TOKEN": "", "HF_HOME": home, "HF_ENDPOINT": self.endpoint} | environment
        return super().start(name, *arguments, **own)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command as typed; with neither token nor terminal."""
        environment = os.environ | {"HF_TOKEN": "", "HF_HOME": str(self.folder / "home")}
        return subprocess.run(
            [*COMMAND, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def moderate(self, *arguments: str) -> str:
        folder = ("--folder", str(self.folder / "authority"))
        with redirect_stdout(StringIO()) as said:
            assert main(["authority", str(self.run_file), *arguments, *folder]) == 0
        return said.getvalue()

    def visit(self, name: str, token: str) -> None:
        """Ask for access as `join` does; note why there is none."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HF_TOKEN", token)
            key, folder = RSAPrivateKey(), self.folder / name
            with (
                pytest.raises(AccessRefusedError) as refused,
                admitted(load(str(self.run_file)), key, folder, print, threading.Event()),
            ):
                pass
        self.seen[name] = refused.value

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
        serving = ("--port", port, "--lifetime", str(LIFETIME))
        self.start("authority", *serving)
        own = ("--authority-folder", str(self.folder / "authority"))
        self.start("monitor", *own)
        self.await_start("authority", "monitor")
        peers = ", ".join(f'"{a}"' for a in status.read(self.folder / "monitor")["addresses"])
        text = re.sub(r"initial_peers = .*", f"initial_peers = [{peers}]", run.to_toml())
        self.run_file.write_text(text)
        self.start("alice", HF_TOKEN=ALICE)
        self.start("mallory", HF_TOKEN=MALLORY)
        self.seen["no token"] = self.command("join", str(self.run_file))
        self.await_start("alice", "mallory")
        self.ban_mallory()
        self.authority_has_an_outage(*serving)

    def ban_mallory(self) -> None:
        wait_for("mallory to train", lambda: status.read(self.folder / "mallory")["samples"])
        self.seen["ban"] = self.moderate("ban", "mallory", "--reason", REASON)
        mallory = self.members["mallory"]
        wait_for("mallory to leave", lambda: mallory.exit_code is not None)
        self.seen["exit code of mallory"] = mallory.exit_code
        for name, token in VISITORS.items():
            self.visit(name, token)

    def authority_has_an_outage(self, *serving: str) -> None:
        self.members["authority"].kill()
        wait_for("alice to notice", lambda: "could not be renewed" in self.said("alice"))
        self.visit("in the outage", ALICE)
        self.start("authority", *serving)
        wait_for("alice's renewal", lambda: "access to the run is renewed" in self.said("alice"))
        self.seen["alice after the outage"] = self.members["alice"].exit_code
        self.seen["list"] = self.moderate("list")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Play the scene once; the tests look at what came of it."""
    users = {
        ALICE: StandInUser("alice", ("our-org",)),
        MALLORY: StandInUser("mallory", ("our-org",)),
        STRANGER: StandInUser("stranger"),
    }
    with StandInHub(users) as hub:
        yield Scene(tmp_path_factory.mktemp("banned"), endpoint=hub.endpoint).played()


def test_a_ban_ends_a_volunteer_cleanly_and_tells_the_reason(scene: Scene) -> None:
    assert scene.seen["exit code of mallory"] == supervisor.NOT_ADMITTED
    terminal = scene.said("mallory")
    assert f"banned this user or this device ({REASON})" in terminal
    assert "leaving the run" in terminal
    assert "Traceback" not in terminal
    assert "mallory is banned, with the devices of the account (1)" in scene.seen["ban"]
    assert f"within {LIFETIME} s" in scene.seen["ban"]


@pytest.mark.parametrize(
    ("name", "cause", "words"),
    [
        ("mallory again", Cause.BANNED, REASON),
        ("a stranger", Cause.NOT_A_MEMBER, "stranger is not in our-org"),
        ("an unknown", Cause.TOKEN_INVALID, "revoked"),
        ("in the outage", Cause.AUTHORITY_UNREACHABLE, "no connection to"),
    ],
)
def test_who_is_not_admitted_is_told_why(scene: Scene, name: str, cause: Cause, words: str) -> None:
    refused = scene.seen[name]
    assert refused.cause is cause
    assert words in str(refused)
    assert len(str(refused).splitlines()) == 1


def test_whoever_comes_without_token_is_told_how_to_get_one(scene: Scene) -> None:
    done = scene.seen["no token"]
    assert done.returncode == supervisor.NOT_ADMITTED
    assert "huggingface.co/settings/tokens" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_running_volunteer_outlives_an_outage_of_the_authority(scene: Scene) -> None:
    assert scene.seen["alice after the outage"] is None
    assert "access could not be renewed and lasts until" in scene.said("alice")


def test_moderators_see_every_decision(scene: Scene) -> None:
    listed = scene.seen["list"]
    assert re.search(rf"user mallory  since \S+  {REASON}", listed)
    assert re.search(r"peer Qm\w+ of mallory", listed)
    assert re.search(r"\S+ admitted alice Qm\w+", listed)
    assert re.search(r"\S+ refused mallory Qm\w+ banned", listed)
    entries = Books(scene.folder / "authority").decisions("mallory")
    assert [entry.decision for entry in entries][:1] == ["admitted"]


def test_no_token_is_left_in_any_file_or_terminal(scene: Scene) -> None:
    contents = [path.read_bytes() for path in scene.folder.rglob("*") if path.is_file()]
    assert len(contents) > 10
    terminals = [str(value) for value in scene.seen.values()]
    for token in TOKENS:
        assert not any(token.encode() in content for content in contents)
        assert not any(token in terminal for terminal in terminals)
