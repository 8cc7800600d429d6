"""A new page is one folder and one line of navigation."""

import shutil
import subprocess
import sys
from pathlib import Path

from calculator.catalog import MODELS
from templates.render import pages
from tests.folders import written
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


def write_assets(assets):
    """Write what the new page fetches."""
    (assets / "answer.txt").write_text("42")
'''


def test_a_new_page_is_a_folder_with_a_template_and_where_it_needs_them_names_and_files(
    tmp_path: Path,
) -> None:
    kept = shutil.ignore_patterns("pages")
    shutil.copytree(ROOT / "templates", tmp_path / "templates", ignore=kept)
    files = {"brand_new/page.md.j2": PAGE, "brand_new/context.py": CONTEXT}
    files |= {"plain/page.md.j2": "# Plain\n", "no_page/context.py": CONTEXT}
    written(tmp_path / "templates" / "pages", files)
    staging = tmp_path / "staging"
    (staging / "assets").mkdir(parents=True)
    command = [sys.executable, "-m", "templates.render", "staging"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert {path.name for path in staging.glob("*.md")} == {"brand-new.md", "plain.md"}
    page = (staging / "brand-new.md").read_text()
    assert "# A new page" in page
    assert ">42</td>" in page
    assert (staging / "assets" / "answer.txt").read_text() == "42"


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


def test_every_page_is_in_the_navigation(site: Path) -> None:
    listed = (ROOT / "mkdocs.yml").read_text("utf-8")
    for name in pages():
        found = (f" {name}.md", f" {name}/index.md", f"/{name}.md")  # the last are old addresses
        assert any(each in listed for each in found)
        assert (site / ("" if name == "index" else name) / "index.html").is_file()
