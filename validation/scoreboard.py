"""Published measurements on real GPUs beside the calculator's answers, from one file."""

import math
import statistics
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, assert_never

from calculator.units import GiB, MiB
from validation.causes import CAUSES
from validation.public import GUIDE, SITE, Publication, Published, as_classifier
from validation.published_rows import Figure, Row, Source

PATH: Final = Path(__file__).with_name("published") / "memory.toml"
# tokens from which attention scores are most of the memory of the rows of 2021
LONG: Final = 2048
# targets for the error: half of the rows are within the first, nine of ten within the second
TARGET_MEDIAN, TARGET_MOST = 0.02, 0.05


@dataclass(frozen=True, slots=True)
class Score:
    """A published figure and ours, both in bytes.

    `beyond` is our estimate of what the figure holds besides allocated bytes; 0 where it is those.
    """

    source: Source
    row: Row
    ours: int
    beyond: int

    @property
    def error(self) -> float:
        """Relative error of our peak."""
        return self.ours / self.row.bytes - 1

    @property
    def differences(self) -> dict[str, float]:
        """The known differences, by their keys: how much higher each makes ours, of the figure."""
        architecture, plan = self.row.architecture, self.row.report.plan
        sizes = {key: CAUSES[key].size for key in self.source.differs}
        found = {key: size(architecture, plan) for key, size in sizes.items() if size}
        return {key: -extra / self.row.bytes for key, extra in found.items() if extra}

    @property
    def left(self) -> float:
        """The error that known differences and the estimated rest do not explain."""
        return self.error + self.beyond / self.row.bytes - sum(self.differences.values())

    @property
    def is_explained(self) -> bool:
        """True if little of the error is left."""
        return abs(self.left) <= TARGET_MOST


@cache
def sources() -> tuple[Source, ...]:
    """All sources: those of the file, then the two that stand on the accuracy page in detail."""
    content = tomllib.loads(PATH.read_text("utf-8"))
    return (*map(_source, content["source"]), _guide(), _site())


@cache
def scores() -> tuple[Score, ...]:
    """Every row with the calculator's answer."""
    return tuple(_score(source, row) for source in sources() for row in source.rows)


def _score(source: Source, row: Row) -> Score:
    report = row.report
    rest = report.overhead
    match source.figure:
        case Figure.ALLOCATED | Figure.ACTIVE:
            return Score(source, row, report.gpu.total, 0)
        case Figure.RESERVED:
            ours = as_classifier(Published(row.words, row.model, row.options, row.bytes))
            return Score(source, row, ours, rest.workspace + rest.slack)
        case Figure.OF_ALLOCATOR:
            return Score(source, row, report.gpu.total, rest.workspace + rest.slack)
        case Figure.NOT_SAID | Figure.USED:
            return Score(source, row, report.gpu.total, rest.total)
        case other:
            assert_never(other)


def median(errors: Iterable[float]) -> float:
    """Median of the absolute values."""
    return statistics.median(map(abs, errors))


def most(errors: Sequence[float], share: float = 0.9) -> float:
    """Smallest absolute error that `share` of the rows do not exceed.

    >>> most([0.01, -0.02, 0.03, -0.04, 0.05, 0.06, -0.07, 0.08, 0.09, 0.5])
    0.09
    """
    ordered = sorted(map(abs, errors))
    return ordered[math.ceil(share * len(ordered)) - 1]


def _source(entry: Mapping[str, Any]) -> Source:
    base = f"https://github.com/{entry['repository']}/blob/{entry['commit']}"
    names = {f"{entry['repository']}, {file}": f"{base}/{file}" for file in entry["files"]}
    unit = entry["unit"]
    common = entry["options"]
    return Source(
        entry["key"],
        entry["title"],
        names,
        entry["machine"],
        Figure(entry["figure"]),
        tuple(entry["assumed"]),
        tuple(entry["left_out"]),
        tuple(_row({"why": entry.get("why", ()), **row}, common, unit) for row in entry["row"]),
        tuple(entry.get("differs", ())),
        entry.get("others", ""),
    )


def _row(entry: Mapping[str, Any], common: Mapping[str, Any], unit: str) -> Row:
    options = {name: str(value) for name, value in {**common, **entry["options"]}.items()}
    return Row(
        entry["words"],
        entry["model"],
        options,
        entry["published"],
        unit,
        tuple(entry["why"]),
        entry.get("others", ""),
    )


def _guide() -> Source:
    """The guide of 2022 as the accuracy page has it, counted as its classifier."""
    assumed = (
        "The figures are nvidia-smi's; we take off the 1,343 MiB that it showed before a model was "
        "loaded.",
        "The guide's model scores two classes, so our figure counts those instead of every word.",
        "The options are the library's defaults in 2022, as on the accuracy page.",
    )
    rows = (
        Row(row.words, row.model, row.options, f"{without / MiB:.0f}", "MiB", ("reserved",))
        for row in GUIDE.rows
        for without in [row.bytes - GUIDE.context]
    )
    return _earlier("guide", GUIDE, "V100, 16 GB", Figure.RESERVED, assumed, tuple(rows))


def _site() -> Source:
    """The file of 2021 as the accuracy page has it."""
    assumed = (
        "Of two columns without headings, the smaller one looks like allocated GiB.",
        "20 bytes per parameter point to 16-bit weights with fp32 masters; PyTorch had no foreach "
        "updates in 2021.",
    )
    rows = (
        Row(row.words, row.model, row.options, f"{row.bytes / GiB:.1f}", "GiB", why)
        for row in SITE.rows
        for why in [("scores",) if row.plan.sequence_length >= LONG else ()]
    )
    machine = "not named"
    return _earlier("site", SITE, machine, Figure.ALLOCATED, assumed, tuple(rows))


def _earlier(
    key: str,
    publication: Publication,
    machine: str,
    figure: Figure,
    assumed: tuple[str, ...],
    rows: tuple[Row, ...],
) -> Source:
    title = publication.title
    return Source(key, title, {title: publication.address}, machine, figure, assumed, (), rows)
