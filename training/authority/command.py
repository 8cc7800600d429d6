"""The authority's command line: the service, and what moderators do.

python -m training authority RUN serve                 admit volunteers, until Ctrl-C
python -m training authority RUN ban USER --reason ... exclude a user and their devices
python -m training authority RUN list                  allowlist, bans, newest decisions
"""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

from calculator.errors import InputError
from training.authority.books import Books, Kind
from training.authority.serving import serve
from training.run import status
from training.run.runfile import default_folder, load

DEFAULT_PORT = 8440
LONGEST_REASON = 200
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_PEER = re.compile(r"Qm[1-9A-HJ-NP-Za-km-z]{44}")


def main(arguments: list[str]) -> int:
    """Serve, or carry out a moderator's command."""
    options = make_parser().parse_args(_with_action(arguments))
    run = load(options.run)
    folder = options.folder or default_folder(run, "authority")
    if options.action == "serve":
        return serve(run, folder, options)
    _check(options)
    action: Callable[[Books, argparse.Namespace], str] = options.carry_out
    print(action(Books(folder), options))
    return 0


def _with_action(arguments: list[str]) -> list[str]:
    """`authority RUN --port 1` means `authority RUN serve --port 1`."""
    run, *rest = arguments or ["--help"]
    names_run = not run.startswith("-") and rest[:1] not in (["-h"], ["--help"])
    if names_run and (not rest or rest[0].startswith("-")):
        return [run, "serve", *rest]
    return arguments


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m training authority",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", help="the run file, or its address")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_serve(actions.add_parser("serve", help="admit volunteers, until Ctrl-C"))
    moderating = (
        ("allow", _allow, "put a user on the allowlist (see serve --allowlist)"),
        ("disallow", _disallow, "take a user off the allowlist"),
        ("ban", _ban, "ban a user and the devices admitted under the account, or one device"),
        ("unban", _unban, "lift a ban"),
        ("list", _list, "show allowlist, bans and newest decisions"),
    )
    for name, carry_out, text in moderating:
        action = actions.add_parser(name, help=text)
        action.set_defaults(carry_out=carry_out)
        _add_folder(action)
        if name == "list":
            action.add_argument("user", metavar="USER", nargs="?", default="")
        else:
            what = "name on the Hub, or a device's peer id" if "ban" in name else "name on the Hub"
            action.add_argument("user", metavar="USER", help=what)
        if name in ("allow", "ban"):
            action.add_argument(
                "--reason", default="", help="for the log, and shown to the banned user"
            )
    return parser


def _add_serve(parser: argparse.ArgumentParser) -> None:
    _add_folder(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port to listen on")
    parser.add_argument(
        "--lifetime",
        type=int,
        default=600,
        help="seconds that access lasts; bans take effect within this time",
    )
    parser.add_argument(
        "--allowlist", action="store_true", help="admit only users on the allowlist"
    )
    parser.add_argument("--certificate", type=Path, help="for https without a proxy: PEM file")
    parser.add_argument("--certificate-key", type=Path, help="its private key: PEM file")


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, help="for the signing key and the records")


def _check(options: argparse.Namespace) -> None:
    if options.user and not _USER.fullmatch(options.user):
        raise InputError("user", options.user, "must be a user's name on the Hugging Face Hub")
    reason = getattr(options, "reason", "")
    if len(reason) > LONGEST_REASON or not reason.isprintable():
        rule = f"must be at most {LONGEST_REASON} characters on one line"
        raise InputError("reason", reason, rule)


def _allow(books: Books, options: argparse.Namespace) -> str:
    books.allow(options.user, options.reason)
    return f"{options.user} is on the allowlist"


def _disallow(books: Books, options: argparse.Namespace) -> str:
    if not books.disallow(options.user):
        raise InputError("user", options.user, "must be on the allowlist")
    return f"{options.user} is off the allowlist"


def _ban(books: Books, options: argparse.Namespace) -> str:
    lifetime = status.read(books.path.parent).get("lifetime", 600)
    soon = f"takes effect at the next renewal of access, within {lifetime} s"
    if _PEER.fullmatch(options.user):
        books.ban_peer(options.user, options.reason)
        return f"the device {options.user} is banned; this {soon}"
    peers = books.ban_user(options.user, options.reason)
    return f"{options.user} is banned, with the devices of the account ({len(peers)}); this {soon}"


def _unban(books: Books, options: argparse.Namespace) -> str:
    if not books.unban(options.user):
        raise InputError("user", options.user, "must be banned")
    return f"{options.user} is no longer banned"


def _list(books: Books, options: argparse.Namespace) -> str:
    lines = ["allowlist:"]
    lines += [f"  {name}  since {since}  {reason}" for name, since, reason in books.allowed()]
    lines.append("bans:")
    for ban in books.bans():
        whose = f" of {ban.username}" if ban.kind is Kind.PEER and ban.username else ""
        lines.append(f"  {ban.kind} {ban.subject}{whose}  since {ban.since}  {ban.reason}")
    lines.append("newest decisions:")
    for entry in books.decisions(options.user):
        who = f"{entry.username or '-'} {entry.peer_id or '-'}"
        lines.append(f"  {entry.time} {entry.decision} {who} {entry.cause}".rstrip())
    return "\n".join(lines)
