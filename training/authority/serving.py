"""Serving: the authority as a process that listens for volunteers."""

import argparse
import logging
import os
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from calculator.errors import InputError
from training.access.grants import public_key_text
from training.authority.admission import Admissions, Policy
from training.authority.books import Books
from training.authority.hub import DEFAULT_ENDPOINT, Hub
from training.authority.keys import read_key
from training.authority.service import make_service
from training.run import status, supervisor
from training.run.runfile import RunFile

SHORTEST_LIFETIME, LONGEST_LIFETIME = 5, 86_400
MOST_AT_ONCE = 200  # connections


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
    listener = listen(options.host, options.port)
    port = listener.getsockname()[1]
    scheme = "https" if options.certificate else "http"
    address = f"{scheme}://{options.host}:{port}"
    _introduce(run, policy, address, public_key_text(key))
    server = make_server(
        make_service(admissions),
        MOST_AT_ONCE,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.certificate_key,
    )

    def stop() -> None:
        server.should_exit = True

    supervisor.stop_without_supervisor(stop)
    told = {"started": True, "address": address, "lifetime": options.lifetime}
    status.write(folder, told)
    with listener:
        server.run(sockets=[listener])
    return 0


def make_server(service: ASGIApp, most_at_once: int, **options: Any) -> uvicorn.Server:
    """A server that logs nothing, since it would show what a visitor writes into an address."""
    config = uvicorn.Config(
        service,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=most_at_once,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=5,
        **options,
    )
    return uvicorn.Server(config)


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
