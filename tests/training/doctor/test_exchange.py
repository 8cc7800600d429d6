"""doctor: the web host of a run with local steps, in place of port and entry points."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.training.answering import Answering, on_any_port, served
from tests.training.doctor.conftest import MakeSetup
from tests.training.sparse.object_server import ObjectServer
from training.doctor import services
from training.doctor.clock import Reading
from training.doctor.findings import Finding, PointName, Verdict

TIME = 1_700_000_000.0
STATUS = {"run": "our-run", "round": 1234, "finished": False, "peers": 2, "time": TIME}


@pytest.fixture
def web() -> Iterator[str]:
    class Web(Answering):
        def do_GET(self) -> None:
            self.answer(json.dumps(STATUS if self.path == "/round" else [1]).encode())

    with served(on_any_port(Web)) as address:
        yield address


Look = Callable[..., list[Finding]]


@pytest.fixture
def look(make_setup: MakeSetup, web: str) -> Look:
    """Looks at the host of a run whose file may say something else."""

    def look(readings: list[Reading] | None = None, **changes: str) -> list[Finding]:
        run = {"name": "our-run", "recipe": "sparse", "exchange": web} | changes
        return services.look_at_exchange(make_setup(run=run), [] if readings is None else readings)

    return look


def test_a_host_that_answers_is_fine_and_nothing_else_is_needed(look: Look, web: str) -> None:
    readings: list[Reading] = []
    found = look(readings)
    (reading,) = readings
    assert reading.ahead == pytest.approx(time.time() - TIME, abs=60.0)
    assert {one.point for one in found} == {
        PointName.PORT,
        PointName.ENTRY_POINTS,
        PointName.REACHABILITY,
    }
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
