"""A recognizer of the grammar's sentences: a regular expression, not made from its tables."""

import re

ONE = r"(?:a|every|the) (?:(?:happy|old|small) )?(?:bird|cat|dog|mouse)"
MANY = r"(?:some|the|two) (?:(?:happy|old|small) )?(?:birds|cats|dogs|mice)"
NOUN = f"(?:{ONE}|{MANY})"
SENTENCE = re.compile(
    f"{ONE}(?: that (?:follows|hears|sees) {NOUN})?"
    f" (?:(?:follows|hears|sees) {NOUN}|runs|sings|sleeps) [.]"
    f"|{MANY}(?: that (?:follow|hear|see) {NOUN})?"
    f" (?:(?:follow|hear|see) {NOUN}|run|sing|sleep) [.]"
)


def first_sentence(text: str) -> str:
    """The beginning of a text, with its first stop."""
    return text.partition(" .")[0] + " ."


def is_sentence(text: str) -> bool:
    """True if the text is one sentence of the grammar."""
    return SENTENCE.fullmatch(text) is not None
