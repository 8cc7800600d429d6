"""The formats, and which of them a file has."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from calculator.doors import (
    accelerate,
    axolotl,
    deepspeed,
    llamafactory,
    swift,
    torchtitan,
    torchtune,
    trainer,
)
from calculator.doors.file import FIELD, File
from calculator.doors.table import Reading, Table, in_words, read_keys
from calculator.errors import InputError
from calculator.wrong_files import describe_file

# in this order: a file of the first may have keys of a later one
TABLES: Final = (
    torchtitan.TABLE,
    torchtune.TABLE,
    accelerate.TABLE,
    deepspeed.TABLE,
    axolotl.TABLE,
    swift.TABLE,
    llamafactory.TABLE,
    trainer.TRL,
    trainer.TABLE,
)


def read(file: File) -> Reading:
    """A file by the table of its format.

    Raises:
        InputError: for a file of none; it says what it is, where that is known.
    """
    for table in TABLES:
        if any(_has(file, mark) for mark in table.marks):
            return read_keys(file, table)
    titles = ", ".join(table.title for table in TABLES)
    rule = describe_file(file.values) or f"configures no training of {titles}"
    if "model_type" in file.values:
        rule = "is a model's config.json: give it as --model"
    raise InputError(FIELD, file.name, rule)


def keys_of(field: str) -> dict[str, str]:
    """The key that makes an option of a plan, by the library's title, where one key makes it.

    >>> keys_of("lora")["torchtune"]
    'model.lora_rank'
    """
    return {table.title: keys[0] for table in TABLES if (keys := [*_keys_of(table, field)])}


def _keys_of(table: Table, field: str) -> Iterator[str]:
    yield from (key for key, meaning in table.keys.items() if meaning == field)
    edits = (keys for name, keys in table.edits.items() if name.partition("=")[0] == field)
    yield from (key for keys in edits if len(keys) == 1 for key in keys)


def _has(file: File, mark: str) -> bool:
    """True if a file has all keys that a mark joins by ``+``, each with the text after ``=``."""
    return all(any(_fits(file, key, part) for key in file.values) for part in mark.split("+"))


def _fits(file: File, key: str, part: str) -> bool:
    pattern, _, text = part.partition("=")
    return fnmatchcase(key, pattern) and text.lower() in in_words(file.values[key])
