"""Groups that are complete when everybody is there, instead of when the time is up.

The library's leader of a group waits for the whole `min_matchmaking_time` unless the group reaches
a fixed size, which must be known beforehand. How many peers train is known from their reports; so
each round here expects as many as there are, and the time is only for those who do not come.
"""

import multiprocessing
from typing import Any

from hivemind.averaging import DecentralizedAverager


class ExpectantAverager(DecentralizedAverager):
    """An averager whose groups need not wait once `expected_peers` have met."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._expected = multiprocessing.Value("i", 0)  # shared with the averager's own process
        super().__init__(*args, **options)

    @property
    def expected_peers(self) -> int:
        """Peers that the next round expects, this one included; 0 or 1: nobody knows."""
        return int(self._expected.value)

    @expected_peers.setter
    def expected_peers(self, count: int) -> None:
        self._expected.value = count

    async def _step(self, **options: Any) -> None:
        expected, fixed = self.expected_peers, self.matchmaking_kwargs["target_group_size"]
        if fixed is None:
            self._matchmaking.target_group_size = expected if expected > 1 else None
        await super()._step(**options)
