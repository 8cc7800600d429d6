"""tools/compression.py: what a host finds beside the plain files of a published site."""

import gzip
from pathlib import Path

import brotli
import pytest

from tests.folders import written
from tools import compression
from tools.compression import KINDS, compress_site, compressible

TEXT = "<p>the same words again and again</p>\n" * 200


@pytest.fixture
def small_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(compression, "CACHE", tmp_path / "cache")
    names = ("index.html", "live/run/status.json", "live/index.html", "picture.png")
    return written(tmp_path / "site", {**dict.fromkeys(names, TEXT), "short.css": "p { }"})


def test_pages_are_compressed_and_what_grows_is_small_or_compressed_already_stays_alone(
    small_site: Path,
) -> None:
    compress_site(small_site)
    assert gzip.decompress((small_site / "index.html.gz").read_bytes()).decode() == TEXT
    assert brotli.decompress((small_site / "index.html.br").read_bytes()).decode() == TEXT
    added = {p.relative_to(small_site).as_posix() for p in small_site.rglob("*.gz")}
    assert added == {"index.html.gz", "live/index.html.gz"}


def test_only_what_changed_is_compressed_again(
    small_site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compress_site(small_site)
    before = (small_site / "index.html.br").read_bytes()
    for path in small_site.rglob("*.br"):
        path.unlink()
    with monkeypatch.context() as broken:
        broken.setattr(brotli, "compress", None)
        compress_site(small_site)  # all is in the cache
    assert (small_site / "index.html.br").read_bytes() == before
    (small_site / "index.html").write_text(TEXT.upper())
    compress_site(small_site)
    assert gzip.decompress((small_site / "index.html.gz").read_bytes()).decode() == TEXT.upper()
    kept = {path.suffix for path in compression.CACHE.iterdir()}
    assert kept == {f".{kind}" for kind in KINDS}
    assert len(list(compression.CACHE.iterdir())) == 2 * len(KINDS)


def test_every_page_and_script_of_the_site_has_its_compressed_forms(site: Path) -> None:
    plain = list(compressible(site))
    assert len(plain) > 60
    for path in plain:
        for kind in KINDS:
            compressed = path.with_name(f"{path.name}.{kind}")
            assert compressed.stat().st_size < path.stat().st_size
