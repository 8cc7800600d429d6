"""Names that change with the content: a page can only load the files that it was built with.

At the end of a build, ``assets/`` becomes ``assets-HASH/`` and the browser's Python in it
``pyodide-HASH/``, which stays the same from build to build as long as Python does. Hosts and the
service worker may therefore keep these files forever, and an old file never meets a new page.
Pictures for messengers and the README stay in ``assets/``, where others have linked to them.
"""

import hashlib
import re
from pathlib import Path

from tools.console import BuildError
from tools.files import change_pages, replace_once

STAYING = ("share", "readme")
WORKER = "service-worker.js"
# What docs/assets/service-worker.js says in place of the build's own name and folders.
PLACEHOLDERS = {"build": "NAME_OF_THE_BUILD", "folders": "FOLDERS_OF_THE_BUILD"}
PYTHON_ADDRESS = "./pyodide/"
VERSIONED = re.compile(r"(?:assets|pyodide)-[0-9a-f]{12}")


def name_by_content(site: Path, path: str) -> None:
    """Rename the folders of `site` that pages load from, and everything that refers to them.

    The pages are not yet pinned or compressed; that for wrong addresses begins links with `path`.
    Raises BuildError when the scripts refer to these folders in an unexpected way.
    """
    assets = site / "assets"
    pyodide = (assets / "pyodide").rename(site / f"pyodide-{_digest(assets / 'pyodide')}")
    _replace_once(assets / "worker.js", PYTHON_ADDRESS, f"../{pyodide.name}/")
    staying = {name: site / f".{name}" for name in STAYING if (assets / name).is_dir()}
    for name, aside in staying.items():
        (assets / name).rename(aside)
    named = assets.rename(site / f"assets-{_digest(assets)}")
    for name, aside in staying.items():
        assets.mkdir(exist_ok=True)
        aside.rename(assets / name)
    _rewrite_addresses(site, named.name, path)
    _stamp_worker(site, [named.name, pyodide.name])


def folder_of(site: Path, kind: str) -> Path:
    """The folder "assets" or "pyodide" of a built site; BuildError unless there is one."""
    found = [folder for folder in site.glob(f"{kind}-*") if VERSIONED.fullmatch(folder.name)]
    if len(found) != 1:
        raise BuildError(f"{site}: must have one folder {kind}-HASH, has {len(found)}.")
    return found[0]


def _rewrite_addresses(site: Path, folder: str, path: str) -> None:
    """Let the elements of each page, and the theme's settings in it, name the new folder."""
    up = rf"(?:\.\./|\./|{re.escape(path or '/')})*"
    left = "|".join(STAYING)
    address = re.compile(rf'((?:href=|src=|"search": ?)["\']?{up})assets/(?!(?:{left})/)')
    change_pages(site, lambda _, text: address.sub(rf"\g<1>{folder}/", text))


def _stamp_worker(site: Path, folders: list[str]) -> None:
    """Write the build's name and folders into the service worker, which makes it a new one."""
    worker = site / WORKER
    total = hashlib.sha256(worker.read_bytes())
    for page in sorted(site.rglob("*.html")):
        total.update(page.relative_to(site).as_posix().encode() + b"\0" + page.read_bytes())
    _replace_once(worker, PLACEHOLDERS["folders"], " ".join(folders))
    _replace_once(worker, PLACEHOLDERS["build"], total.hexdigest()[:12])


def _replace_once(script: Path, old: str, new: str) -> None:
    script.write_text(replace_once(script.name, script.read_text("utf-8"), old, new), "utf-8")


def _digest(folder: Path) -> str:
    """Twelve hexadecimal digits of the SHA-256 of all names and contents in a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            total.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
            total.update(content)
    return total.hexdigest()[:12]
