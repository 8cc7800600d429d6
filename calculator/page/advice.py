"""The adviser's words for one state of the form, as far as they are known."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from calculator.architecture import Architecture
from calculator.catalog import Gpu
from calculator.page.states import Params, chosen, read_state, with_gpu
from calculator.plan import Plan

if TYPE_CHECKING:
    from calculator.planner.advice import Adviser

# a search pauses after so long, so that the figures of a newer state come first
SEARCH_SECONDS: Final = 0.03


def advise(params: Params) -> dict[str, Any]:
    """Changes that would make the state fit, or other things that fit, as far as known.

    Until it is `done`, the same question goes on with the search. Each way has the state that it
    leads to, as the page's address holds it, or None where there is nothing to do.
    """
    architecture, plan, gpu = read_state(params)
    advice = _adviser(architecture, plan, gpu).go_on(SEARCH_SECONDS)
    return {
        "title": advice.title,
        "note": advice.note,
        "done": advice.done,
        "largest": dict(advice.largest),
        "ways": [
            {
                "words": way.words,
                "need": way.need,
                "details": way.details,
                "query": None
                if way.plan is None
                else urlencode(chosen(architecture, way.plan, with_gpu(params, way.gpu))),
            }
            for way in advice.ways
        ],
    }


@lru_cache(maxsize=2)
def _adviser(architecture: Architecture, plan: Plan, gpu: Gpu) -> "Adviser":
    """The search for one state, kept while the page asks for more of it."""
    from calculator.planner.advice import Adviser  # the figures come first

    return Adviser(architecture, plan, gpu)
