"""`python -m training.run.health FOLDER`: whether a peer in the user's state folder is alive.

For whoever watches over a container: a peer writes its status every few seconds, so one that is
two minutes old is of a peer that hangs or is gone. Exits with 0 or 1 and says which.
"""

import json
import sys
import time
from pathlib import Path

OLDEST_SECONDS = 120.0


def main(arguments: list[str]) -> int:
    """Look for the newest status; the folder is what `XDG_STATE_HOME` names."""
    if len(arguments) != 1:
        print("usage: python -m training.run.health FOLDER", file=sys.stderr)
        return 2
    age = newest_age(Path(arguments[0]))
    if age is None:
        print("no peer has started yet")
        return 1
    print(f"newest status: {age:.0f} s old")
    return 0 if age <= OLDEST_SECONDS else 1


def newest_age(folder: Path) -> float | None:
    """Seconds since a peer of any run told its status; None where none ever did."""
    told = [
        _time_of(path) for path in folder.glob("training-transformers-together/*/*/status.json")
    ]
    return time.time() - max(told) if told else None


def _time_of(path: Path) -> float:
    try:
        return float(json.loads(path.read_text())["time"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
