"""The planner's answers as the terminal shows them: in words, each figure with its unit."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from calculator.units import (
    format_count,
    format_energy,
    format_mass,
    format_seconds,
    format_traffic,
)

DAY: Final = 86_400
FIRST: Final = ("model", "days", "computing_share")  # lines that most people read


def _share(number: float) -> str:
    return f"{100 * number:.3g}%"


def _figure(number: float) -> str:
    return f"{number:.3g}"


def _whole(number: float) -> str:
    return f"{number:,.0f}"


def _of_traffic(factor: float = 1) -> Callable[[float], str]:
    return lambda size: format_traffic(factor * size)


# the words for each key of `--json`, and the text of its value
WORDS: Final[dict[str, tuple[str, Callable[[Any], str]]]] = {
    "model": ("Model", str),
    "parameters_computed": ("Parameters used per token", format_count),
    "parameters_exchanged": ("Parameters exchanged", format_count),
    "flops_per_token": ("FLOPs per token", _figure),
    "flops": ("FLOPs of the run", _figure),
    "tokens_per_second": ("Tokens per second, all volunteers together", _whole),
    "model_utilization": ("Utilization of the model (MFU)", _share),
    "hardware_utilization": ("Utilization of the hardware (HFU)", _share),
    "online": ("Volunteers online on average", format_count),
    "message_bytes": ("Gradients of one volunteer", _of_traffic()),
    "sent_bytes": ("Sent in one exchange", _of_traffic()),
    "received_bytes": ("Received in one exchange", _of_traffic()),
    "exchanges": ("Exchanges in the run", _whole),
    "computing_seconds": ("Computing between two exchanges", format_seconds),
    "exchange_seconds": ("Time of an exchange", format_seconds),
    "computing_share": ("Share of the time computing", _share),
    "sent_bytes_per_day": ("Sent in a day", _of_traffic()),
    "gigabytes_sent_a_day": ("Sent by a volunteer in a day", _of_traffic(1e9)),
    "gigabytes_received_a_day": ("Received by a volunteer in a day", _of_traffic(1e9)),
    "days": ("Time of the run", lambda days: format_seconds(DAY * days)),
    "gpu_hours": ("GPU hours", _whole),
    "megawatt_hours": ("Energy", lambda used: format_energy(used) if used else "no power given"),
    "carbon_tonnes": ("CO2", lambda mass: format_mass(mass) if mass else "no power given"),
    "dollars": ("Money", lambda sum_: f"${sum_:,.0f}" if sum_ else "no price given"),
    "chance_of_a_quiet_day": ("Chance that no GPU is interrupted within a day", _share),
    "tokens_per_parameter": ("Tokens per parameter", _figure),
    "fewest_optimal_parameters": ("Compute-optimal parameters, at least", format_count),
    "most_optimal_parameters": ("Compute-optimal parameters, at most", format_count),
    "parameters_at_20_tokens_each": ("Parameters, at 20 tokens for each", format_count),
    "tokens_at_20_tokens_each": ("Tokens, at 20 for each parameter", format_count),
    "fewest_parameters": ("Compute-optimal parameters, at least", format_count),
    "most_parameters": ("Compute-optimal parameters, at most", format_count),
    "pile_loss_by_cerebras_gpt": ("Loss on the Pile by Cerebras-GPT's law", _figure),
}


def in_words(answer: Mapping[str, Any]) -> Iterator[str]:
    """A line for each figure of an answer, the one most asked for on top."""
    width = max(len(WORDS[key][0]) for key in answer)
    for key in sorted(answer, key=lambda key: key not in FIRST):
        words, text = WORDS[key]
        yield f"{words:<{width}}  {text(answer[key])}"
