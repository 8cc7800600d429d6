"""tools/versions.py: what pages load is named by its content, and pages name it so."""

import shutil
from pathlib import Path

import pytest

from tests.folders import written
from tools.console import BuildError
from tools.versions import PLACEHOLDERS, VERSIONED, WORKER, folder_of, name_by_content

PAGE = """<head><link rel="icon" href="../assets/favicon.svg">
<script src=../assets/site.js></script>
<meta property="og:image" content="https://example.org/run/assets/share/about.png">
</head><script id="__config">{"base": "..", "search": "../assets/javascripts/search.js"}</script>
<a href="../source/docs/assets/site.js">docs/assets/site.js</a>
<img src="../assets/share/about.png">"""
MISSING = '<link rel="icon" href="/run/assets/favicon.svg">'


def write_site(site: Path) -> Path:
    """A site with a page in a folder of its own, its scripts, and the browser's Python."""
    files = {
        "about/index.html": PAGE,
        "404.html": MISSING,
        "assets/site.js": "",
        "assets/worker.js": 'const here = "./pyodide/";',
        "assets/pyodide/python.wasm": "python",
        "assets/share/about.png": "",
        "source/docs/assets/site.js": "",
        WORKER: f'["{PLACEHOLDERS["build"]}", "{PLACEHOLDERS["folders"]}"]',
    }
    return written(site, files)


def named(site: Path) -> tuple[str, str, str]:
    """The names that a fresh site gets: of its assets, of its Python, and what its worker says."""
    name_by_content(site, "/run/")
    assets, pyodide = folder_of(site, "assets").name, folder_of(site, "pyodide").name
    return assets, pyodide, (site / WORKER).read_text("utf-8")


def test_pages_and_scripts_name_the_new_folders_and_nothing_else(tmp_path: Path) -> None:
    assets, pyodide, worker = named(write_site(tmp_path))
    assert VERSIONED.fullmatch(assets)
    page = (tmp_path / "about" / "index.html").read_text("utf-8")
    expected = PAGE.replace('"../assets/favicon', f'"../{assets}/favicon')
    expected = expected.replace("src=../assets/site", f"src=../{assets}/site")
    assert page == expected.replace('"../assets/javascripts', f'"../{assets}/javascripts')
    missing = (tmp_path / "404.html").read_text("utf-8")
    assert missing == MISSING.replace("assets", assets)
    assert (tmp_path / assets / "worker.js").read_text() == f'const here = "../{pyodide}/";'
    assert (tmp_path / pyodide / "python.wasm").read_text() == "python"
    assert (tmp_path / "assets" / "share" / "about.png").exists()
    assert f"{assets} {pyodide}" in worker


def test_the_same_content_has_the_same_names(tmp_path: Path) -> None:
    assert named(write_site(tmp_path / "one")) == named(write_site(tmp_path / "two"))


@pytest.mark.parametrize(
    ("changed", "different"),
    [
        ("assets/site.js", (True, False, True)),
        ("assets/pyodide/python.wasm", (True, True, True)),  # the worker names Python's folder
        ("about/index.html", (False, False, True)),
        ("source/docs/assets/site.js", (False, False, False)),
    ],
)
def test_what_changes_gets_a_new_name(
    tmp_path: Path, changed: str, different: tuple[bool, bool, bool]
) -> None:
    before = write_site(tmp_path / "before")
    after = shutil.copytree(before, tmp_path / "after")
    with (after / changed).open("a") as file:
        file.write(" ")
    pairs = zip(named(before), named(after), strict=True)
    assert tuple(old != new for old, new in pairs) == different


def test_a_worker_that_loads_python_from_elsewhere_ends_the_build(tmp_path: Path) -> None:
    site = write_site(tmp_path)
    (site / "assets" / "worker.js").write_text("")
    with pytest.raises(BuildError, match=r"worker\.js: must have \./pyodide/ once"):
        name_by_content(site, "/")
    with pytest.raises(BuildError, match="one folder assets-HASH, has 0"):
        folder_of(site, "assets")
