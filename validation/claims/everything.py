"""All topics, by what they are about."""

from collections.abc import Callable, Iterator
from typing import Final

from validation.claims import computing, energy, exchanging, scaling
from validation.claims.claim import Topic

GROUPS: Final[dict[str, Callable[[], Iterator[Topic]]]] = {
    "Computing": computing.topics,
    "Energy, money and failures": energy.topics,
    "Size, tokens and loss": scaling.topics,
    "Exchanges over the internet": exchanging.topics,
}
