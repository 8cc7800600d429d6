"""A long run's files as the live page's script reads them, whatever became of their NAME.gz."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.written_run import LiveServer, WrittenRun, write_crowd
from tests.pages.scripts import printed
from tools.console import ROOT

STEPS, PEOPLE = 1200, 400
WHOLE = [STEPS, STEPS * 128, PEOPLE, 0, []]
READ = """
const {{ RunFiles }} = await import({script});
const files = new RunFiles("watched", new URL({folder}));
for (const file of Object.values(files.all)) await file.read();
files.publish();
const {{ progress, peers, broken }} = files.data;
const samples = progress.figures.samples.reduce((sum, one) => sum + one, 0);
console.log(JSON.stringify([progress.step.at(-1), samples, peers.length, progress.broken, broken]));
"""
SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda content: content[: len(content) // 2],
    "other bytes": lambda content: content[:500] + bytes(500) + content[1000:],
    "a page": lambda _: b"<!doctype html>\n<title>Not found</title>\n",
    "empty": lambda _: b"",
    "another run's": lambda content: gzip.compress(gzip.decompress(content).replace(b"1", b"2")),
}
OF_STEPS_ALONE = ("a page", "empty", "another run's")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    """A server of a run with both of its large files compressed."""
    write_crowd(WrittenRun(tmp_path / "watched"), STEPS, PEOPLE)
    server = LiveServer(tmp_path)
    server.start()
    yield server
    server.stop()


def read(server: LiveServer, before: str = "") -> object:
    """The run as the script knows it after asking once."""
    server.asked.clear()
    script = json.dumps((ROOT / "docs/assets/live/files.js").as_uri())
    folder = json.dumps(f"{server.address}watched/")
    return json.loads(printed(before + READ.format(script=script, folder=folder)))


def packed(server: LiveServer) -> list[Path]:
    """The compressed files."""
    return [server.folder / "watched" / name for name in ("progress.jsonl.gz", "peers.json.gz")]


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_compressed_file_is_read_as_the_plain_one(server: LiveServer, how: str) -> None:
    for path in packed(server)[: 1 if how in OF_STEPS_ALONE else 2]:
        path.write_bytes(SPOILED[how](path.read_bytes()))
    assert read(server) == WHOLE
    assert server.ranges_of("progress.jsonl.gz") == [""]
    assert server.ranges_of("progress.jsonl")
    assert bool(server.ranges_of("peers.json")) == (how not in OF_STEPS_ALONE)


def test_a_host_may_keep_compressed_files_back_unpack_them_or_know_no_ranges(
    server: LiveServer,
) -> None:
    assert read(server) == WHOLE
    assert server.ranges_of("progress.jsonl")[0] != "", "the whole plain file was not needed"
    assert server.ranges_of("peers.json") == []
    server.ranges = False
    assert read(server) == WHOLE
    server.ranges = True
    for path in packed(server):  # as fetch hands over what a host says is compressed
        path.write_bytes(gzip.decompress(path.read_bytes()))
    assert read(server) == WHOLE
    assert server.ranges_of("progress.jsonl")[0] != ""
    assert server.ranges_of("peers.json") == []
    for path in packed(server):
        path.unlink()
    assert read(server) == WHOLE
    assert server.ranges_of("peers.json") != []


def test_where_nothing_can_be_unpacked_the_plain_files_are_read(server: LiveServer) -> None:
    assert read(server, "delete globalThis.DecompressionStream;") == WHOLE
    assert server.ranges_of("progress.jsonl.gz") == server.ranges_of("peers.json.gz") == []
