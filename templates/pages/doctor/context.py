"""Data for 'The doctor's checks': each with its question and the reason for it."""

from training.doctor.findings import POINTS


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    return {
        "points": [[point.title, point.question, point.reason] for point in POINTS.values()],
    }
