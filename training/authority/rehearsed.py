"""The authority of a rehearsal: real, but the Hub that it asks knows made-up accounts only."""

import secrets
from pathlib import Path

from training.access.grants import public_key_text
from training.authority.keys import read_key
from training.authority.standin import StandInHub, StandInUser
from training.run.supervisor import COMMAND, Worker

ORGANISATION = "rehearsal"


class RehearsedAuthority:
    """An authority as a process, and a stand-in for the Hub in a thread of this one.

    Args:
        run_file: of the rehearsal. folder: the authority's. port: to listen on. log: its output.
    """

    def __init__(self, run_file: Path, folder: Path, port: int, log: Path) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.key = public_key_text(read_key(folder))
        self.hub = StandInHub({})
        command = [*COMMAND, "authority", str(run_file), "serve", "--folder", str(folder)]
        command += ["--port", str(port)]
        environment = {"HF_ENDPOINT": self.hub.endpoint}
        self.worker = Worker(command, folder, 1, log, environment)

    def make_user(self, name: str) -> dict[str, str]:
        """Make up an account; gives the environment with which its owner joins."""
        token = f"made-up-{secrets.token_hex(16)}"
        self.hub.users[token] = StandInUser(name, (ORGANISATION,))
        # the true Hub does not know the token: downloads of public data are to do without
        return {"HF_TOKEN": token, "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}

    def stop(self) -> None:
        """End the process and the stand-in."""
        self.worker.stop()
        self.hub.close()
