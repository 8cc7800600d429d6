"""A volunteer's advice after a step that failed."""

from types import SimpleNamespace
from typing import Any

import pytest

from training.volunteer import peer
from training.volunteer.peer import Volunteer


@pytest.mark.parametrize(
    ("load", "advice"), [(13.5, "14 tasks want each of its cores"), (1.0, "run the doctor")]
)
def test_a_busy_machine_is_named_where_the_doctor_would_find_nothing(
    monkeypatch: pytest.MonkeyPatch, load: float, advice: str
) -> None:
    monkeypatch.setattr(peer, "_load_per_core", lambda: load)
    said: list[str] = []
    volunteer: Any = SimpleNamespace(
        board=SimpleNamespace(say=said.append),
        optimizer=SimpleNamespace(
            local_progress=SimpleNamespace(samples_accumulated=1),
            tracker=SimpleNamespace(reachable=True),
        ),
        network=SimpleNamespace(dht=SimpleNamespace(client_mode=False)),
    )
    Volunteer._explain_failure(volunteer, "no group of volunteers was found")
    assert len(said) == 1
    assert said[0].startswith("the step failed: no group of volunteers was found. Trying again; ")
    assert advice in said[0]
