import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from tests.training.answering import Answering, on_any_port, served
from tests.training.doctor.conftest import MakeSetup, expect
from tests.training.sparse.object_server import ObjectServer
from training.data.shards import ShardInfo, shard_path, write_shard
from training.doctor import services
from training.doctor.clock import Reading
from training.doctor.findings import Finding, PointName, Verdict
from training.run.recipes import TINY

CARD = {"name": "our-run", "finished": None}
TIME = 1_700_000_000.0
STATUS = {"run": "our-run", "round": 1234, "finished": False, "peers": 2, "time": TIME}


class Web(Answering):
    """A static host, which also says what the host of a run with local steps does."""

    card: Any = CARD

    def do_GET(self) -> None:
        known = {"/live/run.json": self.card, "/round": STATUS, "/elsewhere/round": [1]}
        if self.path in known:
            self.answer(json.dumps(known[self.path]).encode())
        else:
            self.answer(b"", 404, X_Error_Code="RepoNotFound")  # as the Hub says it


@pytest.fixture
def web() -> Iterator[str]:
    with served(on_any_port(Web)) as address:
        yield address


@pytest.mark.parametrize(
    ("card", "verdict", "words"),
    [
        (CARD, Verdict.FINE, ""),
        (CARD | {"name": "another"}, Verdict.WARNING, "the live data of another run: 'another'"),
        (CARD | {"finished": "2026-01-02T03"}, Verdict.WARNING, "the run ended at 2026-01-02"),
        (["no", "card"], Verdict.WARNING, "holds no live data of a run"),
    ],
)
def test_live_data_of_another_run_or_time_is_told(
    make_setup: MakeSetup,
    web: str,
    monkeypatch: pytest.MonkeyPatch,
    card: Any,
    verdict: Verdict,
    words: str,
) -> None:
    monkeypatch.setattr(Web, "card", card)
    expect(services.look_at_live(make_setup(run={"live": f"{web}/live"})), verdict, words)


def test_live_data_that_does_not_answer_is_a_warning(make_setup: MakeSetup, web: str) -> None:
    for live, words in (
        (f"{web}/elsewhere", "returns status 404"),
        ("http://127.0.0.1:9/", "Connection refused"),
        ("/no/such/folder", "No such file"),
    ):
        found = services.look_at_live(make_setup(run={"live": live}))
        expect(found, Verdict.WARNING, cause=words, passes=True)


def test_a_run_that_names_no_data_is_a_problem(make_setup: MakeSetup) -> None:
    setup = make_setup(run={"recipe": "paper"})
    expect(services.look_at_data(setup), Verdict.PROBLEM, cause="names a data set")


def test_a_folder_must_hold_shards_the_model_knows(make_setup: MakeSetup, tmp_path: Path) -> None:
    setup = make_setup(run={"data": str(tmp_path)})
    expect(services.look_at_data(setup), Verdict.PROBLEM, cause="there are no shards in")
    known = TINY.model.image_vocabulary_size
    for size, verdict in ((known, Verdict.FINE), (known + 1, Verdict.PROBLEM)):
        write_shard(shard_path(tmp_path, 0), [], ShardInfo(0, 0, 0, 0, "shapes", 32, size))
        expect(services.look_at_data(setup), verdict)
    shard_path(tmp_path, 0).write_bytes(b"no shard")
    expect(services.look_at_data(setup), Verdict.PROBLEM)


def test_a_data_set_that_does_not_exist_is_a_problem_and_a_silent_hub_may_return(
    make_setup: MakeSetup, web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    setup = make_setup(run={"data": "someone/nothing"})
    for hub, cause, passes in (
        (web, "there is no data set someone/nothing", False),
        ("http://127.0.0.1:9", "does not respond", True),
    ):
        monkeypatch.setattr(constants, "ENDPOINT", hub)
        expect(services.look_at_data(setup), Verdict.PROBLEM, cause, passes=passes)


@pytest.mark.parametrize(
    ("token", "fix", "passes"), [(None, "hf auth login", False), ("hf_made_up", "wait", True)]
)
def test_a_missing_token_is_told_and_an_authority_that_is_down_may_come_back(
    make_setup: MakeSetup,
    monkeypatch: pytest.MonkeyPatch,
    token: str | None,
    fix: str,
    passes: bool,
) -> None:
    monkeypatch.setattr("huggingface_hub.get_token", lambda: token)
    setup = make_setup(run={"authority": "http://127.0.0.1:9", "organisation": "us"})
    finding = expect(services.look_at_access(setup), Verdict.PROBLEM, fix=fix, passes=passes)
    assert "hf_made_up" not in finding.cause + finding.fix


Look = Callable[..., list[Finding]]


@pytest.fixture
def look(make_setup: MakeSetup, web: str) -> Look:
    """Looks at the host of a run whose file may say something else."""

    def look(readings: list[Reading] | None = None, **changes: str) -> list[Finding]:
        run = {"recipe": "sparse", "exchange": web} | changes
        return services.look_at_exchange(make_setup(run=run), [] if readings is None else readings)

    return look


def test_a_host_that_answers_is_fine_and_nothing_else_is_needed(look: Look, web: str) -> None:
    readings: list[Reading] = []
    found = look(readings)
    (reading,) = readings
    assert reading.ahead == pytest.approx(time.time() - TIME, abs=60.0)
    points = {PointName.PORT, PointName.ENTRY_POINTS, PointName.REACHABILITY}
    assert {one.point for one in found} == points
    assert all(one.verdict is Verdict.FINE for one in found)
    assert any(f"{web} answers, round 1,234" in one.cause for one in found)


@pytest.mark.parametrize(
    ("changes", "words", "passes"),
    [
        ({"name": "their-run"}, "is the host of another run", False),
        ({"exchange": "{web}/elsewhere"}, "is no host of a run", False),
        ({"exchange": "http://127.0.0.1:9"}, "no connection to", True),
        ({"exchange": ""}, "names no exchange", False),
    ],
)
def test_another_host_is_a_problem_and_one_that_is_away_may_come_back(
    look: Look, web: str, changes: dict[str, str], words: str, passes: bool
) -> None:
    found = look(**{name: text.format(web=web) for name, text in changes.items()})[-1]
    assert (found.point, found.verdict) == (PointName.ENTRY_POINTS, Verdict.PROBLEM)
    assert words in found.cause
    assert found.passes is passes


def test_a_store_that_refuses_strangers_answers(look: Look, web: str, tmp_path: Path) -> None:
    process = ObjectServer(tmp_path / "objects")
    process.start()
    (found,) = look(store=process.address)[2:]
    assert found.verdict is Verdict.FINE
    assert f"its store {process.address} answers" in found.cause
    process.stop()
    (found,) = look(store=process.address)[2:]
    assert found.verdict is Verdict.WARNING
    assert f"{web} answers, round 1,234, but its store" in found.cause
    assert "from the run's host" in found.fix
