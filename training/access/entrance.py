"""How a peer comes by its access: by a token, or on the authority's own machine by its key."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calculator.errors import InputError
from training.access import client
from training.access.client import Admission
from training.access.membership import Membership, Say, renewed
from training.access.proofs import PeerKey
from training.access.tokens import find_token
from training.authority import keys
from training.authority.local import sign_own
from training.folders import default_folder
from training.runfile import RunFile


@contextmanager
def admitted(
    run: RunFile,
    key: PeerKey,
    folder: Path,
    say: Say,
    stop: threading.Event,
    authority_folder: Path | None = None,
) -> Iterator[Membership | None]:
    """Hold access to a run while the block lasts; None where the run has no authority.

    Args:
        key: the peer's. folder: the peer's, where access is kept.
        say: tells the peer's owner. stop: set when renewal is refused.
        authority_folder: where the authority's own key is; then no token is needed.

    Raises:
        AccessRefusedError: at the start, or when a renewal was refused at the end.
    """
    if not run.authority:
        yield None
        return
    public_key = key.get_public_key().to_bytes().decode()

    def ask() -> Admission:
        if authority_folder is not None:
            return sign_own(authority_folder, run.name, public_key)
        return client.ask(run, key, find_token())

    with renewed(Membership(folder, run.name, public_key), ask, say, stop) as membership:
        yield membership


def find_authority_folder(run: RunFile, chosen: Path | None) -> Path | None:
    """The folder of the run's authority if it is on this machine, for the monitor.

    Raises:
        InputError: when a folder is named and the run file has no authority.
    """
    if chosen is not None:
        if not run.authority:
            rule = "must not be given where the run file names no authority"
            raise InputError("authority_folder", chosen, rule)
        return chosen
    usual = default_folder(run, "authority")
    return usual if run.authority and (usual / keys.FILE_NAME).exists() else None
