"""The way out of a refusal: the nearest plan that is answered, as the options that change.

The nearest plan has another value of the refused option; the next one changes one other option; the
next one omits the refused option; the last one does both. Batch, length, task and precision change
only where nothing else helps, or where they were refused.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Final

from calculator.architecture import Architecture
from calculator.command import option_words
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.laws import RefusedError
from calculator.options import Option
from calculator.plan import Plan
from calculator.resolution import resolve
from calculator.units import format_count

FARTHEST: Final = 64  # from a refused number, others are tried up to so far away
# what the user trains, not how: left as it is if anything else helps
_SUBJECT: Final = ("batch_size", "sequence_length", "target_length", "task", "labels", "precision")
Changes = Mapping[str, object]


class WayOutError(InputError):
    """A refusal with its way out.

    Attributes:
        changes: the options of the nearest plan that is answered, by their fields; None omits an
            option.
        link: the same for a page: in words, and its address there.
    """

    def __init__(self, error: InputError, changes: Changes) -> None:
        super().__init__(error.field, error.value, error.rule)
        self.changes = changes
        self.link: dict[str, str] = {}


@contextmanager
def offering(architecture: Architecture, plan: Plan) -> Iterator[None]:
    """Add the way out to a refusal of this plan.

    Raises:
        WayOutError: for an option of the plan that was refused, if a plan near to it is answered.
    """
    try:
        yield
    except InputError as error:
        changes = way_out(architecture, plan, error)
        if not changes:
            raise
        raise WayOutError(error, changes) from error


def way_out(architecture: Architecture, plan: Plan, error: InputError) -> Changes:
    """The options that change from a plan, one of which was refused, to the nearest answered one.

    Empty where none is near, or what was refused is no option of plans.
    """
    if error.field not in Plan.options():
        return {}
    said = _said(error)
    for changes in chain([said] if said else [], _candidates(plan, error.field)):
        found = _answered(architecture, plan.but(**changes))
        if isinstance(found, Plan):
            return _told(plan, found, changes)
    return _step_by_step(architecture, plan, error)


def _said(error: InputError) -> Changes:
    """Changes that the refusal itself names."""
    return error.out if isinstance(error, RefusedError) else {}


def _answered(architecture: Architecture, plan: Plan) -> Plan | InputError:
    """The plan filled in, or why it is refused."""
    try:
        estimate(architecture, plan)
        return resolve(architecture, plan)
    except InputError as error:
        return error


def _step_by_step(architecture: Architecture, plan: Plan, error: InputError) -> Changes:
    """Omit one refused option after the other, of a plan that breaks several rules."""
    changes: dict[str, object] = {}
    while error.field in Plan.options() and error.field not in changes:
        said = {n: each for n, each in _said(error).items() if n not in changes}
        changes |= said or {error.field: _default(Plan.options()[error.field])}
        found = _answered(architecture, plan.but(**changes))
        if isinstance(found, Plan):
            return _told(plan, found, changes)
        error = found
    return {}


def _told(plan: Plan, found: Plan, changes: Changes) -> Changes:
    """The changes with the values that the plan gets, without those that it has already."""
    return {name: getattr(found, name) for name in changes if changes[name] != getattr(plan, name)}


def as_command(changes: Changes) -> str:
    """The changes as words to end the command with.

    >>> as_command({"attention": "sdpa", "lora_modules": None})
    'try --attention sdpa, without --lora-modules'
    """
    options = Plan.options()
    given = {name: value for name, value in changes.items() if value is not None}
    omitted = [f"without {options[name].flag}" for name in changes if name not in given]
    words = " ".join(option_words(options, given))
    return f"try {', '.join([*([words] if words else []), *omitted])}"


def described(changes: Changes) -> str:
    """The changes in the words of a form.

    >>> described({"attention": "sdpa", "lora_modules": None})
    'Set Attention to sdpa, omit LoRA whole modules'
    """
    labels = {name: Plan.options()[name].label for name in changes}
    words = ", ".join(
        f"omit {labels[name]}"
        if value is None
        else f"set {labels[name]} to {value_in_words(value)}"
        for name, value in changes.items()
    )
    return words[:1].upper() + words[1:]


def value_in_words(value: object) -> str:
    """A value as a reader sees it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return format_count(value) if isinstance(value, int) else str(value)


def _candidates(plan: Plan, field: str) -> Iterator[Changes]:
    """Changes of a plan, the nearest first."""
    options = Plan.options()
    changed = [name for name in plan.changed() if name != field]
    others = sorted(changed, key=_SUBJECT.__contains__)
    off = {field: _default(options[field])}
    yield from _others(plan, options[field])
    for name in others:
        if name not in _SUBJECT:
            yield from chain(_others(plan, options[name]), [{name: _default(options[name])}])
    yield off
    for name in others:
        yield {**off, name: _default(options[name])}


def _others(plan: Plan, option: Option) -> Iterator[Changes]:
    """Other values of an option that still use it, near ones first."""
    value, default = getattr(plan, option.field), _default(option)
    if option.kind == "choice":
        off = default if option.technique else None
        found = [other for other, _ in option.values if other not in (value, off)]
        found.sort(key=lambda other: other != default)
    elif option.kind == "integer" and value is not None:
        both = chain.from_iterable((value - n, value + n) for n in range(1, FARTHEST))
        found = [n for n in both if option.minimum <= n <= option.maximum and n != default]
    else:
        found = [default] if option.kind == "names" else []
    for other in found:
        yield {option.field: other}


def _default(option: Option) -> object:
    return getattr(Plan(), option.field)
