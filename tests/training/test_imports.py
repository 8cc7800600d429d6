"""Imports between the package's rooms, read from the source."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import training
from tests.quick import names_imported

ROOT = Path(training.__file__).parent
# Each room with those that it may import: what a room is built on stands above it.
ROOMS = {
    room: set(below.split())
    for room, below in {
        "run": "",
        "shapes": "",
        "optimizer": "run",
        "model": "run shapes",
        "access": "run",
        "sparse": "access run",
        "pictures": "model run shapes",
        "data": "model pictures run shapes",
        "authority": "access run",
        "records": "access run",
        "network": "access records run",
        "averaging": "access model network optimizer records run",
        "volunteer": "access averaging data model network optimizer records run sparse",
        "monitor": "access authority averaging data model network pictures records run sparse "
        "volunteer",
        "doctor": "access data network optimizer run sparse volunteer",
        "rehearsal": "access authority averaging data model monitor network pictures records run "
        "shapes sparse volunteer",
    }.items()
}


def rooms_imported(room: str) -> dict[str, set[str]]:
    """The other rooms whose modules a room's files import, anywhere in them, with those files."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / room).rglob("*.py"):
        for name in names_imported(ast.parse(path.read_text(encoding="utf-8"))):
            top, _, rest = name.partition(".")
            if top == "training" and rest.partition(".")[0] != room:
                found.setdefault(rest.partition(".")[0], set()).add(path.name)
    return found


def test_every_file_is_in_a_room() -> None:
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py"}
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} == set(ROOMS)


def test_rooms_import_each_other_in_one_direction() -> None:
    list(TopologicalSorter(ROOMS).static_order())  # raises CycleError where two form a circle


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_those_it_is_built_on_alone(room: str) -> None:
    others = {name: files for name, files in rooms_imported(room).items() if name in ROOMS}
    assert others.keys() <= ROOMS[room], others
    assert "__main__" not in rooms_imported(room)
