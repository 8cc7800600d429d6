"""Words of other libraries where people type them: options, and values that name several."""

from collections.abc import Mapping
from typing import Any, Final

from calculator.errors import InputError
from calculator.optimizers.registry import names_elsewhere
from calculator.options import WORDS


def _said(what: str) -> Mapping[str, Any]:
    """Entries of `words.json` for options, by their names."""
    return {name: words[what] for name, words in WORDS["options"].items() if what in words}


# other flags of an option: of transformers' TrainingArguments and from_pretrained, TRL, peft,
# LLaMA-Factory and axolotl
FLAGS: Final = _said("flags")
# what a value of another library stands for, by the option that it is given to; optimizers say it
# themselves
VALUES: Final = _said("stands_for")
# values that nothing here stands for, and what to choose
OTHERS: Final = _said("not_counted")


def flags_of(field: str) -> list[str]:
    """Other flags of an option, with hyphens and as Python's names.

    >>> flags_of("optimizer"), flags_of("lora")
    (['--optim'], ['--lora-r', '--lora_r', '--lora-rank', '--lora_rank'])
    """
    names = FLAGS.get(field, ())
    spelled = (f"--{name}" for found in names for name in (found.replace("_", "-"), found))
    return list(dict.fromkeys(spelled))


def in_our_words(given: Mapping[str, object]) -> dict[str, object]:
    """The options with every value of another library replaced; what is given beside it stays.

    >>> in_our_words({"optimizer": "paged_adamw_8bit", "batch_size": 4})
    {'optimizer': 'adam', 'optimizer_bits': 8, 'paged_optimizer': True, 'batch_size': 4}

    Raises:
        InputError: for a value that stands for nothing here; it says what to choose.
    """
    found = dict(given)
    for field in (VALUES.keys() | OTHERS.keys()) & given.keys():
        value = str(given[field]).strip().lower()
        if rule := OTHERS.get(field, {}).get(value):
            raise InputError(field, given[field], rule)
        values = names_elsewhere() if field == "optimizer" else VALUES.get(field, {})
        if stands_for := values.get(value):
            others = {name: item for name, item in found.items() if name != field}
            found = {**stands_for, **others}
    return found
