"""Port, entry points and reachability: a short visit to the run's network."""

import asyncio
import contextlib
import ipaddress
import re
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from training.doctor import clock
from training.doctor.clock import Reading
from training.doctor.findings import NEWEST_FILE, Finding, PointName, Verdict, fine, unchecked
from training.doctor.hardware import is_in_use
from training.doctor.setup import Setup
from training.run.status import first_line

if TYPE_CHECKING:
    from hivemind.p2p import P2P, PeerID

GREETING_SECONDS = 6.0
BACK_SECONDS = 9.0  # the monitor itself gives up after 4 s of dialing and 4 s of listening
DAEMON_SECONDS = 10.0

FORWARD = (
    "open port {port} in the firewall and forward it from the router to this machine, or join "
    "with --behind-firewall"
)


@dataclass(frozen=True)
class Listener:
    """A port of ours that sends a word to anyone who connects; port 0 if none could be opened."""

    port: int
    word: str
    findings: list[Finding]


def visit(setup: Setup, readings: list[Reading]) -> Iterator[Finding]:
    """Check port, entry points and reachability, and add other peers' clocks to `readings`."""
    if "hivemind" in setup.broken_imports:
        for point in (PointName.PORT, PointName.ENTRY_POINTS, PointName.REACHABILITY):
            yield unchecked(point, "hivemind")
        return
    yield from asyncio.run(_visit(setup, readings))


async def _visit(setup: Setup, readings: list[Reading]) -> list[Finding]:
    async with _listen(setup) as listener:
        findings = list(listener.findings)
        if not setup.run.initial_peers:
            cause = "the run file names none: you would start the run alone"
            findings.append(Finding(PointName.ENTRY_POINTS, Verdict.WARNING, cause, NEWEST_FILE))
            findings.append(_nobody_tried(setup))
            return findings
        async with _join_network() as p2p:
            greetings = [_greet(p2p, address) for address in setup.run.initial_peers]
            greeted = await asyncio.gather(*greetings)
            findings += _judge_entry_points(setup.run.initial_peers, greeted)
            alive = [entry for entry in greeted if not isinstance(entry, str)]
            findings.append(await _find_monitor(setup, p2p, alive, listener, readings))
    return findings


@contextlib.asynccontextmanager
async def _listen(setup: Setup) -> AsyncIterator[Listener]:
    """Open the port that the volunteer will listen on."""
    word = secrets.token_hex(16)
    if not setup.reachable:
        yield Listener(0, word, [fine(PointName.PORT, "not needed: no one will connect")])
        return

    def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(word.encode())
        writer.close()

    try:
        server = await asyncio.start_server(answer, setup.host, setup.port)
    except (OSError, OverflowError) as error:
        yield Listener(0, word, [_judge_taken_port(setup, error)])
        return
    async with server:
        port = int(server.sockets[0].getsockname()[1])
        chosen = "" if setup.port else ", picked by the system; --port chooses one"
        yield Listener(port, word, [fine(PointName.PORT, f"{port} is free{chosen}")])


def _judge_taken_port(setup: Setup, error: Exception) -> Finding:
    if isinstance(error, PermissionError):
        cause = f"port {setup.port} is reserved for the administrator"
    elif isinstance(error, OSError) and "in use" in str(error):
        cause = f"port {setup.port} is taken on this machine"
    else:
        cause = f"cannot listen on {setup.host}, port {setup.port} ({first_line(error)})"
    if is_in_use(setup.folder):  # someone runs the doctor while the volunteer is running
        own = f"{cause}, probably by the volunteer in {setup.folder}"
        return Finding(PointName.PORT, Verdict.WARNING, own, "let it run")
    fix = "choose another port with --port, from 1024 to 65535"
    return Finding(PointName.PORT, Verdict.PROBLEM, cause, fix)


@contextlib.asynccontextmanager
async def _join_network() -> AsyncIterator["P2P"]:
    """An anonymous peer that connects to others and accepts no connections."""
    from hivemind.p2p import P2P

    p2p = await P2P.create(
        dht_mode="client",
        host_maddrs=None,
        no_listen=True,
        auto_nat=False,
        nat_port_map=False,
        startup_timeout=DAEMON_SECONDS,
    )
    try:
        yield p2p
    finally:
        await p2p.shutdown()


async def _greet(p2p: "P2P", address: str) -> "PeerID | str":
    """Connect to an entry point; returns its identity, or the reason for failure in words."""
    from hivemind.p2p import PeerID
    from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError
    from hivemind.utils.multiaddr import Multiaddr

    try:
        whole = Multiaddr(address)
        peer = PeerID.from_base58(whole["p2p"])
        route = whole.decapsulate(Multiaddr(f"/p2p/{peer}"))
        await asyncio.wait_for(p2p._client.connect(peer, [route]), GREETING_SECONDS)
    except TimeoutError:
        return f"no answer within {GREETING_SECONDS:.0f} s"
    except (P2PDaemonError, OSError, ValueError, LookupError) as error:
        return _in_words(str(error))
    return peer


_SIGNS = {
    "connection refused": "its machine answers, but nothing listens on that port",
    "peer id mismatch": "a different peer answers there",
    "no route to host": "there is no route to it",
    "network is unreachable": "this machine has no network",
    "no such host": "its name is unknown",
    "timeout": "no answer",
    "deadline exceeded": "no answer",
}


def _in_words(error: str) -> str:
    for sign, meaning in _SIGNS.items():
        if sign in error.lower():
            return meaning
    return f"it cannot be reached ({error.strip().splitlines()[-1] if error.strip() else 'why?'})"


def _judge_entry_points(
    addresses: tuple[str, ...], greeted: list["PeerID | str"]
) -> Iterator[Finding]:
    none = all(isinstance(entry, str) for entry in greeted)
    for address, entry in zip(addresses, greeted, strict=True):
        if not isinstance(entry, str):
            yield fine(PointName.ENTRY_POINTS, f"{_short(address)} answers")
            continue
        verdict = Verdict.PROBLEM if none else Verdict.WARNING
        fix = _fix_of_entry_point(address, none)
        cause = f"{_short(address)}: {entry}"
        yield Finding(PointName.ENTRY_POINTS, verdict, cause, fix, passes=True)


def _fix_of_entry_point(address: str, none: bool) -> str:
    if is_local(address):
        return (
            "start the monitor there; from elsewhere, get a run file with other addresses: this "
            "one works only within one machine or network"
        )
    if none:
        return (
            "check this machine's connection, then the run's page: the run may be down or finished"
        )
    return "nothing: other entry points answer"


def _short(address: str) -> str:
    """An address without the long identity."""
    return re.sub(r"/p2p/(\w{3})\w+(\w{5})", r" (\1...\2)", address)


def is_local(address: str) -> bool:
    """True if an IP address or multiaddress works only within one machine or network."""
    parts = address.split("/")
    text = parts[2] if address.startswith("/") and len(parts) > 2 else address
    try:
        return ipaddress.ip_address(text).is_private
    except ValueError:
        return False


async def _find_monitor(
    setup: Setup, p2p: "P2P", peers: list["PeerID"], listener: Listener, readings: list[Reading]
) -> Finding:
    """Ask the entry points one by one to connect back, until one can answer."""
    from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError, P2PHandlerError

    from training.network.reachability import ask

    port = _announced_port(setup) or listener.port
    for peer in peers:
        try:
            asked_at = time.time()
            told = (await ask(p2p, peer, 0, "", GREETING_SECONDS)).get("time")
            if isinstance(told, float):
                readings.append(clock.read("the run's monitor", told, asked_at, time.time()))
            if not listener.port:
                return _nobody_tried(setup)
            answer = await ask(p2p, peer, port, listener.word, BACK_SECONDS)
        except (P2PDaemonError, P2PHandlerError, OSError, TimeoutError):
            continue  # a volunteer does not know the question
        return _judge_reachability(setup, port, answer)
    return _nobody_tried(setup)


def _announced_port(setup: Setup) -> int | None:
    """The port announced to other peers, if it differs from the local one."""
    for address in setup.announce:
        if found := re.fullmatch(r"/[^/]+/[^/]+/tcp/(\d+).*", address):
            return int(found[1])
    return None


def _judge_reachability(setup: Setup, port: int, answer: dict[str, object]) -> Finding:
    from training.network.reachability import Outcome

    seen_as = str(answer.get("seen_as") or "this machine")
    place = f"{seen_as}, port {port}"
    if not setup.reachable:
        return _nobody_tried(setup)
    match answer.get("outcome"):
        case Outcome.REACHED:
            near = ", from the same network" if is_local(seen_as) else ""
            return fine(PointName.REACHABILITY, f"others reach {place}{near}")
        case Outcome.REFUSED:
            cause = f"others cannot connect to {place}: the connection is refused"
        case Outcome.NO_ANSWER:
            cause = f"others cannot connect to {place}: a firewall or router blocks it"
        case Outcome.SOMEBODY_ELSE:
            cause = f"another program or machine answers at {place}"
        case Outcome.BUSY:
            cause, fix = "the monitor had too many such requests", "try again in a minute"
            return Finding(PointName.REACHABILITY, Verdict.WARNING, cause, fix, passes=True)
        case _:
            return _nobody_tried(setup)
    fix = FORWARD.format(port=port)
    return Finding(PointName.REACHABILITY, Verdict.WARNING, cause, fix)


def _nobody_tried(setup: Setup) -> Finding:
    if not setup.reachable:
        return fine(PointName.REACHABILITY, "not needed: you chose --behind-firewall")
    cause = "no monitor answered, so no one tried to connect to this machine"
    fix = "if in doubt, join with --behind-firewall"
    return Finding(PointName.REACHABILITY, Verdict.WARNING, cause, fix, passes=True)
