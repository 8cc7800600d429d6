"""Folders that are swapped in whole, pages changed, and a lock against two builds at once."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.console import ROOT, BuildError, say

WORKSHOP = ROOT / ".build"
_held: set[Path] = set()  # by this process, which does not wait for itself


def fresh(folder: Path) -> Path:
    """An empty `folder`, whatever an earlier run has left there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def replace_folder(finished: Path, target: Path) -> None:
    """Put `finished` where `target` is; `target` is whole at every moment but a blink."""
    old = WORKSHOP / f"{target.name}.old"
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    finished.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` under another name, then rename: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    temporary.write_bytes(content)
    temporary.replace(path)


def change_pages(site: Path, change: Callable[[Path, str], str]) -> None:
    """Let `change` write the text of each page of `site` again, given its path and its text."""
    for page in sorted(site.rglob("*.html")):
        page.write_text(change(page, page.read_text("utf-8")), "utf-8")


def replace_once(name: str, text: str, old: str, new: str) -> str:
    """`text` of `name` with `new` in the one place that has `old`; BuildError unless one has."""
    if (count := text.count(old)) != 1:
        raise BuildError(f"{name}: must have {old} once, has it {count} times.")
    return text.replace(old, new)


def only_file(site: Path, pattern: str) -> Path:
    """The one file of `site` that a pattern finds; BuildError unless there is one."""
    found = [*site.glob(pattern)]
    if len(found) != 1:
        raise BuildError(f"{pattern}: must be one file, there are {len(found)}.")
    return found[0]


def digest(paths: Iterable[Path]) -> str:
    """A name for the present content of `paths`: 16 hexadecimal digits of a SHA-256."""
    total = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        total.update(f"{path.relative_to(ROOT)}:{len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()[:16]


@contextmanager
def only_one() -> Iterator[None]:
    """Wait until no other build.py sets up or builds in this checkout."""
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl; there two builds at once are left to the user.
        yield
        return
    path = WORKSHOP / "lock"
    if path in _held:
        yield
        return
    WORKSHOP.mkdir(exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("  Another build.py is at work in this folder; waiting for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        _held.add(path)
        try:
            yield
        finally:
            _held.remove(path)
