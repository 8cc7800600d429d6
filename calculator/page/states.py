"""A state of the page's form: what it asks for, and how the page's address holds it."""

from collections.abc import Mapping
from typing import Final

from calculator.architecture import Architecture
from calculator.cards import card_of_size
from calculator.catalog import Gpu, find_gpu, find_model
from calculator.errors import InputError
from calculator.options import as_text
from calculator.plan import Plan
from calculator.presets import FIELD, beside, plan_with, preset_named, preset_of
from calculator.units import GiB

# of an address that names none
DEFAULT_MODEL: Final = "gpt2-l"
DEFAULT_GPU: Final = "t4"
CONFIG_NAME: Final = "config.json"
# of a whole training, see `planner.job`
JOB: Final = ("tokens", "rows", "epochs", "price_per_hour", "kilograms_per_kwh")
_NO_OPTIONS: Final = ("model", "config", "gpu", "gpu_memory", "pin", *JOB)

Params = Mapping[str, object]
State = tuple[Architecture, Plan, Gpu]


def text_of(params: Params, field: str, default: str) -> str:
    """A text of the question; absent and empty mean the default."""
    value = params.get(field)
    if value in (None, ""):
        return default
    if not isinstance(value, str):
        raise InputError(field, value, "must be text")
    return value


def read_state(params: Params) -> State:
    """The request in a state of the form."""
    architecture, gpu = architecture_of(params), gpu_of(params)
    return architecture, plan_of(architecture, gpu, params), gpu


def plan_of(architecture: Architecture, gpu: Gpu, params: Params) -> Plan:
    """The plan in a state of the form."""
    given = {name: value for name, value in params.items() if name not in _NO_OPTIONS}
    return plan_with(architecture, gpu, given)


def architecture_of(params: Params) -> Architecture:
    """The model of that name, or that of a config.json's text, which then has no name."""
    text = text_of(params, "config", "")
    if not text:
        return find_model(text_of(params, "model", DEFAULT_MODEL))
    from calculator import configuration  # few visitors give a config.json
    from calculator.hf_config import from_config

    try:
        return from_config(configuration.parse(text, "config.json"), CONFIG_NAME)
    except InputError as error:
        rule = error.rule.removeprefix("must be a config.json: ")
        field = "config.json" if error.field == "model" else f"{error.field} = {error.value}"
        raise InputError("config", field, rule) from None


def gpu_of(params: Params) -> Gpu:
    """The card of a state, by its name or its memory."""
    if params.get("gpu_memory") not in (None, ""):
        return _custom_gpu(params["gpu_memory"])
    return find_gpu(text_of(params, "gpu", DEFAULT_GPU))


def _custom_gpu(given: object) -> Gpu:
    try:
        memory = round(float(given) * GiB) if isinstance(given, str | int | float) else 0
    except (ValueError, OverflowError):
        memory = 0
    return card_of_size(memory, "gpu_memory", given, name="")


def chosen(architecture: Architecture, plan: Plan, params: Params) -> dict[str, str]:
    """The state as in the page's address: with what differs from the defaults, or the preset's."""
    found = {} if architecture.name == CONFIG_NAME else {"model": architecture.name}
    preset = preset_named(params.get(FIELD)) and preset_of(plan)
    given = beside(preset, architecture, plan, gpu_of(params))
    if preset is not None and given is not None:
        found[FIELD] = preset.value
    changed = plan.changed() if given is None else given
    found |= {name: as_text(value) for name, value in changed.items()}
    if params.get("gpu_memory") not in (None, ""):
        found["gpu_memory"] = str(params["gpu_memory"])
    elif params.get("gpu") not in (None, "", DEFAULT_GPU):
        found["gpu"] = str(params["gpu"])
    if params.get("pin"):
        found["pin"] = str(params["pin"])
    return {**found, **job_of(params)}


def job_of(params: Params) -> dict[str, str]:
    """The fields of a state that describe a whole training."""
    return {name: str(params[name]) for name in JOB if params.get(name) not in (None, "")}


def with_gpu(params: Params, gpu: Gpu) -> Params:
    """The question with another GPU of the catalog; one that is given by its memory stays."""
    return {**params, "gpu": gpu.name, "gpu_memory": None} if gpu.name else params
