"""All results that pages keep, computed at once: `python -m templates.ahead`.

The build starts it first, so that it uses the cores which Node.js leaves idle, and no core waits
for the last item of a page.
"""

from templates.pages.calculator.context import ANSWERS
from templates.pages.calculator.first import VERDICTS
from templates.pages.index.fit import FIT
from templates.pages.models_on_gpus.context import TABLES
from templates.pages.numbers.figures import MEMORY
from templates.pages.tutorial.context import FITTING
from templates.pieces.comparisons import COMPARISONS, SCORES, compute

# the ones with the longest items first
ALL = (VERDICTS, MEMORY, FIT, *TABLES.values(), SCORES, ANSWERS, FITTING, *COMPARISONS.values())


if __name__ == "__main__":
    compute([each for each in ALL if not each.path.is_file()])
