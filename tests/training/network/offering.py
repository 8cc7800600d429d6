"""A peer that hands out a file: `python offering.py FOLDER FILE [IP]`; it prints its addresses."""

import hashlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from training.network.connection import Endpoint, Identity
from training.network.peer_files import PeerFiles
from training.rehearsal.command import free_port


def main() -> None:
    folder, path = map(Path, sys.argv[1:3])
    host = sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1"
    identity = Identity.read(folder)
    endpoint = Endpoint(host, free_port())

    def find(sha256: str) -> bytes | None:
        content = path.read_bytes()
        name = hashlib.sha256(content).hexdigest()
        return content if sha256 in (name, path.name) else None

    files = PeerFiles(identity.path, endpoint, find, print)
    print(" ".join(files.addresses), flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
