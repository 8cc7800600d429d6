"""The commands of build.py: what each sets up, and what it then runs."""

import argparse
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tools.console import ROOT, BuildError, say
from tools.environment import EVERYTHING, STAMPS, Group, ensure, venv_python
from tools.node import Packages, find_node, install_node_packages

# One more than there are cores: browsers and swarms often wait; two more took a minute longer.
PROCESSES = min(3, (os.cpu_count() or 1) + 1)
# tests/scheduling.py says which process takes which file.
SIDE_BY_SIDE = ("-n", str(PROCESSES), "--dist", "loadfile")


def main(arguments: Sequence[str]) -> int:
    """Run one command and return the exit status."""
    options, rest = _parser().parse_known_args(arguments)
    if rest and options.command not in ("test", "bench"):
        _parser().error(f"unknown: {' '.join(rest)}")
    try:
        return _run(options, rest)
    except BuildError as error:
        say(f"build.py: {error}")
        return 1
    except KeyboardInterrupt:
        say("\nStopped; nothing is left half-done.")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="build.py", description="Set up, build, serve, test.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="build the site and serve it on this machine")
    serve.add_argument("--port", type=int, default=8000, help="default: 8000; 0: any free one")
    commands.add_parser("build", help="leave the complete site in site/")
    words = "run every test; --quick: those near to what changed; other options go to pytest"
    commands.add_parser("test", help=words)
    commands.add_parser("check", help="formatting, lint, types, spelling, prose, forbidden things")
    words = "measure speed and size; options: see bench --help"
    commands.add_parser("bench", help=words, add_help=False)  # the benchmark's own has the options
    commands.add_parser("lock", help="renew requirements/*.txt and package-lock.json")
    return parser


def _run(options: argparse.Namespace, rest: list[str]) -> int:
    match options.command:
        case "serve":
            ensure([Group.SITE])
            with suppress(KeyboardInterrupt):  # how a server ends
                return _in_venv("-m", "tools.serve", str(options.port))
            return 0
        case "build":
            _build()
            say("The site is in site/.")
            return 0
        case "test" if rest == ["--quick"]:
            _ensure_everything()
            return _in_venv("-m", "tests.quick")
        case "test":
            _ensure_everything()
            with _compiling():
                _build()
                # Before the tests: fetching a browser takes a while, and pytest would hide it.
                status = _in_venv("-m", "tools.chromium")
            return status or _in_venv("-m", "pytest", *(rest or SIDE_BY_SIDE))
        case "check":
            _ensure_everything()
            return _in_venv("-m", "tools.checks")
        case "bench":
            _ensure_everything()
            _build()
            return _in_venv("-m", "tools.chromium") or _in_venv("-m", "benchmarks", *rest)
        case _:  # "lock"; the parser knows no other
            ensure([])
            return _in_venv("-m", "tools.lock")


def _ensure_everything() -> None:
    """Have what tests, checks and benchmarks need, from both registries."""
    ensure(EVERYTHING)
    install_node_packages(find_node(), Packages.ALL)


def _build() -> None:
    """Build the site in the environment's own interpreter."""
    ensure([Group.SITE])
    if _in_venv("-m", "tools.website", "--publish") != 0:
        raise BuildError("The site could not be built; site/ is as it was before.")


@contextmanager
def _compiling() -> Iterator[None]:
    """Meanwhile, in a new environment, compile what tests import: else each process would."""
    stamp = STAMPS / "compiled"
    if stamp.exists():
        yield
        return
    command = [str(venv_python()), "-m", "pytest", "--collect-only"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=ROOT, env=_compiled(), stdout=quiet, stderr=quiet) as child:
        try:
            yield
        except BaseException:
            child.terminate()
            raise
    if child.returncode == 0:
        stamp.touch()


def _compiled() -> dict[str, str]:
    """Variables with which each process of the tests and of a swarm finds all modules compiled."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}


def _in_venv(*arguments: str) -> int:
    """Run the environment's Python with `arguments` at the terminal; return its exit status."""
    process = subprocess.Popen([venv_python(), *arguments], cwd=ROOT, env=_compiled())
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()  # it got the same signal: let it clean up and end first
        raise
