"""tools/bundle.py: each page loads the scripts that its elements name, and no others."""

from pathlib import Path

import pytest

from tools.bundle import END_OF_STYLES, load_page_scripts, merge_generated_styles
from tools.console import BuildError


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A site with two scripts that share a third, and the styles of a plugin."""
    link = '<link rel="stylesheet" href="../../assets/_mkdocstrings.css">'
    named = '<p data-script="two"><p data-script="one"><p data-script="two">'
    files = {
        "assets/one.js": 'import{a}from"./chunk-A.js";',
        "assets/two.js": 'import{a}from"./chunk-A.js";',
        "assets/chunk-A.js": "export const a=1;",
        "assets/_mkdocstrings.css": ".doc{}\n",
        "assets/styles/site.css": f"p{{}}\n{END_OF_STYLES}site.css.map */",
        "deep/page/index.html": f"<head>{link}</head>{named}",
        "index.html": "<head></head>",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_a_pages_head_loads_its_scripts_and_what_they_share_once(built: Path) -> None:
    load_page_scripts(built)
    head = (built / "deep" / "page" / "index.html").read_text("utf-8").partition("</head>")[0]
    assert head.endswith(
        '<link rel="modulepreload" href="../../assets/chunk-A.js">'
        '<script type="module" src="../../assets/two.js"></script>'
        '<script type="module" src="../../assets/one.js"></script>'
    )
    assert (built / "index.html").read_text("utf-8") == "<head></head>"


def test_a_script_that_is_not_there_ends_the_build(built: Path) -> None:
    (built / "assets" / "two.js").unlink()
    with pytest.raises(BuildError, match=r'page/index\.html: data-script="two": docs/assets'):
        load_page_scripts(built)


def test_a_plugins_styles_come_into_ours(built: Path) -> None:
    merge_generated_styles(built)
    styles = (built / "assets" / "styles" / "site.css").read_text("utf-8")
    assert styles == f"p{{}}\n.doc{{}}\n{END_OF_STYLES}site.css.map */"
    assert "_mkdocstrings" not in (built / "deep" / "page" / "index.html").read_text("utf-8")
    assert not (built / "assets" / "_mkdocstrings.css").exists()
