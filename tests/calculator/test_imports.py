"""Imports between modules, read from the source."""

import ast
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import calculator
from calculator.models.registry import PLACES, TYPES
from tests.quick import names_imported

ROOT = Path(calculator.__file__).parent
MODULES = {
    ".".join(("calculator", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in ROOT.rglob("*.py")
}
LEAVES = [f"calculator.{name}" for name in ("allocator", "choice", "errors", "units")]


def _is_of_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@cache
def imported(path: Path) -> set[str]:
    """Full names of what a file imports when it runs, a module or a name taken from one."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not _is_of_types(node)]
    found = {*names_imported(tree)}
    if path == MODULES["calculator.models.registry"]:  # imports when a class is asked for
        found |= {f"calculator.models.{place.partition('.')[0]}" for place in PLACES.values()}
    return found


def internal(module: str) -> set[str]:
    """The calculator's modules that one of them imports, itself left out."""
    return {name for name in imported(MODULES[module]) if name in MODULES}


def reachable(module: str) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        for name in internal(waiting.pop()) - found:
            found.add(name)
            waiting.append(name)
    return found


def test_the_calculator_imports_the_standard_library_and_itself_alone() -> None:
    brought = {"calculator.doors.file": {"yaml"}}  # once a YAML file is
    for module, path in MODULES.items():
        roots = {name.partition(".")[0] for name in imported(path)}
        own = {*sys.stdlib_module_names, "calculator", *brought.get(module, ())}
        assert roots <= own, module


@pytest.mark.parametrize("module", LEAVES)
def test_a_leaf_imports_nothing_of_ours(module: str) -> None:
    assert internal(module) == set()


def test_no_module_imports_itself_in_a_circle_and_the_two_doors_stand_on_top() -> None:
    TopologicalSorter({module: internal(module) for module in MODULES}).prepare()
    doors = {"calculator.protocol", "calculator.__main__"}
    for module in MODULES.keys() - doors:
        assert not internal(module) & doors


def test_what_a_page_asks_reads_no_file_and_starts_no_process() -> None:
    # Pyodide has no processes, and the page's only door is the protocol
    used = set[str]()
    for module in {"calculator.protocol", *reachable("calculator.protocol")}:
        used |= imported(MODULES[module])
    roots = {name.partition(".")[0] for name in used}
    assert not roots & {"subprocess", "socket", "threading", "multiprocessing", "os", "pathlib"}


# what each room may import beside itself: `autograd` is the ground, a model is made of layers
ROOMS = {
    "autograd": set(),
    "layers": {"autograd"},
    "models": {"autograd", "layers"},
    "peaks": {"autograd", "layers", "models"},
}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(room: str) -> None:
    used = {
        name.split(".")[1]
        for module in MODULES
        if module.startswith(f"calculator.{room}.")
        for name in internal(module)
    }
    assert used & ROOMS.keys() <= ROOMS[room] | {room}
    # beside rooms, models know what an architecture is, and peaks know plans too
    beside = {"choice", "errors", "parts", "task"} | (
        {"architecture", "configuration", "data"} if room == "models" else set()
    )
    assert room == "peaks" or used - ROOMS.keys() <= beside


# texts outside the models that are a type's name and mean something else
OTHER_MEANINGS = {("calculator.page.run", "llama")}  # the key of a source


def test_no_family_is_asked_for_outside_the_models() -> None:
    # other libraries' files name models by words of their own
    described = ("models.", "catalog", "doors.", "measured.")
    asking = {
        (module, node.value)
        for module, path in MODULES.items()
        if not module.removeprefix("calculator.").startswith(described)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in TYPES
    }
    assert asking == OTHER_MEANINGS
