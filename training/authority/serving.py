"""Serving: the authority as a process that listens for volunteers."""

import argparse
import logging
import os
import socket
import sys
import threading
import time
from pathlib import Path

import uvicorn

from calculator.errors import InputError
from training.access.grants import public_key_text
from training.authority.admission import Admissions, Policy
from training.authority.books import Books
from training.authority.hub import DEFAULT_ENDPOINT, Hub
from training.authority.keys import read_key
from training.authority.service import make_service
from training.run import status
from training.run.runfile import RunFile

SHORTEST_LIFETIME, LONGEST_LIFETIME = 5, 86_400


def serve(run: RunFile, folder: Path, options: argparse.Namespace) -> int:
    """Admit volunteers until asked to stop.

    Raises:
        InputError: when an option is not as it must be, or the port is taken.
    """
    if not SHORTEST_LIFETIME <= options.lifetime <= LONGEST_LIFETIME:
        rule = f"must be {SHORTEST_LIFETIME} to {LONGEST_LIFETIME} seconds"
        raise InputError("lifetime", options.lifetime, rule)
    for name in ("certificate", "certificate_key"):
        path = getattr(options, name)
        if path is not None and not path.is_file():
            raise InputError(name.replace("_", "-"), path, "must be a file in PEM")
    policy = Policy(run.name, run.organisation, options.lifetime, options.allowlist)
    hub = Hub(os.environ.get("HF_ENDPOINT", DEFAULT_ENDPOINT))
    key = read_key(folder)
    admissions = Admissions(policy, key, Books(folder), hub)
    _start_logging()
    config = uvicorn.Config(
        make_service(admissions),
        log_config=None,
        access_log=False,  # it would show what a visitor writes into an address
        server_header=False,
        limit_concurrency=200,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=5,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.certificate_key,
    )
    listener = listen(options.host, options.port)
    port = listener.getsockname()[1]
    scheme = "https" if options.certificate else "http"
    address = f"{scheme}://{options.host}:{port}"
    _introduce(run, policy, address, public_key_text(key))
    server = uvicorn.Server(config)
    _end_with_the_supervisor(server)
    told = {"started": True, "address": address, "lifetime": options.lifetime}
    status.write(folder, told)
    with listener:
        server.run(sockets=[listener])
    return 0


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; raises InputError when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        rule = f"must be free on this machine: {error.strerror}"
        raise InputError("port", port, rule) from error
    return listener


def _introduce(run: RunFile, policy: Policy, address: str, key: str) -> None:
    whom = f"members of {policy.organisation}" if policy.organisation else "everybody"
    listed = ", if they are on the allowlist" if policy.allowlist else ""
    print(f"admits to {policy.run}: {whom}{listed}, for {policy.lifetime} s at a time")
    print(f"listens at {address}, signs with the key {key}")
    if not run.authority:
        print(f'for the run file:  authority = "{address}" (others need https)')
    if not run.authority_key:
        print(f'for the run file:  authority_key = "{key}"')
    sys.stdout.flush()


def _start_logging() -> None:
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.INFO, format=form, force=True)
    for library in ("httpx", "httpcore", "uvicorn", "asyncio"):
        logging.getLogger(library).setLevel(logging.WARNING)


def _end_with_the_supervisor(server: uvicorn.Server) -> None:
    """Exit when the process that supervises this one, if any, is gone."""
    parent = os.environ.get("TRAINING_SUPERVISOR")
    if parent != str(os.getppid()):
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(1.0)
        server.should_exit = True

    threading.Thread(target=watch, daemon=True).start()
