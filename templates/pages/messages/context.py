"""Data for 'Messages of join and doctor': each message with its meaning and what to do."""

from templates.pages.messages.messages import EXPECTED, SERIOUS, STAGES
from training.access.causes import EXPLANATIONS
from training.doctor.findings import POINTS


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    return {
        "stages": [[stage.value, words] for stage, words in STAGES.items()],
        "expected": [message.cells for message in EXPECTED],
        "serious": [message.cells for message in SERIOUS],
        "points": [[point.title, point.question, point.reason] for point in POINTS.values()],
        "causes": [[entry.meaning, entry.fix] for entry in EXPLANATIONS.values()],
    }
