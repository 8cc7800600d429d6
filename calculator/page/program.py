"""The program that carries out the plan of a state, or the reason for there being none."""

from typing import Any, Final

from calculator import configuration
from calculator.errors import unknown_name
from calculator.page.states import CONFIG_NAME, Params, read_state, text_of
from calculator.plan import Plan
from calculator.program.origin import origin_at, origin_of
from calculator.program.refusal import NoProgramError
from calculator.program.write import Form, write_program

FORM: Final = "form"


def show_program(params: Params) -> dict[str, Any]:
    """The text of a program, else the reason for there being none; the other of them is empty.

    Raises:
        InputError: for a plan that the model does not support.
    """
    form = _form(params.get(FORM))
    params = {name: value for name, value in params.items() if name != FORM}
    architecture, plan, _ = read_state(params)
    if text := text_of(params, "config", ""):
        origin = origin_at(CONFIG_NAME, configuration.parse(text, CONFIG_NAME))
    else:
        origin = origin_of(architecture.name)
    try:
        return {"program": write_program(origin, plan, form), "reason": ""}
    except NoProgramError as error:
        return {"program": "", "reason": f"{_label(error.field)} {error.value}: {error.rule}."}


def _form(given: object) -> Form:
    if given in (None, ""):
        return Form.LOOP
    if given not in list(Form):
        raise unknown_name(FORM, given, Form)
    return Form(str(given))


def _label(field: str) -> str:
    options = Plan.options()
    return options[field].label if field in options else field.capitalize()
