"""The built site: what the browser's Python needs is there, and it can live under any path."""

import json
import re
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from tests.pages.scripts import printed
from tools.browser_python import RUNTIME_FILES
from tools.compile_bytecode import MODULES, WRITTEN, module_of
from tools.console import ROOT
from tools.packed import ZSTANDARD
from tools.versions import folder_of

READ_ARCHIVES = """
import { readFileSync } from "node:fs";
const [runtime, library, calculator, readers] = JSON.parse(readFileSync(0, "utf8"));
const { loadPyodide } = await import(`${runtime}/pyodide.mjs`);
const python = await loadPyodide({ indexURL: `${runtime}/`, stdLibURL: library });
python.FS.writeFile("/calculator.zip", readFileSync(calculator));
python.FS.writeFile("/readers.zip", readFileSync(readers));
console.log(python.runPython(PROGRAM));
"""
LIST_MODULES = """
import json, marshal, sys
from left_out import NAMES
from packed import read
library = next(path for path in sys.path if path.endswith(".zip"))
json.dumps({
    "library": list(read(library)),
    "left_out": list(NAMES),
    "readers": list(read("/readers.zip")),
    "calculator": [
        name if "/" in name else marshal.loads(content).co_filename
        for name, (content, _) in read("/calculator.zip").items()
    ],
})
"""


def modules(archive: Path, suffix: str) -> set[str]:
    with zipfile.ZipFile(archive) as opened:
        return {name.removesuffix(suffix) for name in opened.namelist() if name.endswith(suffix)}


@pytest.fixture(scope="module")
def packed(site: Path) -> dict[str, list[str]]:
    """Modules that Python finds in the site's archives, started as a page starts it."""
    runtime, assets = folder_of(site, "pyodide"), folder_of(site, "assets")
    places = [runtime, runtime / "python_stdlib_bytecode.zip"]
    places += [assets / "calculator.zip", assets / "readers.zip"]
    program = READ_ARCHIVES.replace("PROGRAM", json.dumps(LIST_MODULES))
    return json.loads(printed(program, json.dumps([*map(str, places)])))


@pytest.mark.parametrize("name", RUNTIME_FILES)
def test_pyodide_is_served_as_published(site: Path, name: str) -> None:
    published = ROOT / "node_modules" / "pyodide" / name
    assert (folder_of(site, "pyodide") / name).read_bytes() == published.read_bytes()


def test_the_compiled_library_has_or_names_every_module_of_the_stock_one(
    site: Path, packed: dict[str, list[str]]
) -> None:
    folder = folder_of(site, "pyodide")
    library = folder / "python_stdlib_bytecode.zip"
    apart = {module_of(f"{path}.pyc") for path in modules(library, ".pyc")}
    ours = {"left_out", "packed", "sitecustomize"}
    assert ours < apart
    compiled = (apart - ours) | set(packed["library"])
    stock = {module_of(f"{path}.py") for path in modules(folder / "python_stdlib.zip", ".py")}
    assert modules(library, ".py") == set()
    assert set(packed["left_out"]) == stock - compiled
    assert compiled < stock
    assert len(packed["left_out"]) > 300
    assert library.stat().st_size < 300_000
    unneeded = {"argparse", "asyncio.events", "pathlib", "shutil", "socket", "ssl", "zipfile"}
    assert compiled.isdisjoint(unneeded)


def test_every_file_of_calculator_that_pages_can_use_is_packed(
    site: Path, packed: dict[str, list[str]]
) -> None:
    archive = folder_of(site, "assets") / "calculator.zip"
    with zipfile.ZipFile(archive) as opened:
        assert opened.namelist() == [MODULES, WRITTEN, "packed.pyc"]
        # The methods of some 200 data classes: none is compiled in the browser.
        assert len(opened.read(WRITTEN)) > 20_000
        assert opened.read(MODULES).startswith(ZSTANDARD)
    paths = {
        path.relative_to(ROOT).as_posix()
        for kind in ("py", "json")
        for path in (ROOT / "calculator").rglob(f"*.{kind}")
    }
    commands = {"__main__", "commandline", "config_file", "explaining", "hub", "named"}
    commands.add("planner/commandline")
    commands |= {f"doors/{path.stem}" for path in (ROOT / "calculator/doors").glob("*.py")}
    assert paths - set(packed["calculator"]) == {f"calculator/{name}.py" for name in commands}


def test_readers_of_files_are_a_file_of_their_own_with_what_they_import(
    packed: dict[str, list[str]],
) -> None:
    readers = set(packed["readers"])
    others = {"check", "line", "__init__"}
    doors = {path.stem for path in (ROOT / "calculator/doors").glob("*.py")} - others
    assert {f"calculator.doors.{name}" for name in doors} < readers
    assert {"yaml", "yaml.scanner", "tomllib", "calculator/doors/tables/axolotl.toml"} < readers
    assert not readers & set(packed["library"])
    assert readers.isdisjoint({"calculator.doors.check", "argparse", "yaml.cyaml"})


def test_the_lock_lists_no_packages_since_none_are_served(site: Path) -> None:
    lock = json.loads((folder_of(site, "pyodide") / "pyodide-lock.json").read_text("utf-8"))
    assert lock["packages"] == {}
    assert lock["info"]["arch"] == "wasm32"


def test_pages_use_relative_addresses_only(site: Path) -> None:
    absolute = re.compile(r"""(?:href|src|action)=["']?(/[^"'\s>]*)""")
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    assert len(pages) >= 3
    found = {page.name: absolute.findall(page.read_text("utf-8")) for page in pages}
    assert {name: addresses for name, addresses in found.items() if addresses} == {}


def test_pages_hold_no_inline_code_that_the_policy_would_refuse(site: Path) -> None:
    handlers = re.compile(r"<[^>]+\son(?:click|load|change|input|submit|error)\s*=", re.IGNORECASE)
    found = {page for page in site.rglob("*.html") if handlers.search(page.read_text("utf-8"))}
    assert found == set()


def test_every_page_of_the_first_level_has_a_share_picture(site: Path) -> None:
    folders = {page.parent.name for page in site.glob("*/index.html")}
    pictures = {path.stem: path for path in (site / "assets" / "share").glob("*.png")}
    assert folders | {"index"} == set(pictures)
    for path in pictures.values():
        with Image.open(path) as picture:
            assert (picture.format, picture.size) == ("PNG", (1200, 630))


def test_every_style_and_script_of_ours_is_loaded(site: Path) -> None:
    shared, own = ROOT / "docs" / "assets" / "styles", ROOT / "templates" / "pages"
    source_map = folder_of(site, "assets") / "styles" / "site.css.map"
    mapped = json.loads(source_map.read_text())["sources"]
    for path in (*shared.glob("*.css"), *own.glob("*/style.css")):
        assert any(source.endswith(f"/{path.relative_to(ROOT).as_posix()}") for source in mapped)
    pages = [path.read_text("utf-8") for path in site.rglob("index.html")]
    assets = folder_of(site, "assets").name
    for script in own.glob("*/script.js"):
        name = script.parent.name.replace("_", "-")
        assert any(f'{assets}/{name}.js"></script>' in page for page in pages), name
    for loaded in ("styles/site.css", "site.js"):
        assert all(f'{assets}/{loaded}"' in page for page in pages)


def test_bundled_scripts_and_styles_have_their_source_maps_beside_them(site: Path) -> None:
    assets = folder_of(site, "assets")
    scripts = [path for path in assets.glob("*.js") if ".min." not in path.name]
    bundled = [*scripts, assets / "styles" / "site.css"]
    for path in bundled:
        beside = json.loads(path.with_name(f"{path.name}.map").read_text("utf-8"))
        assert all(text for text in beside["sourcesContent"])
        assert not any(source.startswith("/") for source in beside["sources"])
    # One instance of the page's one Python, however many pages ask it.
    assert sum("./worker.js" in path.read_text("utf-8") for path in scripts) == 1
