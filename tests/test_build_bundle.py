"""tools/bundle.py: each page loads the scripts that its elements name, and no others."""

from pathlib import Path

import pytest

from tests.folders import written
from tools.bundle import load_page_scripts
from tools.console import BuildError


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A site with two scripts that share two others; one asks for a fifth later."""
    named = '<p data-script="two"><p data-script="one"><p data-script="two">'
    files = {
        "assets/one.js": 'import{a}from"./chunk-A.js";import("./chunk-C.js");',
        "assets/two.js": 'import{a}from"./chunk-A.js";',
        "assets/chunk-A.js": 'import "./chunk-B.js";export const a=1;',
        "assets/chunk-B.js": 'import { a } from "./chunk-A.js";',
        "assets/chunk-C.js": "",
        "deep/page/index.html": f"<head></head>{named}",
        "index.html": "<head></head>",
    }
    return written(tmp_path, files)


def test_a_pages_head_loads_its_scripts_and_what_they_share_once(built: Path) -> None:
    load_page_scripts(built)
    head = (built / "deep" / "page" / "index.html").read_text("utf-8").partition("</head>")[0]
    assert head.endswith(
        '<link rel="modulepreload" href="../../assets/chunk-A.js">'
        '<link rel="modulepreload" href="../../assets/chunk-B.js">'
        '<script type="module" src="../../assets/two.js"></script>'
        '<script type="module" src="../../assets/one.js"></script>'
    )
    assert (built / "index.html").read_text("utf-8") == "<head></head>"


def test_a_script_that_is_not_there_ends_the_build(built: Path) -> None:
    (built / "assets" / "two.js").unlink()
    with pytest.raises(BuildError, match=r'page/index\.html: data-script="two": no page'):
        load_page_scripts(built)
