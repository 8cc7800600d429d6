"""Access for the monitor on the authority's own machine: signed there, without a token."""

import time
from pathlib import Path

from training.access import grants
from training.access.client import Admission
from training.authority.keys import read_key

USERNAME = "(monitor)"  # no name that the Hub would give to a user
LIFETIME = 600


def sign_own(folder: Path, run: str, peer_public_key: str) -> Admission:
    """Sign a grant for a peer of the organisers with the key in the authority's folder.

    Raises:
        InputError: when the key cannot be used.
    """
    key = read_key(folder)
    expires = int(time.time()) + LIFETIME
    grant = grants.issue(key, run, USERNAME, peer_public_key, expires)
    return Admission(grant, grants.public_key_text(key))
