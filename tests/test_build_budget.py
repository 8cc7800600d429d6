"""tools/budget.py: what a page loads is counted whole, and a page over its budget is named."""

from pathlib import Path

from tests.folders import written
from tools.budget import loaded_files, over_budget

PAGE = """<link rel="stylesheet" href="../a.css"><link rel="canonical" href="./">
<script type="module" src="../one.js"></script><script>inline()</script>
<img src="../seen.png"><img loading="lazy" src="../later.png">
<link rel="modulepreload" href="../two.js"><img src="data:image/png;base64,AA==">"""


def write_page(site: Path) -> Path:
    """A page in a folder of its own, with a script that imports two others, each other's too."""
    files = dict.fromkeys(("three.js", "asked.js", "seen.png", "later.png"), "")
    files |= {
        "a.css": "p{}",
        "one.js": 'import{a}from"./two.js";import("./asked.js");',
        "two.js": 'import "./three.js"; import { b } from "./one.js";',
        "page/index.html": PAGE,
    }
    return written(site, files) / "page" / "index.html"


def test_a_page_loads_what_its_scripts_import_and_each_file_once(tmp_path: Path) -> None:
    found = [path.name for path in loaded_files(write_page(tmp_path), tmp_path)]
    assert found == ["index.html", "a.css", "one.js", "two.js", "three.js", "seen.png"]


def test_a_page_over_its_budget_is_named_with_its_figures(tmp_path: Path) -> None:
    write_page(tmp_path)
    assert list(over_budget(tmp_path, most_requests=6, most_bytes=1000)) == []
    (line,) = over_budget(tmp_path, most_requests=5, most_bytes=1000)
    assert line.startswith("page/index.html: 6 requests of 5, ")
    (line,) = over_budget(tmp_path, most_requests=6, most_bytes=100)
    assert "bytes of 100; the largest: page/index.html" in line
