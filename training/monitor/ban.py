"""Banning whoever the live page shows: `python -m training ban RUN NAME`.

For the machine of the monitor. NAME is a contributor's name or its id, the twelve digits beside the
name on the page. The monitor takes nothing more from it, and tells the volunteers. Where
the run's authority is on this machine, the account is banned as well; without an authority, a
banned volunteer can come back with a new key.
"""

import argparse
from pathlib import Path

from calculator.errors import InputError
from training.authority.books import Books
from training.authority.keys import find_authority_folder
from training.records.owners import BanList, contributor_of
from training.run.live import Contributor, LiveFolder
from training.run.runfile import RunFile, default_folder, load


def main(argv: list[str]) -> int:
    """Ban a contributor, or lift a ban."""
    parser = argparse.ArgumentParser(prog="python -m training ban", description=__doc__)
    parser.add_argument("run", metavar="RUN", help="the run file, or its address")
    parser.add_argument("name", metavar="NAME", help="of a contributor, or its id on the page")
    parser.add_argument("--lift", action="store_true", help="lift the ban")
    parser.add_argument("--reason", default="", help="shown to the banned user by an authority")
    parser.add_argument("--folder", type=Path, help="the monitor's; default: its default folder")
    parser.add_argument("--live", type=Path, help="the live data; default: in the monitor's folder")
    parser.add_argument("--authority-folder", type=Path, help="of the run's authority, if here")
    options = parser.parse_args(argv)
    run = load(options.run)
    folder = options.folder or default_folder(run, "monitor")
    if not (folder / "identity.key").exists():
        raise InputError("folder", folder, "must be that of the run's monitor: name it by --folder")
    live = LiveFolder(options.live or folder / "live" / run.name)
    who = find(live.read_peers(), options.name)
    bans = BanList(folder)
    others = bans.ids() - {who.id}
    bans.write(others if options.lift else others | {who.id})
    authority = find_authority_folder(run, options.authority_folder)
    account = _tell_authority(authority, who.id, options) if authority else ""
    print(_in_words(run, who, account, options.lift))
    return 0


def find(contributors: list[Contributor], name: str) -> Contributor:
    """The contributor with a name or id.

    Raises:
        InputError: there is none, or several have the name.
    """
    found = [who for who in contributors if name in (who.id, who.name)]
    if len(found) > 1:
        ids = ", ".join(who.id for who in found)
        raise InputError("name", name, f"must be the name of one contributor; {ids} have it")
    if not found:
        raise InputError("name", name, "must be a contributor's name or id on the live page")
    return found[0]


def _tell_authority(folder: Path, contributor: str, options: argparse.Namespace) -> str:
    """Ban the account of a contributor's device, or lift that; gives the account."""
    books = Books(folder)
    for entry in books.decisions(newest=10**6):
        if entry.peer_id and entry.username and contributor_of(entry.peer_id) == contributor:
            if options.lift:
                books.unban(entry.username)
            else:
                books.ban_user(entry.username, options.reason)
            return entry.username
    return ""


def _in_words(run: RunFile, who: Contributor, account: str, lift: bool) -> str:
    whose = f", account {account}" if account else ""
    if lift:
        return f"{who.name} ({who.id}{whose}) is no longer banned"
    if run.authority and not account:
        whose = ", whose account is not in an authority's books on this machine"
    return f"{who.name} ({who.id}{whose}) is banned; volunteers hear of it within half a minute"
