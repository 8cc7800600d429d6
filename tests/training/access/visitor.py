"""`python visitor.py RUN FOLDER` asks for access as `join` does before it loads anything large."""

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import base64

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from training.access.causes import AccessRefusedError
from training.access.entrance import admitted
from training.run import supervisor
from training.run.runfile import load


class Key:
    """A peer's key, without loading hivemind for it."""

    def __init__(self) -> None:
        self.private = rsa.generate_private_key(65537, 2048)

    def sign(self, data: bytes) -> bytes:
        salted = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.MAX_LENGTH)
        return base64.b64encode(self.private.sign(data, salted, hashes.SHA256()))

    def get_public_key(self) -> "Key":
        return self

    def to_bytes(self) -> bytes:
        form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        return self.private.public_key().public_bytes(*form)


def visit() -> int:
    run, folder = load(sys.argv[1]), Path(sys.argv[2])
    try:
        with admitted(run, Key(), folder, print, threading.Event()) as membership:
            assert membership is not None
            print(f"admitted as {membership.current().grant.username}")
    except AccessRefusedError as error:
        print(f"{error.cause}: {error}")
        return supervisor.CANNOT_CONNECT if error.passes else supervisor.NOT_ADMITTED
    return 0


if __name__ == "__main__":
    raise SystemExit(visit())
