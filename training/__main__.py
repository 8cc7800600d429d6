"""Train a model together with others, or run the training of others."""

import argparse
import contextlib
import importlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from calculator.errors import InputError
from training.access import trust
from training.access.causes import AccessRefusedError
from training.access.tokens import provide_token
from training.doctor.findings import NotFitError
from training.run import limits, milestones, supervisor
from training.run.runfile import RunFile, default_folder, load

if TYPE_CHECKING:
    from training.network.connection import Endpoint

PEERS = 3  # of a rehearsal
LOADING = "loading the libraries takes some seconds"

# Commands with a command line of their own: its module, and what it does.
MODULES = {
    "authority": ("training.authority.command", "admit members of an organization, ban users"),
    "encode": ("training.data.encode", "turn pictures into the codes that volunteers stream"),
    "generate": ("training.pictures.generate", "draw pictures for prompts"),
    "ban": ("training.monitor.ban", "ban a volunteer whom the live page shows"),
    "rollback": ("training.monitor.rollback", "return a run to a published checkpoint"),
}


def main(argv: list[str] | None = None) -> int:
    """Run a command; bad input ends with status 2 and one line that names it."""
    arguments = sys.argv[1:] if argv is None else argv
    for library in ("DIFFUSERS", "TRANSFORMERS"):  # their advice is for developers
        os.environ.setdefault(f"{library}_VERBOSITY", "error")
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    try:
        if arguments and arguments[0] in MODULES:
            return _run_module(*arguments)
        options = make_parser().parse_args(arguments)
        if options.command == "rehearse":
            return _rehearse(options)
        if options.command == "doctor":
            return _doctor(options)
        if options.command == "host":
            return _host(options)
        return _join_or_monitor(options, arguments)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return supervisor.INPUT_ERROR
    except AccessRefusedError as error:
        print(f"access refused: {error}", file=sys.stderr)
        return supervisor.NOT_ADMITTED
    except NotFitError:
        return 1
    except KeyboardInterrupt:
        return 130


def _run_module(name: str, *arguments: str) -> int:
    """Run a command with a command line of its own."""
    if name != "authority":
        print(LOADING, file=sys.stderr, flush=True)
    command = importlib.import_module(MODULES[name][0])
    return int(command.main(list(arguments)) or 0)


def make_parser() -> argparse.ArgumentParser:
    """Describe the commands that have no command line of their own."""
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    rehearse = commands.add_parser("rehearse", help="run a whole swarm on this machine")
    rehearse.add_argument("--minutes", type=float, default=5.0, help="of training")
    rehearse.add_argument("--peers", type=int, default=PEERS, help="volunteers")
    rehearse.add_argument(
        "--recipe",
        default="rehearsal",
        help="their recipe, a name or a TOML file; default: 'rehearsal'. With 'sparse' volunteers "
        "make local steps and exchange small signed files through the monitor, which leaves out "
        "those that harm",
    )
    rehearse.add_argument("--folder", type=Path, help="for results; default: a new one here")
    rehearse.add_argument(
        "--calm", action="store_true", help="without killing a volunteer and without a late joiner"
    )
    rehearse.add_argument(
        "--open",
        action="store_true",
        help="ask for no account, so that with local steps browsers' tabs can join",
    )
    doctor = commands.add_parser("doctor", help="check whether this machine can join")
    doctor.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="the run file, or its address; without one, check which recipes fit this machine",
    )
    doctor.add_argument("--json", action="store_true", help="for programs")
    doctor.add_argument(
        "--micro-batch", type=int, help="sequences at once; default: as many as fit"
    )
    _add_place(doctor)
    join = commands.add_parser("join", help="train together with others")
    join.add_argument("run", metavar="RUN", help="the run file, or its address")
    join.add_argument(
        "--name", help="your name among the contributors; default: your account's name"
    )
    join.add_argument("--micro-batch", type=int, help="sequences at once; default: as many as fit")
    join.add_argument("--no-doctor", action="store_true", help="do not check this machine first")
    host = commands.add_parser("host", help="organize a run: monitor, authority and live page")
    host.add_argument("--page-port", type=int, default=0, help="port of the live page; 0 for any")
    monitor = commands.add_parser("monitor", help="keep a run's records and its live data")
    monitor.add_argument(
        "--authority-folder",
        type=Path,
        help="of the run's authority, if it is on this machine, so that you need no token",
    )
    for organizing in (host, monitor):
        _add_organizing(organizing)
    for parser_of_peer in (join, host, monitor):
        _add_place(parser_of_peer)
        parser_of_peer.add_argument(
            "--threads", type=int, help="CPU threads; default: as many as cores"
        )
    for name, (_, words) in MODULES.items():
        commands.add_parser(name, help=words)
    return parser


def _add_organizing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the run file, or its address")
    parser.add_argument("--live", type=Path, help="folder of the live data; default: in --folder")
    parser.add_argument("--minutes", type=float, help="end the run this long after its first step")
    parser.add_argument("--sequences", type=int, help="end the run after this many sequences")


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, help="for identity, backup, status and log")
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="TCP port to listen on; 0 for any")
    parser.add_argument(
        "--announce", nargs="*", default=[], metavar="ADDRESS", help="multiaddresses of this peer"
    )
    parser.add_argument(
        "--behind-firewall", action="store_true", help="connect to others, accept no connections"
    )
    parser.add_argument(
        trust.FLAG,
        metavar="HOST",
        help="send your Hugging Face token to this server without asking",
    )


def _join_or_monitor(options: argparse.Namespace, arguments: list[str]) -> int:
    """Start a supervised process, or be one."""
    run = load(options.run)
    folder = options.folder or default_folder(run, options.command)
    if os.environ.get("TRAINING_SUPERVISOR") == str(os.getppid()):
        from training.network import worker as inside

        make_work = _make_join if options.command == "join" else _make_monitor
        inside.run(make_work(run, folder, options), folder)
    if run.authority and not _signs_own(run, options):
        provide_token()
        trust.agree(run.authority, options.trust_authority)
    if options.command == "join":
        arguments = [*arguments, *_examine(options, folder)]
    print(f"starting {options.command} {run.name}: {LOADING}", flush=True)
    stop = threading.Event()
    supervisor.stop_on_signals(stop)
    worker = supervisor.Worker([*supervisor.COMMAND, *arguments], folder, options.threads)
    return supervisor.supervise(worker, stop)


def _signs_own(run: RunFile, options: argparse.Namespace) -> bool:
    """True if this is the monitor on the machine of the run's authority."""
    if options.command != "monitor":
        return False
    from training.authority.keys import find_authority_folder

    return find_authority_folder(run, options.authority_folder) is not None


def _doctor(options: argparse.Namespace) -> int:
    from training.doctor import command

    if options.run is None:
        return command.run(None, options.folder or Path.cwd(), options)
    run = load(options.run)
    if run.authority:
        with contextlib.suppress(AccessRefusedError):  # then it is among the findings
            trust.agree(run.authority, options.trust_authority)
    return command.run(run, options.folder or default_folder(run, "join"), options)


def _host(options: argparse.Namespace) -> int:
    from training.monitor.hosting import HostOptions, host

    run = load(options.run)
    # Where the commands of the monitor and the authority look, too.
    folder = options.folder or default_folder(run, "monitor").parent
    further = supervisor.endpoint_words(options)
    for name in ("minutes", "sequences", "threads"):
        value = getattr(options, name)
        further += [f"--{name}", str(value)] if value is not None else []
    live = options.live or folder / "monitor" / "live" / run.name
    chosen = HostOptions(options.run, folder.resolve(), live, further, options.page_port)
    stop = threading.Event()
    supervisor.stop_on_signals(stop)
    return host(run, chosen, stop)


def _examine(options: argparse.Namespace, folder: Path) -> list[str]:
    """Begin a volunteer's clock and look at the machine; gives options to add."""
    from training.doctor import command

    limits.raise_open_files()
    milestones.begin()
    if options.no_doctor:
        return []
    added = command.before_join(options, folder)
    milestones.mark(milestones.Milestone.DOCTOR)
    return added


Work = Callable[[threading.Event], None]


def _make_join(run: RunFile, folder: Path, options: argparse.Namespace) -> Work:
    from training.volunteer import peer, rounds

    chosen = peer.PeerOptions(
        name=options.name or "",
        folder=folder,
        endpoint=_make_endpoint(options),
        micro_batch_size=options.micro_batch,
    )
    kind = rounds.RoundsVolunteer if run.get_recipe().sparse else peer.Volunteer
    return lambda stop: peer.join(kind, run, chosen, stop)


def _make_monitor(run: RunFile, folder: Path, options: argparse.Namespace) -> Work:
    from training.monitor.monitor import MonitorOptions
    from training.monitor.service import watch

    chosen = MonitorOptions(
        folder=folder,
        live=options.live or folder / "live" / run.name,
        source=options.run,
        endpoint=_make_endpoint(options),
        minutes=options.minutes,
        sequences=options.sequences,
        authority_folder=options.authority_folder,
    )
    return lambda stop: watch(run, chosen, stop)


def _make_endpoint(options: argparse.Namespace) -> "Endpoint":
    from training.network.connection import Endpoint

    return Endpoint(
        host=options.host,
        port=options.port,
        announce=tuple(options.announce),
        reachable=not options.behind_firewall,
    )


def _rehearse(options: argparse.Namespace) -> int:
    from training.rehearsal import command

    chosen = command.RehearsalOptions(
        minutes=options.minutes,
        peers=options.peers,
        recipe=options.recipe,
        folder=options.folder,
        incidents=not options.calm,
        is_open=options.open,
    )
    return command.rehearse(chosen)


if __name__ == "__main__":
    raise SystemExit(main())
