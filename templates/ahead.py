"""All results that take long, computed at once: `python -m templates.ahead [--record]`.

Without an option those that pages keep: the build starts it first, so that it uses the cores which
Node.js leaves idle, and no core waits for the last item of a page. With `--record` those that are
committed, in templates/recorded; a test says when that is due.
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

KEPT = (MEMORY,)
# the ones with the longest items first
RECORDED: tuple[Recorded[Any, Any], ...] = (
    VERDICTS,
    FIT,
    *TABLES.values(),
    SCORES,
    MEASURED,
    PEER_SCORES,
    ANSWERS,
    FITTING,
)
RECORD = "--record"


if __name__ == "__main__":
    if RECORD in sys.argv[1:]:
        compute([each for each in COMPARISONS.values() if not each.path.is_file()])
        compute(RECORDED)
    else:
        compute([each for each in KEPT if not each.path.is_file()])
