"""A run's authority over real HTTP on this machine, and a Hub of made-up accounts."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from hivemind.utils.crypto import RSAPrivateKey

from training.access import client
from training.access.client import Admission
from training.access.limits import Rate
from training.access.signatures import prove
from training.access.tokens import Token
from training.authority.admission import Admissions, Policy
from training.authority.books import Books
from training.authority.hub import Hub
from training.authority.keys import read_key
from training.authority.service import make_service
from training.authority.standin import StandInHub, StandInUser
from training.monitor.web_host import WebHost
from training.run.runfile import RunFile

HUB_PREFIX = "hf_"  # apart, so that no search for leaked tokens finds these
ALICE = HUB_PREFIX + "alicesSecretToken0123456789abcdef"
MALLORY = HUB_PREFIX + "mallorysSecretToken0123456789abcd"
STRANGER = HUB_PREFIX + "strangersSecretToken0123456789abc"
UNKNOWN = HUB_PREFIX + "nobodysSecretToken0123456789abcde"
TOKENS = (ALICE, MALLORY, STRANGER, UNKNOWN)
OURS, FAST = Policy("our-run", "our-org"), Rate(1000, 1000.0)
# Each client reads all certificates; no connection is kept, since servers come and go.
WEB = httpx.Client(limits=httpx.Limits(max_keepalive_connections=0))


@dataclass
class Place:
    """An authority that runs, and what it keeps."""

    run: RunFile
    folder: Path
    hub: StandInHub
    books: Books

    def put(self, token: str | None, body: object = None, **changes: object) -> httpx.Response:
        """Ask for access with a good request of `key`, or with another body."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is None:
            body = self.request(RSAPrivateKey.process_wide(), token or ALICE) | changes
        return WEB.put(f"{self.run.authority}/access", json=body, headers=headers)

    def request(self, key: RSAPrivateKey, token: str) -> dict[str, object]:
        return {
            "run": self.run.name,
            "organisation": self.run.organisation,
            "peer_public_key": key.get_public_key().to_bytes().decode(),
            "proof": prove(key, self.run.name, Token(token)),
        }

    def ask(self, token: str) -> Admission:
        """Ask as a volunteer does."""
        return client.ask(self.run, RSAPrivateKey.process_wide(), Token(token))


@pytest.fixture
def open_place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    with ExitStack() as stack:

        def open_one(
            policy: Policy = OURS,
            address_rate: Rate = FAST,
            user_rate: Rate = FAST,
            remember_seconds: float = 0.0,
        ) -> Place:
            users = {
                ALICE: StandInUser("alice", ("Our-Org", "others")),
                MALLORY: StandInUser("mallory", ("our-org",)),
                STRANGER: StandInUser("stranger", ("others",)),
            }
            hub = stack.enter_context(StandInHub(users))
            key, books = read_key(tmp_path), Books(tmp_path)
            asked = Hub(hub.endpoint, remember_seconds)
            application = make_service(
                Admissions(policy, key, books, asked, user_rate), address_rate
            )
            served = WebHost(application, "127.0.0.1", 0)
            stack.callback(served.close)
            own = {"organisation": policy.organisation, "authority": served.address}
            run = RunFile(name=policy.run, recipe="tiny", **own)
            return Place(run, tmp_path, hub, books)

        yield open_one


@pytest.fixture
def place(open_place: Callable[..., Place]) -> Place:
    return open_place()
