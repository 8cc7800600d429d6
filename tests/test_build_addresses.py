"""tools/addresses.py: a site that knows its own address, and one that works under any path."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools import addresses
from tools.console import ROOT, BuildError


@pytest.mark.parametrize(
    ("given", "address", "path"),
    [
        ("", "", "/"),
        ("https://example.org", "https://example.org/", "/"),
        ("https://example.org/a/b/", "https://example.org/a/b/", "/a/b/"),
        (" http://localhost:8000/a ", "http://localhost:8000/a/", "/a/"),
    ],
)
def test_the_sites_address_ends_with_a_slash(
    given: str, address: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_sitemap_lists_every_page_relative_to_the_root(tmp_path: Path) -> None:
    for folder in ("", "a", "a/b"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "index.html").touch()
    (tmp_path / "404.html").touch()
    (tmp_path / "sitemap.xml.gz").touch()
    addresses.write_relative_sitemap(tmp_path)
    listed = ElementTree.fromstring((tmp_path / "sitemap.xml").read_text()).findall("*/*")
    assert [entry.text for entry in listed] == ["a/b/", "a/", "./"]
    assert not (tmp_path / "sitemap.xml.gz").exists()


def test_the_built_site_lists_its_pages_and_names_each_ones_address(site: Path) -> None:
    listed = ElementTree.fromstring((site / "sitemap.xml").read_text("utf-8")).findall("*/*")
    assert [entry.text for entry in listed] == list(addresses.pages_of(site))
    for path in addresses.pages_of(site):
        page = (site / path / "index.html").read_text("utf-8")
        assert re.findall(r'<link rel="canonical" href="([^"]*)">', page) == ["./"], path
        assert "og:image" not in page, path


def test_a_site_that_knows_its_address_names_it_whole(tmp_path: Path) -> None:
    docs, site = tmp_path / "docs", tmp_path / "site"
    docs.mkdir()
    for name in ("index", "other"):
        (docs / f"{name}.md").write_text(f"---\ntitle: {name}\n---\n# {name}\n")
    settings = (
        f"site_name: Test\nsite_url: https://example.org/run/\ndocs_dir: {docs}\nplugins: []\n"
        f"theme:\n  name: material\n  font: false\n  custom_dir: {ROOT}/templates/overrides\n"
    )
    (tmp_path / "mkdocs.yml").write_text(settings)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    command += ["--config-file", str(tmp_path / "mkdocs.yml"), "--site-dir", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, check=True, env=environment, capture_output=True)
    listed = ElementTree.fromstring((site / "sitemap.xml").read_text()).findall("*/*")
    whole = ["https://example.org/run/", "https://example.org/run/other/"]
    assert [entry.text for entry in listed if str(entry.text).startswith("http")] == whole
    page = (site / "other" / "index.html").read_text()
    assert f'<link rel="canonical" href="{whole[1]}">' in page
    assert f'<meta property="og:url" content="{whole[1]}">' in page
    assert 'content="https://example.org/run/assets/share/other.png"' in page
