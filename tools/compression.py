"""Files of the site compressed beside the plain ones, for hosts that send them as they are.

nginx (``gzip_static``, ``brotli_static``) and Caddy (``precompressed``) look for ``page.html.gz``
and ``page.html.br``. Live data is left out: it grows while a run goes on.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.console import BuildError, step
from tools.files import WORKSHOP
from tools.node import Node

SUFFIXES = {".css", ".html", ".js", ".json", ".mjs", ".svg", ".wasm", ".xml"}
KINDS = ("br", "gz")
SMALLEST = 1024  # bytes: below, the headers of an answer weigh as much
GROWING = "live"  # the folder of live data
CACHE = WORKSHOP / "compressed"  # by what it is made of: a build compresses what is new
SCRIPT = Path(__file__).with_name("compress.mjs")


def compress_site(site: Path, node: Node) -> None:
    """Write compressed files beside those of `site` that gain by it; BuildError if one fails."""
    files = [*compressible(site)]
    with step("Compressing what is new"):
        fill_cache(files, node)
    wanted = {
        plain.with_name(f"{plain.name}{kept.suffix}"): (plain, kept)
        for plain in files
        for kept in _kept(plain)
    }
    for target, (plain, kept) in wanted.items():
        if kept.stat().st_size < plain.stat().st_size:
            shutil.copyfile(kept, target)
    used = {kept for _, kept in wanted.values()}
    for kept in CACHE.iterdir():
        if kept not in used:
            kept.unlink()


def compressible(site: Path) -> Iterator[Path]:
    """The files that a host should send compressed, in order."""
    for path in sorted(site.rglob("*")):
        grows = path.relative_to(site).parts[0] == GROWING and path.suffix == ".json"
        if is_compressible(path) and not grows:
            yield path


def is_compressible(path: Path) -> bool:
    """True for a file of a kind and size that gain by it."""
    return path.suffix in SUFFIXES and path.stat().st_size >= SMALLEST


def fill_cache(files: Iterable[Path], node: Node) -> None:
    """Compress what the cache lacks of these files; BuildError when Node.js could not do one."""
    CACHE.mkdir(parents=True, exist_ok=True)
    missing = {kept: plain for plain in files for kept in _kept(plain) if not kept.exists()}
    if not missing:
        return
    parts = {kept: kept.with_name(f"{kept.name}.{os.getpid()}.part") for kept in missing}
    # The largest first: at the end, no core waits for another that has just begun a large one.
    largest_first = sorted(missing.items(), key=lambda item: -item[1].stat().st_size)
    lines = [f"{kept.suffix[1:]}\t{plain}\t{parts[kept]}\n" for kept, plain in largest_first]
    done = subprocess.run(
        [node.node, SCRIPT], input="".join(lines), text=True, capture_output=True, check=False
    )
    if done.returncode:
        raise BuildError(f"The site could not be compressed:\n{done.stderr}")
    for kept, part in parts.items():
        part.replace(kept)


def _kept(plain: Path) -> list[Path]:
    """The compressed forms of a file in the cache."""
    name = hashlib.sha256(SCRIPT.read_bytes() + plain.read_bytes()).hexdigest()
    return [CACHE / f"{name}.{kind}" for kind in KINDS]
