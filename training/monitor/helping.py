"""Averaging by the monitor for volunteers behind routers, who cannot call each other."""

ENOUGH = 2  # volunteers who can be called average without help


def is_needed(callers: int, reachable: int) -> bool:
    """True if it should, by how many volunteers only call and how many can be called."""
    return callers > 0 and reachable < ENOUGH


def describe(callers: int, reachable: int) -> str:
    """A sentence on how the volunteers reach each other; empty if all is normal."""
    if not is_needed(callers, reachable):
        return ""
    everybody = callers + reachable
    who = f"all {everybody} volunteers are" if not reachable else f"{callers} of {everybody} are"
    if everybody == 1:
        who = "the only volunteer is"
    return f"{who} behind routers: the organizers average for them"
