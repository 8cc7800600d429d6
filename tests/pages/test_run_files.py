"""A growing run's files as the live page's script reads them, whatever became of NAME.gz."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from tests.browser.written_run import LiveServer, WrittenRun, write_crowd
from tools.console import ROOT
from tools.node import find_node

STEPS, PEOPLE = 1200, 400
WHOLE = [STEPS, STEPS * 128, PEOPLE, 0, [], []]
# For each line of input, asks for the run's files, and prints what they say.
READ = """
const {{ RunFiles }} = await import({script});
const {{ createInterface }} = await import("node:readline");
const files = new RunFiles("watched", new URL({folder}));
for await (const _ of createInterface(process.stdin)) {{
  for (const file of Object.values(files.all)) await file.read();
  files.publish();
  const {{ progress, peers, broken }} = files.data;
  const samples = progress.figures.samples.reduce((sum, one) => sum + one, 0);
  const returns = progress.returns.map(({{ from, to }}) => [from, to]);
  const told = [progress.step.at(-1), samples, peers.length, progress.broken, returns, broken];
  console.log(JSON.stringify(told));
}}
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
def run(tmp_path: Path) -> WrittenRun:
    """An open run without a step."""
    run = WrittenRun(tmp_path / "watched")
    run.open()
    return run


@pytest.fixture
def crowd(run: WrittenRun) -> WrittenRun:
    """The run with both of its large files compressed."""
    write_crowd(run, STEPS, PEOPLE)
    return run


@pytest.fixture
def server(run: WrittenRun) -> Iterator[LiveServer]:
    """A server of the run."""
    server = LiveServer(run.path.parent)
    server.start()
    yield server
    server.stop()


@contextmanager
def reading(server: LiveServer, before: str = "") -> Iterator[Callable[[], list[Any]]]:
    """The run as the script knows it each time that it has asked again."""
    server.asked.clear()
    script = json.dumps((ROOT / "docs/assets/live/files.js").as_uri())
    program = before + READ.format(script=script, folder=json.dumps(f"{server.address}watched/"))
    command = [find_node().node, "--input-type=module", "--eval", program]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as node:

        def ask() -> list[Any]:
            node.stdin.write("\n")
            node.stdin.flush()
            return json.loads(node.stdout.readline())

        yield ask


def read(server: LiveServer, before: str = "") -> list[Any]:
    """The run as the script knows it after asking once."""
    with reading(server, before) as ask:
        return ask()


def packed(run: WrittenRun) -> list[Path]:
    """The compressed files."""
    return [run.path / name for name in ("progress.jsonl.gz", "peers.json.gz")]


def test_a_line_counts_once_it_is_whole_and_what_cannot_be_read_leaves_what_was_known(
    server: LiveServer, run: WrittenRun
) -> None:
    run.add(5)
    run.write_people("ada", "ben")
    whole = run.progress.read_bytes()
    run.progress.write_bytes(whole[:-30])
    with reading(server) as ask:
        assert ask() == [4, 4 * 128, 2, 0, [], []]
        run.progress.write_bytes(whole)
        (run.path / "peers.json").write_text("[{")
        assert ask() == [5, 5 * 128, 2, 0, [], ["peers.json"]]
        run.write_people("ada", "ben", "cleo")
        with run.progress.open("a") as file:
            file.write('{"step": 7, "time": \n{"step": "seven"}\n\xff\n')
        run.add(1)
        assert ask() == [6, 6 * 128, 3, 3, [], []]


@pytest.mark.parametrize("ranges", [True, False])
def test_new_steps_are_added_a_return_drops_some_and_another_file_is_read_from_its_start(
    server: LiveServer, run: WrittenRun, *, ranges: bool
) -> None:
    server.ranges = ranges
    run.add(8)
    with reading(server) as ask:
        for step in (8, 9, 10):
            assert ask()[:2] == [step, step * 128]
            run.add(1)
        run.step = 6
        run.add(2)
        assert ask() == [8, 8 * 128, 0, 0, [[11, 7]], []]
        for steps in (2, 30):
            lines = (vars(run.line(step, time.time())) for step in range(1, steps + 1))
            other = run.path / "other.jsonl"
            other.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
            other.replace(run.progress)
            assert ask() == [steps, steps * 128, 0, 0, [], []]


def test_a_long_run_comes_compressed_and_only_what_is_new_as_it_is(
    server: LiveServer, crowd: WrittenRun
) -> None:
    content = crowd.progress.read_bytes()
    crowd.add(1)
    with reading(server) as ask:
        assert ask()[:3] == [STEPS + 1, 128 * (STEPS + 1), PEOPLE]
        start = len(content) - len(content.splitlines(keepends=True)[-1])
        assert server.ranges_of("progress.jsonl") == [f"bytes={start}-"]
        assert server.ranges_of("peers.json") == []
        crowd.live.write_peers(crowd.live.read_peers()[:-1])
        crowd.add(1)
        assert ask()[:3] == [STEPS + 2, 128 * (STEPS + 2), PEOPLE - 1]
    assert server.ranges_of("progress.jsonl.gz") == [""]


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_compressed_file_is_read_as_the_plain_one(
    server: LiveServer, crowd: WrittenRun, how: str
) -> None:
    for path in packed(crowd)[: 1 if how in OF_STEPS_ALONE else 2]:
        path.write_bytes(SPOILED[how](path.read_bytes()))
    assert read(server) == WHOLE
    assert server.ranges_of("progress.jsonl.gz") == [""]
    assert server.ranges_of("progress.jsonl")
    assert bool(server.ranges_of("peers.json")) == (how not in OF_STEPS_ALONE)


def test_a_host_may_keep_compressed_files_back_unpack_them_or_know_no_ranges(
    server: LiveServer, crowd: WrittenRun
) -> None:
    server.ranges = False
    assert read(server) == WHOLE
    server.ranges = True
    for path in packed(crowd):  # as fetch hands over what a host says is compressed
        path.write_bytes(gzip.decompress(path.read_bytes()))
    assert read(server) == WHOLE
    assert server.ranges_of("progress.jsonl")[0] != "", "the whole plain file was not needed"
    assert server.ranges_of("peers.json") == []
    for path in packed(crowd):
        path.unlink()
    assert read(server) == WHOLE
    assert server.ranges_of("peers.json") != []


@pytest.mark.usefixtures("crowd")
def test_where_nothing_can_be_unpacked_the_plain_files_are_read(server: LiveServer) -> None:
    assert read(server, "delete globalThis.DecompressionStream;") == WHOLE
    assert server.ranges_of("progress.jsonl.gz") == server.ranges_of("peers.json.gz") == []
