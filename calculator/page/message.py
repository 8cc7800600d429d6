"""An out-of-memory message beside the plan of the form."""

from typing import Any
from urllib.parse import urlencode

from calculator.page.states import Params, chosen, read_state, text_of
from calculator.planner.need import judged
from calculator.planner.out_of_memory import FIELD, Cause, explain, read_message, sizes_of
from calculator.units import GiB, format_bytes

# causes after which the advice above is what helps
ASKS_FOR_ADVICE = (Cause.TOO_LARGE,)


def explain_message(params: Params) -> dict[str, Any]:
    """A pasted message's figures, and their meaning for the state's plan.

    Raises:
        InputError: for a text that is no such message, about the field ``message``.
    """
    state = {name: value for name, value in params.items() if name != FIELD}
    architecture, plan, gpu = read_state(state)
    message = read_message(text_of(params, FIELD, ""))
    report = judged(architecture, plan)
    card = {**state, "gpu_memory": f"{message.capacity / GiB:.2f}"}
    return {
        "rows": [
            {"label": label, "text": format_bytes(size)}
            for label, size in sizes_of(message).items()
        ],
        "plan": {"label": "Peak of the plan", "text": format_bytes(report.gpu.total)},
        "findings": [
            {
                "cause": finding.cause.value,
                "title": finding.title,
                "words": finding.words,
                "remedy": finding.remedy,
                "advice": finding.cause in ASKS_FOR_ADVICE,
                "query": urlencode(chosen(architecture, plan, card))
                if finding.cause is Cause.OTHER_CARD
                else None,
            }
            for finding in explain(message, report, gpu)
        ],
    }
