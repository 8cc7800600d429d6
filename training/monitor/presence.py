"""When the monitor heard a volunteer, by the monitor's own clock."""

from dataclasses import dataclass

SILENCE_SECONDS = 35.0  # three reports missed: whoever is silent for longer has left
FORGOTTEN_SECONDS = 3600.0  # of silence, after which whoever earned nothing is forgotten


@dataclass
class Presence:
    """Times in seconds since 1970.

    Attributes:
        first, last: first and newest report.
        seconds: that the volunteer was there: between reports that follow each other closely.
    """

    first: float
    last: float
    seconds: float = 0.0

    def hear(self, now: float) -> None:
        """Note a new report."""
        if 0 < now - self.last <= SILENCE_SECONDS:
            self.seconds += now - self.last
        self.last = now

    def is_silent(self, now: float) -> bool:
        """True if the volunteer has left."""
        return now - self.last > SILENCE_SECONDS

    def is_forgotten(self, now: float) -> bool:
        """True after so long a silence that nothing has to be kept that earned nothing."""
        return now - self.last > FORGOTTEN_SECONDS
