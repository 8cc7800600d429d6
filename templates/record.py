"""Record the results of the pages that take long: `python -m templates.record [NAME ...]`.

They are committed, in templates/recorded; a test says when that is due. A name is that of a file
there; without one, all are recorded.
"""

import sys
from typing import Any

from templates.pages.accuracy.peers import PEER_SCORES
from templates.pages.calculator.context import ANSWERS
from templates.pages.calculator.first import VERDICTS
from templates.pages.index.fit import FIT
from templates.pages.models_on_gpus.context import TABLES
from templates.pages.numbers.figures import MEMORY
from templates.pages.tutorial.context import FITTING
from templates.pieces.accuracy import MEASURED
from templates.pieces.comparisons import COMPARISONS, SCORES, Recorded, compute

# the ones with the longest items first
RECORDED: tuple[Recorded[Any, Any], ...] = (
    VERDICTS,
    MEMORY,
    FIT,
    *TABLES.values(),
    SCORES,
    MEASURED,
    PEER_SCORES,
    ANSWERS,
    FITTING,
)


if __name__ == "__main__":
    named = {one.name: one for one in RECORDED}
    chosen = sys.argv[1:] or [*named]
    if unknown := [name for name in chosen if name not in named]:
        sys.exit(f"templates.record: {unknown[0]}: must be one of {', '.join(named)}.")
    compute([each for each in COMPARISONS.values() if not each.path.is_file()])
    compute([named[name] for name in chosen])
