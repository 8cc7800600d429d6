"""A new page is one folder and one line of navigation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from calculator.catalog import MODELS
from templates.render import pages
from tools.console import ROOT
from tools.node import find_node
from tools.versions import folder_of

PAGE = """---
title: A new page
description: What it is about.
---
{% from 'words.html.j2' import words %}

# A new page

{{ words("Numbers", ["Name", "Number"], rows) }}
"""
CONTEXT = '''"""Data for the new page."""


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    return {"rows": [["the answer", 6 * 7]]}
'''


ASSETS = '''

def write_assets(assets):
    """Write what the new page fetches."""
    (assets / "answer.txt").write_text("42")
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "templates", tmp_path / "templates")
    return tmp_path


def test_a_new_page_is_a_folder_with_a_template_and_its_names(checkout: Path) -> None:
    folder = checkout / "templates" / "pages" / "brand_new"
    folder.mkdir()
    (folder / "page.md.j2").write_text(PAGE)
    (folder / "context.py").write_text(CONTEXT)
    program = "from templates.render import render_page; print(render_page('brand-new'))"
    finished = subprocess.run(
        [sys.executable, "-c", program], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert "# A new page" in finished.stdout
    assert ">42</td>" in finished.stdout


def test_the_files_that_a_new_page_fetches_are_written_with_it(checkout: Path) -> None:
    shutil.rmtree(checkout / "templates" / "pages")
    folder = checkout / "templates" / "pages" / "brand_new"
    folder.mkdir(parents=True)
    (folder / "page.md.j2").write_text(PAGE)
    (folder / "context.py").write_text(CONTEXT + ASSETS)
    (checkout / "staging" / "assets").mkdir(parents=True)
    command = [sys.executable, "-m", "templates.render", "staging"]
    subprocess.run(command, cwd=checkout, check=True)
    assert (checkout / "staging" / "brand-new.md").is_file()
    assert (checkout / "staging" / "assets" / "answer.txt").read_text() == "42"


def test_every_models_first_figures_are_in_the_site(site: Path) -> None:
    written = {path.stem for path in (folder_of(site, "assets") / "first").glob("*.json")}
    assert written == {*MODELS, "shapes"}


def test_the_script_and_the_style_of_a_new_page_are_found(tmp_path: Path) -> None:
    pages, target = tmp_path / "pages", tmp_path / "site" / "assets"
    (pages / "brand_new").mkdir(parents=True)
    (pages / "brand_new" / "script.js").write_text("console.warn('a new page');")
    (pages / "brand_new" / "style.css").write_text(".brand-new { color: var(--ink); }")
    shared = ROOT / "docs" / "assets"
    command = [find_node().node, ROOT / "tools" / "bundle.mjs", shared, pages, target, "{}"]
    subprocess.run(command, cwd=ROOT, check=True)
    assert "a new page" in (target / "brand-new.js").read_text("utf-8")
    styles = (target / "styles" / "site.css").read_text("utf-8")
    assert styles.index(".key-figures") < styles.index(".brand-new{color:var(--ink)}")


def test_a_page_without_names_needs_no_context(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "page.md.j2").write_text("# Plain\n")
    (tmp_path / "no_page").mkdir()
    assert pages(tmp_path) == {"plain": tmp_path / "plain"}


def test_every_page_is_in_the_navigation(site: Path) -> None:
    listed = (ROOT / "mkdocs.yml").read_text("utf-8")
    for name in pages():
        found = (f" {name}.md", f" {name}/index.md", f"/{name}.md")  # the last are old addresses
        assert any(each in listed for each in found)
        assert (site / ("" if name == "index" else name) / "index.html").is_file()
