"""Forks programs from a process that has the large libraries loaded.

Importing them takes up to 15 seconds of processor time, which a scenario would spend for each of
its members. Hivemind and most of `training` are not loaded before the fork: they make locks and
counters that members would share.

Arguments: the descriptor of a socket that listens, and the process ID that it serves until that has
ended. A connection asks one thing in a line of JSON, and so is it answered: ``command`` (a Python
program and its arguments), ``log``, ``environment`` and ``namespace`` (of the network, or null)
start a program in a session of its own, and give its process ID; ``ended`` asks for the exit status
of a process ID, null while that runs.
"""

import ctypes
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import warnings
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2]))

CLONE_NEWNET: Final = 0x40000000  # linux/sched.h
LIBRARIES: Final = (
    "bitsandbytes",
    "calculator.estimate",
    "cid",
    "cryptography.x509",
    "diffusers.models.autoencoders.vq_model",
    "google.protobuf.message",
    "httpx",
    "multihash",
    "netaddr",
    "pyarrow.parquet",
    "pydantic.v1",
    "scipy.optimize",
    "starlette.applications",
    "torch",
    "training.run.runfile",
    "transformers.modeling_utils",
    "uvicorn.server",
    "uvloop",
)


def main() -> int:
    """Answer until the run of the tests has ended; in a program, what that ends with."""
    if os.fork():
        return 0  # so that whoever started it need not wait for it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for library in LIBRARIES:
            importlib.import_module(library)
    listening, run = socket.socket(fileno=int(sys.argv[1])), Path("/proc", sys.argv[2])
    listening.settimeout(1.0)
    while run.exists():
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            continue
        with connection, connection.makefile("rw") as line:
            if not (text := line.readline()):
                continue  # somebody looks whether this listens
            asked = json.loads(text)
            answer = _exit_status(asked["ended"]) if "ended" in asked else _fork(asked)
            if answer != 0 or "ended" in asked:
                line.write(json.dumps(answer) + "\n")
                continue
        listening.close()
        sys.argv = asked["command"]
        runpy.run_path(sys.argv[0], run_name="__main__")
        return 0
    address = Path(listening.getsockname())
    for path in (address, address.with_suffix(".lock")):
        path.unlink()
    return 0


def _exit_status(process: int) -> int | None:
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _fork(asked: dict[str, Any]) -> int:
    """The new process's ID, once that leads a session; in itself 0."""
    parent = os.getpid()
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        os.read(reading, 1)  # ends when the other end is closed
        os.close(reading)
        return process
    os.setsid()
    os.close(reading)
    os.close(writing)
    log = os.open(asked["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for opened, place in ((os.open(os.devnull, os.O_RDONLY), 0), (log, 1), (log, 2)):
        os.dup2(opened, place)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ |= {**asked["environment"], "TRAINING_SUPERVISOR": str(parent)}
    if asked["namespace"]:
        _enter(asked["namespace"])
    _reseed()
    return 0


def _enter(namespace: str) -> None:
    """Move to a network namespace, as `ip netns exec` does."""
    libc = ctypes.CDLL(None, use_errno=True)  # `os.setns` came with Python 3.12
    with Path("/run/netns", namespace).open() as file:
        if libc.setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {namespace}")


def _reseed() -> None:
    """Other random numbers than the next fork's; Python's own module does so by itself."""
    import numpy as np

    np.random.seed()


if __name__ == "__main__":
    raise SystemExit(main())
