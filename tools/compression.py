"""Files of the site compressed beside the plain ones, for hosts that send them as they are.

nginx (``gzip_static``, ``brotli_static``) and Caddy (``precompressed``) look for ``page.html.gz``
and ``page.html.br``. Live data is left out: it grows while a run goes on.
"""

import gzip
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import brotli

from tools.console import step
from tools.files import WORKSHOP, write_atomically

SUFFIXES = {".css", ".html", ".js", ".json", ".mjs", ".svg", ".wasm", ".xml"}
KINDS = ("br", "gz")
SMALLEST = 1024  # bytes: below, the headers of an answer weigh as much
GROWING = "live"  # the folder of live data
CACHE = WORKSHOP / "compressed"  # by what it is made of: a build compresses what is new


def compress_site(site: Path) -> None:
    """Write compressed files beside those of `site` that gain by it."""
    files = [*compressible(site)]
    with step("Compressing what is new"):
        fill_cache(files)
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


def fill_cache(files: Iterable[Path]) -> None:
    """Compress what the cache lacks of these files, on all cores."""
    missing = {kept: plain for plain in files for kept in _kept(plain) if not kept.exists()}
    # The largest first: at the end, no core waits for another that has just begun a large one.
    largest_first = sorted(missing, key=lambda kept: -missing[kept].stat().st_size)
    with ThreadPoolExecutor(os.cpu_count()) as cores:
        list(cores.map(lambda kept: _compress(missing[kept], kept), largest_first))


def _compress(plain: Path, kept: Path) -> None:
    content = plain.read_bytes()
    if kept.suffix == ".br":
        # One below the highest quality, which takes twice as long for 2 % fewer bytes.
        write_atomically(kept, brotli.compress(content, quality=10))
    else:
        write_atomically(kept, gzip.compress(content, 9, mtime=0))


def _kept(plain: Path) -> list[Path]:
    """The compressed forms of a file in the cache."""
    name = hashlib.sha256(Path(__file__).read_bytes() + plain.read_bytes()).hexdigest()
    return [CACHE / f"{name}.{kind}" for kind in KINDS]
