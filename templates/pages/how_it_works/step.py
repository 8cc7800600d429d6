"""One global step in eight pictures: volunteers compute, count, exchange parts and update.

What is drawn is a mark, with a place in each picture. The page's script moves the marks from place
to place; without a script, the page shows the pictures side by side.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import Final

from calculator.planner.communicate import Connection, Way, exchange_seconds, loads
from calculator.swarm.pace import Activity, PaceSettings, Pacing, simulate
from training.run.recipes import PAPER

WIDTH: Final = 400
HEIGHT: Final = 206
COLUMN, COLUMN_STEP = 124, 138  # of a volunteer
PART, PART_STEP, BLOCK = 36, 44, 26  # of a part of the gradients
NAME, WEIGHTS, GRADIENT, SEQUENCES, SLOT, SENT = 12, 22, 66, 108, 146, 196  # from the top
TOTAL, TOTAL_HEIGHT, BAR_HEIGHT = 158, 16, 10
HEAD: Final = 6  # of an arrow
LONGEST_STEP_SECONDS: Final = 3600.0
SPEEDS: Final = (8.0, 4.0, 1.0)  # of the three volunteers, in sequences per second
NAMES: Final = ("A", "B", "C")
MANY: Final = 16  # volunteers, as in the next figure of the page


class Picture(IntEnum):
    """The pictures, in their order."""

    COMPUTE = 0
    COUNT = 1
    CUT = 2
    FIRST = 3
    OTHERS = 4
    AVERAGE = 5
    BACK = 6
    UPDATE = 7


Place = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something drawn.

    Attributes:
        kind: of what; the style's name.
        places: its upper left corner in each picture. shown: the pictures that show it.
        series: the volunteer whose it is, from 1; 0 for what is no one's.
        path: in place of a box of `width` and `height`.
    """

    kind: str
    places: tuple[Place, ...]
    shown: frozenset[Picture]
    series: int = 0
    width: float = 0.0
    height: float = 0.0
    text: str = ""
    path: str = ""

    @property
    def moves(self) -> bool:
        """True if it has more than one place."""
        return len(set(self.places)) > 1


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture's title, its explanation, and a description for anyone who can't see it."""

    title: str
    words: str
    seen: str


@dataclass(frozen=True, slots=True)
class Step:
    """The numbers of the step; sizes are in bytes.

    Attributes:
        message: the gradients of one volunteer on the wire.
        connection: every volunteer's.
    """

    message: int
    connection: Connection

    @property
    def volunteers(self) -> int:
        """Their number, and the number of parts."""
        return len(NAMES)

    @property
    def part(self) -> float:
        """One part of the gradients."""
        return self.message / self.volunteers

    def sent(self, volunteers: int | None = None) -> float:
        """Sent by each in the whole exchange, of those drawn or of another number."""
        everyone = [self.connection] * (volunteers or self.volunteers)
        return loads(self.message, everyone, Way.ALL_REDUCE)[0].sent

    @property
    def exchange_seconds(self) -> float:
        """Seconds of the exchange at the connection's full rate."""
        everyone = [self.connection] * self.volunteers
        return exchange_seconds(self.message, everyone, Way.ALL_REDUCE)

    def sent_so_far(self, picture: Picture, volunteer: int) -> float:
        """Sent by one volunteer by the end of a picture."""
        others = self.volunteers - 1
        parts = {
            Picture.FIRST: 0 if volunteer == 0 else 1,
            Picture.OTHERS: others,
            Picture.AVERAGE: others,
            Picture.BACK: 2 * others,
            Picture.UPDATE: 2 * others,
        }
        return parts.get(picture, 0) * self.part

    @property
    def sequences(self) -> tuple[int, ...]:
        """Computed by each at its own pace, for one step of the 2021 run's size."""
        settings = PaceSettings(
            PAPER.swarm.target_batch_size,
            PAPER.swarm.micro_batch_size,
            self.exchange_seconds,
            LONGEST_STEP_SECONDS,
        )
        lanes = simulate(SPEEDS, Pacing.OWN_PACE, settings).lanes
        firsts = (next(one for one in lane if one.activity is Activity.COMPUTE) for lane in lanes)
        return tuple(first.sequences for first in firsts)


def megabytes(size: float) -> str:
    """A size in millions of bytes.

    >>> megabytes(42_133_333)
    '42.1 MB'
    """
    return f"{size / 1e6:.1f} MB"


def scenes(step: Step) -> list[Scene]:
    """The words of each picture."""
    counts, total = step.sequences, sum(step.sequences)
    added = " + ".join(f"{count:,}" for count in counts)
    ratio, target = counts[0] / counts[2], PAPER.swarm.target_batch_size
    part, rate = megabytes(step.part), step.connection.up / 1e6
    return [
        Scene(
            "Compute",
            "All volunteers hold the same weights. Each computes gradients on its own sequences, "
            "as fast as it can: here A is twice as fast as B and eight times as fast as C.",
            "Volunteers A, B and C, each with weights, gradients, and a bar for the sequences "
            "processed. A's bar is the longest, C's the shortest.",
        ),
        Scene(
            "Count",
            f"Each reports how many sequences it has processed: {added} = {total:,}. That is "
            f"enough, since a step of the 2021 run took {target:,}. The volunteers find each other "
            "through a distributed hash table, a directory that they keep without a server.",
            f"The three bars, joined into one, reach past a mark at {target:,} sequences.",
        ),
        Scene(
            "Cut",
            f"Each compresses its gradients to 8 bits per element, {megabytes(step.message)} for "
            "the run's model, and cuts them into as many parts as there are volunteers: three of "
            f"{part} each.",
            "The gradients of each volunteer are cut into parts 1, 2 and 3.",
        ),
        Scene(
            "Send the first parts",
            f"Everyone's part 1 goes to A. B and C have now sent {part} each. A has sent nothing: "
            "it keeps its own part 1.",
            "The three parts numbered 1, one of each volunteer, lie below A.",
        ),
        Scene(
            "Send the others",
            "At the same time, everyone's part 2 goes to B and everyone's part 3 to C. Each "
            "volunteer has sent two parts and received two.",
            "The three parts numbered 2 lie below B, those numbered 3 below C.",
        ),
        Scene(
            "Average",
            f"Each averages the three copies of its one part. A's copy counts {ratio:.0f} times as "
            f"much as C's, because {ratio:.0f} times as many sequences are behind it.",
            "A single averaged part lies below each volunteer: 1 below A, 2 below B, 3 below C.",
        ),
        Scene(
            "Send back",
            "Each sends its averaged part back to the two others, so all have the same whole. Each "
            f"has sent {megabytes(step.sent())} in all. At {rate:.0f} Mbit/s, that takes "
            f"about {step.exchange_seconds:.0f} s.",
            "Each volunteer has the same averaged parts 1, 2 and 3.",
        ),
        Scene(
            "Update",
            "Each makes the same update to the same weights, so all weights stay equal, and "
            f"the next step begins. With {MANY} volunteers instead of three, each would send "
            f"{megabytes(step.sent(MANY))}; with any number, less than twice its "
            "gradients.",
            "The averaged parts are used up. The weights of all three have changed alike.",
        ),
    ]


def marks(step: Step) -> list[Mark]:
    """Everything that the pictures show, in the order of drawing."""
    volunteers = range(step.volunteers)
    return [
        *(mark for volunteer in volunteers for mark in _own(step, volunteer)),
        *_total(step),
        *(hole for part in volunteers for hole in _holes(step, part)),
        *_arrows(step, Picture.FIRST, lambda part: part == 0),
        *_arrows(step, Picture.OTHERS, lambda part: part > 0),
        *_arrows(step, Picture.BACK, lambda _: True),
        *(_copy(part, volunteer) for part in volunteers for volunteer in volunteers),
        *(_mean(part, volunteer) for part in volunteers for volunteer in volunteers),
        *(mark for volunteer in volunteers for mark in _sent(step, volunteer)),
    ]


def _own(step: Step, volunteer: int) -> Iterator[Mark]:
    """A volunteer's name, weights, uncut gradients and sequences."""
    left, series = COLUMN_STEP * volunteer, volunteer + 1
    counts = step.sequences
    always, uncut = frozenset(Picture), frozenset({Picture.COMPUTE, Picture.COUNT})
    box = (COLUMN, BLOCK)
    yield _still("name", (left, NAME), always, series, text=f"Volunteer {NAMES[volunteer]}")
    yield _still("weights", (left, WEIGHTS), always - {Picture.UPDATE}, series, box, text="weights")
    updated = frozenset({Picture.UPDATE})
    yield _still("changed", (left, WEIGHTS), updated, series, box, text="new weights")
    yield _still("whole", (left, GRADIENT), uncut, series, box, text="gradients")
    size = (COLUMN * counts[volunteer] / max(counts), BAR_HEIGHT)
    yield _still("done", (left, SEQUENCES), uncut, series, size)
    text = f"{counts[volunteer]:,} sequences"
    yield _still("count", (left, SEQUENCES + BAR_HEIGHT + 14), uncut, series, text=text)


def _total(step: Step) -> Iterator[Mark]:
    """All sequences in one bar, and the number that a step takes."""
    counts, shown = step.sequences, frozenset({Picture.COUNT})
    left = 0.0
    for volunteer, count in enumerate(counts):
        width = WIDTH * count / sum(counts)
        yield _still("done", (left, TOTAL), shown, volunteer + 1, (width, TOTAL_HEIGHT))
        left += width
    target = PAPER.swarm.target_batch_size
    x = round(WIDTH * target / sum(counts), 1)
    line = f"M{x} -4V{TOTAL_HEIGHT + 6}"
    yield _still("target", (0, TOTAL), shown, path=line)
    text = f"{target:,} sequences make a step"
    yield _still("end", (WIDTH, TOTAL + TOTAL_HEIGHT + 18), shown, text=text)


def _copy(part: int, volunteer: int) -> Mark:
    """A volunteer's own copy of a part: at home, below the one who averages it, then merged."""
    home, slot = _home(part, volunteer), _slot(part, volunteer)
    sent = Picture.FIRST if part == 0 else Picture.OTHERS
    shown = frozenset({Picture.CUT, Picture.FIRST, Picture.OTHERS})

    def place(picture: Picture) -> Place:
        if picture < sent:
            return home
        return slot if picture < Picture.AVERAGE else _slot(part, 1)

    return _moving("part", place, shown, volunteer + 1, f"{part + 1}")


def _mean(part: int, volunteer: int) -> Mark:
    """The average of a part on its way to one volunteer, and into its weights."""
    home = _home(part, volunteer)
    places = {Picture.BACK: home, Picture.UPDATE: (home[0], WEIGHTS)}
    # before it is sent, one copy stands for all
    own = {Picture.AVERAGE} if volunteer == part else set()

    def place(picture: Picture) -> Place:
        return places.get(picture, _slot(part, 1))

    return _moving("mean", place, frozenset({Picture.BACK, *own}), 0, f"{part + 1}")


def _holes(step: Step, part: int) -> Iterator[Mark]:
    """Outlines of the places that a part has left."""
    left = {Picture.FIRST, Picture.OTHERS, Picture.AVERAGE}
    if part > 0:
        left.remove(Picture.FIRST)
    for volunteer in range(step.volunteers):
        yield _still("hole", _home(part, volunteer), left, size=(PART, BLOCK))
    yield _still("hole", _slot(part, 1), {Picture.BACK}, size=(PART, BLOCK))


def _arrows(step: Step, picture: Picture, is_sent: Callable[[int], bool]) -> Iterator[Mark]:
    """The ways of the parts that are sent in a picture."""
    for part in filter(is_sent, range(step.volunteers)):
        for volunteer in range(step.volunteers):
            if volunteer == part:
                continue
            home, (x, y) = _home(part, volunteer), _slot(part, volunteer)
            above = (home[0] + PART / 2, home[1] + BLOCK + 2)
            if picture is Picture.BACK:
                below = (_slot(part, 1)[0] + PART / 2, y - 2)
                path = _arrow(below, above)
            else:
                path = _arrow(above, (x + PART / 2, y - 2))
            yield _still("arrow", (0, 0), frozenset({picture}), path=path)


def _arrow(start: Place, end: Place) -> str:
    angle = math.atan2(end[1] - start[1], end[0] - start[0])
    wings = [
        (end[0] - HEAD * math.cos(angle + turn), end[1] - HEAD * math.sin(angle + turn))
        for turn in (0.5, -0.5)
    ]
    (one, other) = (f"{x:.1f} {y:.1f}" for x, y in wings)
    tip = f"{end[0]:.1f} {end[1]:.1f}"
    return f"M{start[0]:.1f} {start[1]:.1f}L{tip}M{one}L{tip}L{other}"


def _sent(step: Step, volunteer: int) -> Iterator[Mark]:
    """The bytes that a volunteer has sent so far, from the first part on."""
    counted = [picture for picture in Picture if picture >= Picture.FIRST]
    for size, pictures in groupby(counted, lambda one: step.sent_so_far(one, volunteer)):
        text = f"sent {megabytes(size) if size else 'nothing'}"
        yield _still("sent", (COLUMN_STEP * volunteer, SENT), frozenset(pictures), text=text)


def _home(part: int, volunteer: int) -> Place:
    return (COLUMN_STEP * volunteer + PART_STEP * part, GRADIENT)


def _slot(part: int, volunteer: int) -> Place:
    """The place of a volunteer's copy below the one who averages that part."""
    return (COLUMN_STEP * part + PART_STEP * volunteer, SLOT)


def _still(
    kind: str,
    place: Place,
    shown: Iterable[Picture],
    series: int = 0,
    size: tuple[float, float] = (0.0, 0.0),
    *,
    text: str = "",
    path: str = "",
) -> Mark:
    places, (width, height) = (place,) * len(Picture), size
    return Mark(kind, places, frozenset(shown), series, round(width, 1), height, text, path)


def _moving(
    kind: str, place: Callable[[Picture], Place], shown: frozenset[Picture], series: int, text: str
) -> Mark:
    return Mark(kind, tuple(map(place, Picture)), shown, series, PART, BLOCK, text)
