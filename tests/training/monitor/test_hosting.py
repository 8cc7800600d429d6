"""An organizer's one command, and the live page that it serves."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from tests.training import alone
from tests.training.forks import CommandFork, Fork
from tests.training.processes import PATIENCE, wait_for
from training.access.grants import public_key_text
from training.authority.keys import read_key
from training.monitor import hosting
from training.monitor.hosting import HostOptions
from training.monitor.live_page import LivePage
from training.monitor.web_host import WebHost
from training.run.live import LiveFolder
from training.run.recipes import LANGUAGE
from training.run.runfile import RunFile, load, parse

ADDRESS = "/ip4/203.0.113.5/tcp/31337/p2p/QmXh9V7tXt9fd3UdkFWAjTEEhV4st7bhRRxoHjByY4pNQF"
STEPS = 8


def test_the_live_page_shows_the_run_that_is_hosted(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "live").mkdir(parents=True)
    (site / "live" / "index.html").write_text("<title>Live</title>")
    (site / "live" / "runs.json").write_text('{"runs": [{"name": "another"}]}')
    with closing(LivePage("our-run", "Our run", tmp_path / "data", site=site)) as page:
        assert page.address.endswith("/live/?run=our-run")
        assert "<title>Live</title>" in httpx.get(page.address).text
        root = page.address.partition("?")[0]
        (run,) = httpx.get(f"{root}runs.json").json()["runs"]
        assert (run["name"], run["title"]) == ("our-run", "Our run")
        (tmp_path / "data" / "progress.jsonl").write_text('{"step": 1}\n{"step": 2}\n')
        answer = httpx.get(f"{root}our-run/progress.jsonl", headers={"Range": "bytes=12-"})
        assert (answer.status_code, answer.text) == (206, '{"step": 2}\n')
        assert answer.headers["Cache-Control"] == "no-cache"


def test_without_a_built_site_the_data_are_served_and_the_way_out_is_said(tmp_path: Path) -> None:
    with closing(LivePage("our-run", "Our run", tmp_path / "data", site=tmp_path)) as page:
        assert "build.py build" in page.describe()
        (tmp_path / "data" / "run.json").write_text("{}")
        assert httpx.get(f"{page.address}run.json").text == "{}"


def test_the_file_for_volunteers_has_what_monitor_and_authority_know(tmp_path: Path) -> None:
    """Volunteers on this machine cannot use the address on which a host listens everywhere."""
    with closing(WebHost(Starlette(), "0.0.0.0", 0)) as served:
        assert httpx.get(served.address).status_code == 404
    run = RunFile(name="our-run", recipe="sparse", authority="https://example.org")
    told = {"addresses": [ADDRESS], "exchange": served.address}
    complete = hosting.make_run_file(run, told, tmp_path)
    assert complete.initial_peers == (ADDRESS,)
    assert complete.exchange == served.address
    assert complete.authority_key == public_key_text(read_key(tmp_path / "authority"))
    assert hosting.make_run_file(complete, {"addresses": ["/p2p/Qm1"]}, tmp_path) == complete


def test_the_notebook_for_volunteers_writes_the_run_file_that_its_form_names() -> None:
    run = RunFile(name="our-run", recipe="tiny", initial_peers=(ADDRESS,))
    template = hosting.NOTEBOOKS[-1].read_text("utf-8")
    cells = json.loads(hosting.make_notebook(template, run))["cells"]
    (place,) = (n for n, cell in enumerate(cells) if "%%writefile run.toml" in cell["source"])
    assert parse("".join(cells[place]["source"]).partition("\n")[2]) == run
    assert 'RUN = "run.toml"' in "".join(cells[place + 1]["source"])
    assert len({cell["id"] for cell in cells}) == len(cells)


@pytest.mark.parametrize(
    ("run", "rule"),
    [
        (RunFile("a", "tiny", (ADDRESS,)), "newcomers get the weights from peers alone"),
        (RunFile("a", "tiny", ("/ip4/127.0.0.1/tcp/1/p2p/Qm1",)), "only this machine"),
        (RunFile("a", "tiny", live="."), "name one with --announce"),
        (RunFile("a", "sparse"), "need `exchange`"),
        (RunFile("a", "sparse", exchange="http://127.0.0.1:8450"), "need `exchange`"),
    ],
)
def test_what_strangers_would_miss_is_said(run: RunFile, rule: str) -> None:
    (sentence,) = hosting.warnings(run)
    assert rule in sentence


@pytest.mark.swarm
def test_one_command_organizes_a_run_that_a_volunteer_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A language model is trained and published, and continues the prompts.

    The organizers end the run before its schedule does, and the volunteer hears of it.
    """
    monkeypatch.setattr(hosting, "Worker", CommandFork)
    run_file, folder, own = tmp_path / "run.toml", tmp_path / "host", tmp_path / "ada"
    run_file.write_text('name = "our-run"\nrecipe = "language"\n')
    sent, here, live = folder / "run.toml", ("--host", "127.0.0.1"), tmp_path / "live"
    enough = ("--sequences", str(STEPS * LANGUAGE.swarm.target_batch_size))
    options = HostOptions(str(run_file), folder, live, (*here, *enough))
    joining = ["join", str(sent), "--no-doctor", *here, "--folder", str(own)]
    volunteer = Fork(joining, own, own / "terminal.txt", program=Path(alone.__file__))
    stop, said = threading.Event(), [""]

    def says(words: str) -> bool:
        said[0] += capsys.readouterr().out
        return words in said[0]

    with ThreadPoolExecutor() as pool:
        try:
            organizer = pool.submit(hosting.host, load(str(run_file)), options, stop)
            wait_for("its address", lambda: says("Ctrl-C ends this") or organizer.done())
            assert load(str(sent)).initial_peers
            found = re.search(r"http://127\.0\.0\.1:\d+/live/", said[0])
            card = httpx.get(f"{found[0]}our-run/run.json").json()
            assert card["name"] == "our-run"
            volunteer.start()
            assert organizer.result(PATIENCE) == 0
            terminal = own / "terminal.txt"
            wait_for("the volunteer's end", lambda: "the run is over" in terminal.read_text())
        finally:
            stop.set()
            volunteer.kill()
    assert says("the run is over")
    assert f"step {STEPS}" in (folder / "logs" / "monitor.txt").read_text()
    lines = LiveFolder(live).progress.read()
    assert lines[0]["loss"] == pytest.approx(3.69, abs=0.1)  # ln 40, for 40 words
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.05
    drawn = json.loads((live / "samples.json").read_text())["checkpoints"][-1]
    for prompt, texts in zip(LANGUAGE.generation.prompts, drawn["texts"], strict=True):
        assert len(texts) == 4
        assert all(text.startswith(prompt) for text in texts)
