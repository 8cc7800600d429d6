"""A peer's access to a run, held while it takes part."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from training.access import client
from training.access.client import Admission
from training.access.membership import Membership, Say, renewed
from training.access.signatures import PeerKey
from training.access.trust import token_for
from training.run.runfile import RunFile


@contextmanager
def admitted(
    run: RunFile,
    key: PeerKey,
    folder: Path,
    say: Say,
    stop: threading.Event,
    ask: Callable[[], Admission] | None = None,
) -> Iterator[Membership | None]:
    """Hold access to a run while the block lasts; None where the run has no authority.

    Args:
        key: the peer's. folder: the peer's, where access is kept.
        say: tells the peer's owner. stop: set when renewal is refused.
        ask: gives an admission; else the run's authority is asked with the user's token.

    Raises:
        AccessRefusedError: at the start, or when a renewal was refused at the end.
    """
    if not run.authority:
        yield None
        return

    def ask_authority() -> Admission:
        return client.ask(run, key, token_for(run.authority))

    public_key = key.get_public_key().to_bytes().decode()
    membership = Membership(folder, run.name, public_key)
    with renewed(membership, ask or ask_authority, say, stop) as held:
        yield held
