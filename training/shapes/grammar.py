"""Sentences of a small grammar, written on demand: what a rehearsal's language model learns.

A verb agrees with its noun in number, also where a relative clause with a noun of its own stands
between them: "the dogs that see a cat sleep .". Text i is the same in every process.
"""

import random

from calculator.errors import InputError

DETERMINERS = (("a", "every", "the"), ("some", "the", "two"))  # of one, of several
NOUNS = (("bird", "cat", "dog", "mouse"), ("birds", "cats", "dogs", "mice"))
ADJECTIVES = ("happy", "old", "small")
ACTIONS = (("runs", "sings", "sleeps"), ("run", "sing", "sleep"))
RELATIONS = (("follows", "hears", "sees"), ("follow", "hear", "see"))
RELATIVE, STOP = "that", "."
_TABLES = (DETERMINERS, NOUNS, ACTIONS, RELATIONS)
WORDS = (
    *sorted({word for table in _TABLES for row in table for word in row}),
    *ADJECTIVES,
    RELATIVE,
    STOP,
)

_MOST_SENTENCES = 3  # of a text
_ADJECTIVE_SHARE, _RELATIVE_SHARE, _OBJECT_SHARE = 0.3, 0.25, 0.6


def write_text(index: int) -> str:
    """The data set's text at `index`: one to three sentences, their words and stops apart.

    Raises:
        InputError: a negative index.

    >>> write_text(0)
    'the small mice sing . some cats sleep .'
    """
    if index < 0:
        raise InputError("index", index, "must be at least 0")
    chance = random.Random(index)
    count = chance.randint(1, _MOST_SENTENCES)
    return " ".join(word for _ in range(count) for word in _sentence(chance))


def _sentence(chance: random.Random) -> list[str]:
    number = chance.randrange(2)
    words = _noun_phrase(chance, number)
    if chance.random() < _RELATIVE_SHARE:
        words += [RELATIVE, *_relation(chance, number)]
    has_object = chance.random() < _OBJECT_SHARE
    verb = _relation(chance, number) if has_object else [chance.choice(ACTIONS[number])]
    return [*words, *verb, STOP]


def _relation(chance: random.Random, number: int) -> list[str]:
    other = chance.randrange(2)
    return [chance.choice(RELATIONS[number]), *_noun_phrase(chance, other)]


def _noun_phrase(chance: random.Random, number: int) -> list[str]:
    adjective = [chance.choice(ADJECTIVES)] if chance.random() < _ADJECTIVE_SHARE else []
    return [chance.choice(DETERMINERS[number]), *adjective, chance.choice(NOUNS[number])]
