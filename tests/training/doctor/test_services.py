import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from tests.training.answering import Answering, on_any_port, served
from tests.training.doctor.conftest import MakeSetup, expect
from training.data.shards import ShardInfo, shard_path, write_shard
from training.doctor import services
from training.doctor.findings import Verdict
from training.run.recipes import TINY

CARD = {"name": "our-run", "finished": None}


class Web(Answering):
    """A static host."""

    card: Any = CARD

    def do_GET(self) -> None:
        if self.path == "/live/run.json":
            self.answer(json.dumps(self.card).encode())
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
