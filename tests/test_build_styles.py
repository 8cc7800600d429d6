"""tools/styles.py: a page links to one style sheet, which holds what all of them held."""

import json
from pathlib import Path

import pytest

from tests.folders import written
from tools.console import BuildError
from tools.node import find_node
from tools.styles import END, OURS, merge_styles

LINKS = """<head>
  <link rel="stylesheet" href="{up}assets/stylesheets/main.0a1b.min.css">
  <link rel="stylesheet" href="{up}assets/stylesheets/palette.2c3d.min.css">
  <link rel="stylesheet" href="{up}assets/styles/site.css">
  <link rel="stylesheet" href="{up}assets/_mkdocstrings.css">
</head><a class="md-used"><i></i></a>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    files = {
        "assets/stylesheets/main.0a1b.min.css": "@charset \"UTF-8\";a{b:url('data:,')}",
        "assets/stylesheets/main.0a1b.min.css.map": "{}",
        "assets/stylesheets/palette.2c3d.min.css": "i{}\n",
        "assets/_mkdocstrings.css": ".doc{}\n",
        OURS: f"p{{}}\n{END}site.css.map */",
        f"{OURS}.map": json.dumps({"version": 3, "sources": [], "names": [], "mappings": "AAAA"}),
        "deep/page/index.html": LINKS.format(up="../../"),
        "index.html": LINKS.format(up=""),
    }
    return written(tmp_path, files)


def test_pages_link_to_one_style_sheet_with_all_in_the_order_of_the_links_and_its_map(
    site: Path,
) -> None:
    merge_styles(site, find_node())
    assert (site / OURS).read_text("utf-8") == (
        f"@charset \"UTF-8\";a{{b:url('data:,')}}\ni{{}}\np{{}}\n.doc{{}}\n{END}site.css.map */"
    )
    assert [path.name for path in site.rglob("*.css*")] == ["site.css", "site.css.map"]
    mappings = json.loads((site / f"{OURS}.map").read_text("utf-8"))["mappings"]
    assert (site / OURS).read_text("utf-8").splitlines()[mappings.index("A")] == "p{}"
    for page in ("index.html", "deep/page/index.html"):
        text = (site / page).read_text("utf-8")
        assert text.count("stylesheet") == 1
        assert "assets/styles/site.css" in text


def test_what_no_page_and_no_script_uses_is_left_out(site: Path) -> None:
    theme = ".md-used,.md-unused{color:var(--md-read)}.by-script{--md-read:0;--md-unread:0}.gone{}"
    (site / "assets/stylesheets/main.0a1b.min.css").write_text(theme)
    (site / "assets/page.js").write_text('body.classList.add("by-script")')
    merge_styles(site, find_node())
    styles = (site / OURS).read_text("utf-8")
    assert styles.startswith(".md-used{color:var(--md-read)}.by-script{--md-read:0}")
    assert "gone" not in styles


@pytest.mark.parametrize("text", ["a{b:url(img.png)}", "a{b:url('../img.png')}"])
def test_styles_that_name_other_files_end_the_build(site: Path, text: str) -> None:
    (site / "assets/stylesheets/palette.2c3d.min.css").write_text(text)
    with pytest.raises(BuildError, match="relative to themselves"):
        merge_styles(site, find_node())


def test_a_missing_style_sheet_ends_the_build(site: Path) -> None:
    (site / "assets" / "_mkdocstrings.css").unlink()
    with pytest.raises(BuildError, match=r"_mkdocstrings\.css: must be one file"):
        merge_styles(site, find_node())
