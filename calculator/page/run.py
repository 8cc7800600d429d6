"""A run as the planner's page shows it: figures, speed-ups, every assumption, and its address."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from calculator.cards import CARDS
from calculator.catalog import SOURCES
from calculator.command import option_words
from calculator.options import as_text
from calculator.page.states import Params, text_of
from calculator.planner.compute import Recomputation
from calculator.planner.forecast import Forecast, SpeedUp, forecast, speed_ups
from calculator.planner.presets import PRESETS
from calculator.planner.run import Compression, Run
from calculator.planner.scale import cerebras_loss
from calculator.planner.subject import Subject
from calculator.planner.utilization import DIGITS
from calculator.units import (
    format_count,
    format_energy,
    format_mass,
    format_seconds,
    format_traffic,
)

DEFAULT_MODEL: Final = "gpt2-l"
UNKNOWN: Final = "unknown (no power given)"
NONE: Final = "none"
OTHER: Final = "other"  # a model that is not on the list
# options that mean something only beside another one's value
_OF_OTHER_MODEL: Final = ("parameters", "layers", "width")
_OF_SPARSE: Final = ("kept", "block", "value_bits")
_RAISED: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_SOURCES: Final = (
    "together", "hivemind", "rfc6928", "llm-foundry", "nvidia", "llama", "llama3", "chinchilla",
    "besiroglu", "cerebras-gpt",
)  # fmt: skip


def plan_run(params: Params) -> dict[str, Any]:
    """The planner's answer to a state of its form.

    Args:
        params: `model`, a name of the catalog or "other", and options of `Run`.

    Raises:
        InputError: for a model or an option that no run can have.
    """
    model = text_of(params, "model", DEFAULT_MODEL)
    run = Run.parse({name: value for name, value in params.items() if name != "model"})
    name = "" if model == OTHER else model
    found = forecast(name, run)
    first, ups = speed_ups(name, run)
    return {
        "query": query_of(model, run),
        "command": command_of(name, run),
        "values": {"model": model, **_values(found)},
        "left_out": list(_left_out(model, run, found.subject)),
        "figures": dict(_figures(found)) | {"slowdown": _slowdown(first, found)},
        "kinds": list(_kinds(found)),
        "computing": found.rhythm.computing_share,
        "stairs": list(_stairs(model, first, ups)),
        "assumptions": list(_assumptions(model, found)),
        "sources": [_source(key) for key in _sources(run)],
    }


def query_of(model: str, run: Run) -> str:
    """The values that differ from the defaults, as in the page's address."""
    named = {} if model == DEFAULT_MODEL else {"model": model}
    return urlencode(named | {name: _number(value) for name, value in run.changed().items()})


def command_of(name: str, run: Run) -> str:
    """The command that prints the same figures."""
    words = ["python", "-m", "calculator", "plan", *([name] if name else [])]
    changed = {
        name: _number(value) if isinstance(value, float) else value
        for name, value in run.changed().items()
    }
    return shlex.join([*words, *option_words(Run.options(), changed)])


def presets() -> list[dict[str, str]]:
    """Runs to begin with: title, address, and what of them is printed where."""
    return [
        {
            "title": preset.title,
            "query": query_of(preset.model or OTHER, preset.run),
            "source": preset.source,
            "words": f"{preset.published} {preset.assumed}",
        }
        for preset in PRESETS.values()
    ]


def _values(found: Forecast) -> dict[str, str]:
    """The value of each control: the choice, else the model's, the card's or the clock's."""
    run, subject = found.run, found.subject
    card = CARDS.get(run.gpu)
    own: dict[str, object] = {
        "parameters": subject.computed,
        "layers": subject.layers,
        "width": subject.width,
        "sequence_length": subject.sequence_length,
        "sharing_groups": subject.groups or "",
        "more_gpus": "",
        "teraflops": card.teraflops if card else "",
        "watts": run.gpu_watts,
        "utilization": round(100 * found.utilizations[0], DIGITS),
    }
    values = {name: getattr(run, name) for name in Run.options()}
    return {name: _number(own[name] if value is None else value) for name, value in values.items()}


def _number(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else as_text(value)


def _left_out(model: str, run: Run, subject: Subject) -> Iterator[str]:
    """Options without a meaning in this run."""
    if model != OTHER:
        yield from _OF_OTHER_MODEL
    if not subject.shared:
        yield "sharing_groups"
    if run.gpu != OTHER:
        yield "teraflops"
    if run.compression is not Compression.LOW_RANK:
        yield "rank"
    if run.compression is not Compression.SPARSE:
        yield from _OF_SPARSE


def _figures(found: Forecast) -> Iterator[tuple[str, str]]:
    run, subject, rhythm, cost = found.run, found.subject, found.rhythm, found.cost
    sent, received = found.gigabytes_a_day
    tokens = run.billion_tokens * 1e9
    fewest, most = found.optimum.parameters
    computing, exchange = rhythm.computing_seconds, rhythm.exchange_seconds
    time = format_seconds(found.seconds)
    people = "one volunteer" if run.everyone == 1 else f"{format_count(run.everyone)} volunteers"
    yield "subject", f"{subject.title}, {run.billion_tokens:,.6g} billion tokens, {people}"
    yield "time", time
    yield "share", f"{rhythm.computing_share:.0%}"
    yield "sum", _sum(found)
    yield "summary", f"{time}; {rhythm.computing_share:.0%} of it computing."
    yield "parameters", format_count(subject.computed)
    yield "exchanged", format_count(subject.exchanged)
    yield "flops_per_token", _power(found.work.model)
    yield "flops", _power(found.flops)
    yield "tokens_per_second", f"{found.tokens_per_second:,.0f}"
    yield "model_utilization", f"{100 * found.utilization:.3g}%"
    yield "hardware_utilization", f"{100 * found.hardware_utilization:.3g}%"
    yield "gpu_hours", f"{cost.gpu_hours:,.0f}"
    powered = all(kind.watts for kind in run.kinds)
    yield "energy", format_energy(cost.megawatt_hours) if powered else UNKNOWN
    yield "carbon", format_mass(cost.carbon_tonnes) if powered else UNKNOWN
    yield "money", f"${cost.dollars:,.0f}" if cost.dollars else "$0 (no price given)"
    yield "quiet", f"{found.chance_of_a_quiet_day:.1%}"
    yield "online", format_count(run.online)
    yield "message", format_traffic(found.message)
    yield "bits", f"{8 * found.message / subject.exchanged:.3g}"
    yield "sent", format_traffic(found.load.sent)
    yield "received", format_traffic(found.load.received)
    yield "computing", format_seconds(computing)
    yield "exchange", format_seconds(exchange)
    yield "exchanges", f"{found.exchanges:,.0f}"
    yield "sent_a_day", format_traffic(sent * 1e9)
    yield "received_a_day", format_traffic(received * 1e9)
    yield "ratio", f"{tokens / subject.computed:.3g}"
    yield "ratio_words", _ratio(tokens / subject.computed)
    yield "optimal_parameters", f"{_count(fewest)} to {_count(most)}"
    spent = found.optimum.flops / 6
    yield "optimal_tokens", f"{_count(spent / most)} to {_count(spent / fewest)}"
    yield "loss", f"{cerebras_loss(found.optimum.flops):.2f}"


def _sum(found: Forecast) -> str:
    """A sentence on exchange and computing."""
    run, rhythm = found.run, found.rhythm
    computing, exchange = (
        format_seconds(seconds) for seconds in (rhythm.computing_seconds, rhythm.exchange_seconds)
    )
    steps = f"{run.local_steps} steps take" if run.local_steps > 1 else "a step takes"
    if run.online == 1:
        return f"With one volunteer online, {steps} {computing} to compute. Nothing is exchanged."
    begin = f"With {format_count(run.online)} volunteers online, {steps} {computing} to compute"
    rest = "at the same time" if run.overlap else "one after the other"
    return f"{begin} and {exchange} to exchange, {rest}."


def _slowdown(first: Forecast, found: Forecast) -> str:
    times = first.seconds / found.seconds
    return f"{times:,.0f}" if times >= 100 else f"{times:.3g}"


def _ratio(ratio: float) -> str:
    if ratio < 10:
        return "fewer than the 20 that published fits advise"
    if ratio > 40:
        return "more than the 20 that published fits advise, as is common for heavily used models"
    return "near the 20 that published fits advise"


def _kinds(found: Forecast) -> Iterator[list[str]]:
    """A row for each kind of GPU: its name, who has it, its share of the work, and its energy."""
    for kind, share, energy in found.by_kind:
        used = format_energy(energy) if kind.watts else UNKNOWN
        yield [kind.title, format_count(kind.volunteers), f"{share:.0%}", used]


def _power(number: float) -> str:
    mantissa, exponent = f"{number:.2e}".split("e")
    return f"{mantissa} \N{MULTIPLICATION SIGN} 10{str(int(exponent)).translate(_RAISED)}"


def _count(number: float) -> str:
    for scale, words in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= scale:
            return f"{number / scale:.3g} {words}"
    return f"{number:,.0f}"


def _stairs(model: str, first: Forecast, ups: list[SpeedUp]) -> Iterator[dict[str, Any]]:
    """The run without speed-ups, and after each: where it is drawn, and what switches it."""
    yield {"field": "plain", "on": True, "query": "", **_drawn(first, first)}
    for up in ups:
        yield {
            "field": up.field,
            "on": up.is_on,
            "query": query_of(model, up.toggled),
            **_drawn(up.after, first),
        }


def _drawn(found: Forecast, first: Forecast) -> dict[str, Any]:
    """A bar's two parts, as shares of the longest."""
    part = found.seconds / first.seconds
    share = found.rhythm.computing_share
    return {
        "computing": part * share,
        "waiting": part * (1 - share),
        "time": format_seconds(found.seconds),
    }


def _assumptions(model: str, found: Forecast) -> Iterator[list[str]]:
    """Every choice with its value, and who made it."""
    run, subject = found.run, found.subject
    left_out, values = set(_left_out(model, run, subject)), _values(found)
    changed = run.changed()
    yield ["Model", subject.title, "chosen" if model != DEFAULT_MODEL else "default"]
    for name, option in Run.options().items():
        if name not in left_out:
            words = option.in_words(values[name]) or NONE
            yield [option.label, words, "chosen" if name in changed else "default"]


def _sources(run: Run) -> Iterator[str]:
    yield from _SOURCES
    if run.compression is Compression.SPARSE:
        yield from ("sparseloco", "covenant")
    if run.compression is Compression.LOW_RANK:
        yield "powersgd"
    if run.local_steps > 1:
        yield "diloco"
    if run.recomputation is not Recomputation.NONE:
        yield "checkpointing"


def _source(key: str) -> Mapping[str, str]:
    return {"title": SOURCES[key].title, "address": SOURCES[key].address}
