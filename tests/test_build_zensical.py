"""Zensical, the successor of MkDocs's theme, builds the same pages from the same sources."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages.visible import VisibleText
from tools.addresses import pages_of
from tools.console import ROOT
from tools.theme_script import BUNDLE, CHANGES
from tools.website import STAGING

# What no page is made of: the largest part of the staged files.
NO_PAGES = shutil.ignore_patterns("pyodide", "live", "share", "*.zip", "*.gz")


@pytest.fixture(scope="module")
def other_site(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The staged pages as Zensical builds them."""
    assert (site / "index.html").is_file()
    project = tmp_path_factory.mktemp("zensical")
    shutil.copytree(STAGING, project / "docs", ignore=NO_PAGES)
    shutil.copytree(ROOT / "templates" / "overrides", project / "overrides")
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    for old, new in (
        ("docs_dir: .build/docs", "docs_dir: docs"),
        ("custom_dir: templates/overrides", "custom_dir: overrides"),
        ('paths: ["."]', f'paths: ["{ROOT}"]'),
    ):
        assert old in settings
        settings = settings.replace(old, new)
    (project / "mkdocs.yml").write_text(settings, "utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--config-file", "mkdocs.yml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SITE_URL": ""}
    subprocess.run(command, cwd=project, env=environment, check=True)
    return project / "site"


def article(page: Path) -> str:
    """The content of a page with its tags."""
    text = page.read_text("utf-8")
    return text[text.index("<article") : text.index("</article>")]


def words(page: Path) -> str:
    """The words of a page's content."""
    return " ".join(" ".join(p.text for p in VisibleText(article(page)).pieces).split())


def test_every_page_has_the_same_words(site: Path, other_site: Path) -> None:
    assert list(pages_of(other_site)) == list(pages_of(site))
    for name in pages_of(site):
        page = f"{name}index.html"
        assert words(other_site / page) == words(site / page), name


def test_every_page_has_our_policy_styles_and_scripts(site: Path, other_site: Path) -> None:
    # our own build names the folder of assets by its content
    folder = "assets(?:-[0-9a-f]{12})?"
    ours = re.compile(rf'{folder}/((?:styles/)?site\.(?:js|css))"|data-script="([\w-]+)"')
    for name in pages_of(site):
        text = (other_site / name / "index.html").read_text("utf-8")
        here = (site / name / "index.html").read_text("utf-8")
        assert "Content-Security-Policy" in text
        assert '<footer class="site-footer">' in text
        found = set(ours.findall(here))
        assert {("site.js", ""), ("styles/site.css", "")} <= found, name
        assert set(ours.findall(text)) == found, name


def test_what_does_not_work_yet_is_what_contributing_says(other_site: Path) -> None:
    join, first = (
        (other_site / name / "index.html").read_text("utf-8") for name in ("join", "security")
    )
    assert 'href="../../calculator/?' in join, "addresses in raw HTML stay as they are"
    assert "site-onward__" not in first, "neighbours of a page know their section"
    assert "og:title" not in join, "page.file is there"
    assert "Calculator</a>" not in article(other_site / "404.html"), "nav has pages"
    (bundle,) = other_site.glob(BUNDLE)
    script = bundle.read_text("utf-8")
    assert not re.search(CHANGES["read the sitemap"][0], script), "it can be read as Material's"
    assert "<loc>" not in (other_site / "sitemap.xml").read_text("utf-8")
