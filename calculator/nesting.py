"""The nesting depth of JSON text, found without parsing it.

A parser calls itself for each level. In the browser, that can exhaust the stack and end Python;
no limit of Python's own comes before it.
"""

import re
from typing import Final

# no question and no configuration that people write comes near
DEEPEST: Final = 64

# a string, to its end or that of the text; or one that opens or closes a level
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


def is_too_deep(text: str, most: int = DEEPEST) -> bool:
    """True if lists and objects are nested more than `most` levels deep.

    >>> is_too_deep('[["]]"', most=1), is_too_deep('["[["]', most=1)
    (True, False)
    """
    depth = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
            if depth > most:
                return True
        elif first != '"':
            depth -= 1
    return False
