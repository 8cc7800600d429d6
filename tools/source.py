"""Location of the project's source, for install commands and cited files.

SOURCE_URL in the environment is the web address of the git repository; without it, the address
that this clone was made from counts. Where no address is known, the site carries the source
itself, as an archive.
"""

import gzip
import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tools.addresses import site_url
from tools.console import ROOT, BuildError
from tools.files import write_atomically

NAME = "training-transformers-together"
ARCHIVE = f"{NAME}.tar.gz"
# Cited files, where there is no repository to link to; `.txt` is shown by any static host.
SHOWN = "source"
EPOCH = "315532800"  # 1980, the oldest date that a zip can hold: where there is no git
NOT_SOURCES = re.compile(
    r"__pycache__|bench|build|env|node_modules|rehearsals|site|\.git|\.venv|\.build|.*(_cache|\.egg-info)"
)
# How well-known hosts show a file of the newest version.
VIEWS = {"github.com": "/blob/HEAD/", "gitlab.com": "/-/blob/HEAD/"}


@dataclass(frozen=True, slots=True)
class Source:
    """Location of the source: `repository` is its web address, empty if none is known.

    `site` is the whole address of the site, empty where that is not known; `notebooks` the branch
    of the repository that has the site's notebooks, filled in, empty where there is none.
    """

    repository: str = ""
    site: str = ""
    notebooks: str = ""

    @property
    def link(self) -> str:
        """Target of a page's link to the source, relative to the site's root or absolute."""
        return self.repository or ARCHIVE

    @property
    def origin(self) -> str:
        """Source for pip: a repository, an archive's address, or an archive beside it."""
        return f"git+{self.repository}" if self.repository else f"{self.site}{ARCHIVE}"

    @property
    def needs_download(self) -> bool:
        """True if the archive has to be downloaded by hand, because no address is known."""
        return not self.repository and not self.site

    def package(self, extra: str) -> str:
        """The package with an extra, as pip and uv take it."""
        beside = f"./{ARCHIVE}[{extra}]"
        return beside if self.needs_download else f"{NAME}[{extra}] @ {self.origin}"

    def install(self, extra: str) -> str:
        """The command that installs the package with an extra."""
        return f'pip install "{self.package(extra)}"'

    @property
    def get(self) -> tuple[str, ...]:
        """The commands that bring the whole source here, and go into its folder."""
        if self.repository:
            return (f"git clone {self.repository} {NAME}", f"cd {NAME}")
        fetch = () if self.needs_download else (f"curl -LO {self.origin}",)
        return (*fetch, f"tar -xzf {ARCHIVE}", f"cd {NAME}")

    def colab(self, notebook: str) -> str:
        """The address that opens a notebook in Colab, which reads GitHub; else nothing."""
        return self._on_github(notebook, "https://colab.research.google.com/github")

    def kaggle(self, notebook: str) -> str:
        """The address that opens a notebook in Kaggle, which reads GitHub; else nothing."""
        reader = "https://www.kaggle.com/kernels/welcome?src=https://github.com"
        return self._on_github(notebook, reader)

    def _on_github(self, notebook: str, reader: str) -> str:
        """The path of a published notebook on GitHub behind `reader`; empty if it is not there."""
        parts = urlsplit(self.repository)
        if parts.hostname != "github.com" or not self.notebooks:
            return ""
        return f"{reader}{parts.path}/blob/{self.notebooks}/{notebook}"

    def view(self, path: str) -> str:
        """The address that shows a file of the source; relative to the site's root, or whole."""
        if not self.repository:
            return f"{SHOWN}/{path}.txt"
        middle = VIEWS.get(urlsplit(self.repository).hostname or "")
        return f"{self.repository}{middle}{path}" if middle else self.repository


def find_source() -> Source:
    """The source as environment and clone tell it; BuildError if SOURCE_URL is no web address."""
    given = os.environ.get("SOURCE_URL", "").strip()
    repository = web_address(given or _origin())
    if given and not repository:
        rule = "must be the web address of a git repository, such as https://github.com/we/run"
        raise BuildError(f"SOURCE_URL = {given}: {rule}")
    return Source(repository, site_url(), os.environ.get("NOTEBOOKS_BRANCH", "").strip())


def web_address(remote: str) -> str:
    """The https address of a git remote; nothing for one that others cannot reach."""
    if found := re.fullmatch(r"[\w.-]+@([\w.-]+\.\w+):([^/].*)", remote):
        remote = f"https://{found[1]}/{found[2]}"
    parts = urlsplit(remote)
    reachable = parts.scheme in ("http", "https", "ssh", "git") and "." in (parts.hostname or "")
    path = parts.path.rstrip("/").removesuffix(".git")
    if not reachable or not re.fullmatch(r"/[\w./~-]+", path):
        return ""
    port = f":{parts.port}" if parts.port and parts.scheme in ("http", "https") else ""
    return f"https://{parts.hostname}{port}{path}"


def _origin() -> str:
    """The address that this clone fetches from; nothing where it is no clone."""
    return _git("config", "--get", "remote.origin.url").strip() if (ROOT / ".git").exists() else ""


def last_change() -> str:
    """Time of the last change in seconds since 1970, the same for every build of a commit."""
    return _git("log", "-1", "--format=%ct").strip() or EPOCH


def _git(*words: str) -> str:
    try:
        command = ["git", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    except OSError:  # no git here
        return ""


def files() -> list[str]:
    """The paths of all sources: what git knows, else all that is neither hidden nor generated."""
    if (ROOT / ".git").exists():
        listed = _git("ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
        return sorted(name for name in listed if name and (ROOT / name).is_file())
    return sorted(walked())


def walked() -> Iterator[str]:
    """The paths of all files that are neither hidden folders' nor generated."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not NOT_SOURCES.fullmatch(name)]
        kept = (Path(folder, name) for name in names if name != ".git")  # a worktree's is a file
        yield from (path.relative_to(ROOT).as_posix() for path in kept)


def write_archive(target: Path) -> None:
    """All sources as a .tar.gz that is the same bytes whenever it is made."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in files():
            content = (ROOT / name).read_bytes()
            entry = tarfile.TarInfo(f"{NAME}/{name}")
            entry.size = len(content)
            entry.mode = 0o755 if os.access(ROOT / name, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    write_atomically(target, packed.getvalue())
