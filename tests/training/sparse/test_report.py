"""training/sparse/report: what volunteers say about themselves, in files that anybody may write."""

from dataclasses import replace
from typing import Any

import pytest
from hivemind.utils.crypto import RSAPrivateKey

from training.access import envelope
from training.access.envelope import FileError
from training.sparse import report
from training.sparse.report import Report

REPORT = Report("alice", "training", 1000.0, 1060.5, 7, 2.5, 10, 20, {"connect": 1.5})


def test_a_report_is_read_as_written(keys: list[RSAPrivateKey], identities: list[str]) -> None:
    content = report.write("our-run", REPORT, keys[1])
    assert len(content) < report.MOST_BYTES
    assert report.read(content, "our-run", now=1100.0) == (identities[1], REPORT)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a\x1b[2J"),
        ("name", ""),
        ("state", "resting"),
        ("session", -1.0),
        ("session", "1000.0"),
        ("number", 1.5),
        ("number", -1),
        ("loss", "low"),
        ("bytes_sent", 2**50),
        ("milestones", {"moon": 1.0}),
        ("milestones", {"connect": "soon"}),
        ("milestones", ["connect"]),
        ("time", 10_000.0),
    ],
)
def test_fields_are_checked(keys: list[RSAPrivateKey], field: str, value: Any) -> None:
    content = report.write("our-run", replace(REPORT, **{field: value}), keys[1])
    with pytest.raises(FileError, match="at another time" if field == "time" else f"its {field}"):
        report.read(content, "our-run", now=1100.0)


def test_a_report_of_another_run_or_kind_is_refused(keys: list[RSAPrivateKey]) -> None:
    for other, words in (
        (report.write("their-run", REPORT, keys[1]), "another run"),
        (envelope.seal("payload", {}, b"", keys[1]), "not a report"),
        (envelope.seal("report", {"run": "our-run"}, b"", keys[1]), "other fields"),
    ):
        with pytest.raises(FileError, match=words):
            report.read(other, "our-run", now=1100.0)
