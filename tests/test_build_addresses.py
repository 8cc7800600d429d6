"""tools/addresses.py: a site that knows its own address, and one that works under any path."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.folders import written
from tools import addresses
from tools.console import ROOT, BuildError


def test_the_sites_address_ends_with_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, address, path in (
        ("", "", "/"),
        ("https://example.org", "https://example.org/", "/"),
        ("https://example.org/a/b/", "https://example.org/a/b/", "/a/b/"),
        (" http://localhost:8000/a ", "http://localhost:8000/a/", "/a/"),
    ):
        monkeypatch.setenv("SITE_URL", given)
        assert addresses.site_url() == address
        assert addresses.path_of(address) == path


@pytest.mark.parametrize(
    "given", ["example.org", "ftp://example.org/", "https://", "https://a.b/?c"]
)
def test_what_is_no_address_is_refused_with_the_rule(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_URL", given)
    with pytest.raises(BuildError, match=rf"SITE_URL = {re.escape(given)}: must be an address"):
        addresses.site_url()


def listed(site: Path) -> list[str]:
    """The addresses in a site's sitemap."""
    found = ElementTree.fromstring((site / "sitemap.xml").read_text("utf-8")).findall("*/*")
    return [str(entry.text) for entry in found]


def test_the_sitemap_lists_every_page_relative_to_the_root(tmp_path: Path) -> None:
    pages = ("index.html", "a/index.html", "a/b/index.html", "404.html")
    written(tmp_path, dict.fromkeys([*pages, "sitemap.xml.gz"], ""))
    addresses.write_relative_sitemap(tmp_path)
    assert listed(tmp_path) == ["a/b/", "a/", "./"]
    assert not (tmp_path / "sitemap.xml.gz").exists()


def test_the_built_site_lists_its_pages_and_names_each_ones_address(site: Path) -> None:
    assert listed(site) == list(addresses.pages_of(site))
    for path in addresses.pages_of(site):
        page = (site / path / "index.html").read_text("utf-8")
        assert re.findall(r'<link rel="canonical" href="([^"]*)">', page) == ["./"], path
        assert "og:image" not in page, path


def test_a_site_that_knows_its_address_names_it_whole(tmp_path: Path) -> None:
    settings = (
        "site_name: Test\nsite_url: https://example.org/run/\nplugins: []\n"
        f"theme:\n  name: material\n  font: false\n  custom_dir: {ROOT}/templates/overrides\n"
    )
    pages = {
        f"docs/{name}.md": f"---\ntitle: {name}\n---\n# {name}\n" for name in ("index", "other")
    }
    written(tmp_path, {"mkdocs.yml": settings, **pages})
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, check=True, cwd=tmp_path, env=environment, capture_output=True)
    whole = ["https://example.org/run/", "https://example.org/run/other/"]
    assert [address for address in listed(tmp_path / "site") if address.startswith("http")] == whole
    page = (tmp_path / "site" / "other" / "index.html").read_text()
    assert f'<link rel="canonical" href="{whole[1]}">' in page
    assert f'<meta property="og:url" content="{whole[1]}">' in page
    assert 'content="https://example.org/run/assets/share/other.png"' in page
