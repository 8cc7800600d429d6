import io
import threading

import pytest

from training.run import patience


def test_long_work_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "NEWS_SECONDS", 0.01)
    said = io.StringIO()
    with patience.told("loading", said):
        while said.getvalue().count("\n") < 3:
            threading.Event().wait(0.005)
    ended = said.getvalue()
    assert ended.splitlines()[:2] == ["loading", "loading: 0 s so far"]
    threading.Event().wait(0.05)
    assert said.getvalue() == ended
