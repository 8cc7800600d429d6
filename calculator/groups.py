"""The options of `Plan` in groups, and the names that other libraries have for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from calculator.options import WORDS, Option


@dataclass(frozen=True, slots=True)
class Group:
    """Options that belong together, under a title."""

    title: str
    fields: tuple[str, ...]


GROUPS: Final = tuple(Group(title, tuple(named)) for title, named in WORDS["groups"].items())
OTHERS: Final = "More options"

# What other libraries call an option: their argument, class or function. Those of transformers are
# arguments of `TrainingArguments` where nothing else is said, those of peft of `LoraConfig`, those
# of DeepSpeed keys of its configuration.
ELSEWHERE: Final[Mapping[str, Mapping[str, str]]] = {
    field: words["elsewhere"] for field, words in WORDS["options"].items() if "elsewhere" in words
}


def grouped(options: Mapping[str, Option]) -> Iterator[tuple[str, list[Option]]]:
    """The titles and options of all groups; options of none come last."""
    known = {field for group in GROUPS for field in group.fields}
    others = Group(OTHERS, tuple(field for field in options if field not in known))
    for group in (*GROUPS, others):
        found = [options[field] for field in group.fields if field in options]
        if found:
            yield group.title, found


def names_elsewhere(field: str) -> str:
    """The names of an option in other libraries, in one phrase; empty where they have none.

    >>> names_elsewhere("lora")
    'peft: r'
    """
    return "; ".join(f"{library}: {name}" for library, name in ELSEWHERE.get(field, {}).items())
