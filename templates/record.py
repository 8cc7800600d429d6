"""Record all results of the pages that take long: `python -m templates.record`.

They are committed, in templates/recorded; a test says when that is due.
"""

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
    compute([each for each in COMPARISONS.values() if not each.path.is_file()])
    compute(RECORDED)
