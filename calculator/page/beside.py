"""The second column: a state that the visitor pinned, to compare with the one shown."""

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode

from calculator.architecture import Architecture
from calculator.errors import InputError
from calculator.options import as_text
from calculator.page.states import (
    CONFIG_NAME,
    Params,
    State,
    chosen,
    read_state,
    text_of,
)
from calculator.plan import Plan
from calculator.resolution import resolve
from calculator.units import format_bytes


def pin(architecture: Architecture, plan: Plan, params: Params) -> str:
    """A state as the address of another one holds it, to compare; never empty."""
    found = chosen(architecture, plan, {**params, "pin": None})
    return urlencode({"model": architecture.name, **found})


def pinned(params: Params) -> State | None:
    """The state to compare with, where one is pinned.

    A pinned config.json is the one that the question has.

    Raises:
        InputError: about the field ``pin``, for a state that cannot be.
    """
    text = text_of(params, "pin", "")
    if not text:
        return None
    asked: dict[str, object] = dict(parse_qsl(text))
    if asked.get("model") == CONFIG_NAME and params.get("config"):
        asked = {**asked, "model": None, "config": params["config"]}
    try:
        architecture, plan, gpu = read_state(asked)
        resolve(architecture, plan)
    except InputError as error:
        raise InputError("pin", text, f"must be a state that can be shown: {error}") from None
    return architecture, plan, gpu


def describe_beside(shown: State, other: State | None) -> dict[str, str]:
    """The contents of the second column, and its differences from the first."""
    if other is None:
        return {"title": "Without techniques", "words": ""}
    differences = [
        f"{label} {then} (now {now})"
        for (label, now), (_, then) in zip(_described(shown), _described(other), strict=True)
        if now != then
    ]
    same = "the same as now. Change something to compare"
    return {"title": "Pinned", "words": f"Pinned: {'; '.join(differences) or same}."}


def _described(state: State) -> Iterator[tuple[str, str]]:
    """Every choice of a state by its label."""
    architecture, plan, gpu = state
    yield "model", architecture.title
    yield "GPU", gpu.title if gpu.name else format_bytes(gpu.memory)
    for name, option in Plan.options().items():
        value = getattr(plan, name)
        label = option.label[0].lower() + option.label[1:]
        yield label, "none" if value is None else as_text(value)
