"""Access for the monitor on the authority's own machine: signed there, without a token."""

import time
from pathlib import Path

from calculator.errors import InputError
from training.access import grants
from training.access.client import Admission
from training.authority import keys
from training.run.folders import default_folder
from training.run.runfile import RunFile

USERNAME = "(monitor)"  # no name that the Hub would give to a user
LIFETIME = 600


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


def sign_own(folder: Path, run: str, peer_public_key: str) -> Admission:
    """Sign a grant for a peer of the organisers with the key in the authority's folder.

    Raises:
        InputError: when the key cannot be used.
    """
    key = keys.read_key(folder)
    expires = int(time.time()) + LIFETIME
    grant = grants.issue(key, run, USERNAME, peer_public_key, expires)
    return Admission(grant, grants.public_key_text(key))
