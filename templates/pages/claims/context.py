"""Data for 'Claims we checked': published figures and ours."""

from validation.claims.claim import Outcome, outcomes
from validation.claims.computing import SURVEY
from validation.claims.everything import GROUPS


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    groups = {title: list(topics()) for title, topics in GROUPS.items()}
    found = outcomes(topic for topics in groups.values() for topic in topics)
    return {
        "groups": groups,
        "total": found.total(),
        "counts": {outcome: found[outcome] for outcome in Outcome if found[outcome]},
        "runs": len(SURVEY),
        "impossible": sum(run.share is None for run in SURVEY),
    }
