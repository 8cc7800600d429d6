"""Data for 'How accurate is it?': real cards, the simulated GPU, other calculators."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from calculator.plan import Plan
from calculator.units import format_bytes
from templates.pages.accuracy.boards import boards, cards
from templates.pages.accuracy.deepspeed import deepspeed
from templates.pages.accuracy.peers import peer_scores
from templates.pieces.accuracy import DEVICES, Accuracy, accuracy_of, on_card, signed_percent
from templates.pieces.comparisons import comparisons_on
from templates.pieces.families import by_family
from validation.compare import Comparison
from validation.grid import CARD_STEPS
from validation.rows import read_rows
from validation.table import table

WORST_SHOWN = 5
# The columns of an `Accuracy`, after its heading.
ERRORS = ["Steps", "Within 0.01 %", "Median error", "90 % are within", "Worst"]


@dataclass(frozen=True, slots=True)
class Device:
    """The steps measured on one device, in groups."""

    words: str
    families: list[Accuracy]
    techniques: list[Accuracy]
    statics_exact: int
    phases_right: int
    phases_exact: int
    worst: list[tuple[str, str, str]]
    versions: str
    left_out: int
    cards: list[Accuracy]

    @property
    def count(self) -> int:
        """Number of compared steps."""
        return self.families[0].count


@cache  # for this page and the scoreboard
def devices() -> list[Device]:
    """All devices with measurements."""
    return [
        _device(words, comparisons, len(list(read_rows(name))) - len(comparisons))
        for name, words in DEVICES.items()
        if (comparisons := comparisons_on(name))
    ]


def _device(words: str, comparisons: list[Comparison], left_out: int) -> Device:
    families = [accuracy_of(title, members) for title, members in by_family(comparisons)]
    return Device(
        words=words,
        families=[accuracy_of("All", comparisons), *families],
        techniques=_techniques(comparisons),
        statics_exact=sum(not any(item.static_errors().values()) for item in comparisons),
        phases_right=sum(item.phase_is_right for item in comparisons),
        phases_exact=sum(not item.phases_beyond() for item in comparisons),
        worst=[
            (item.row["command"], signed_percent(item.error), format_bytes(item.measured))
            for item in sorted(comparisons, key=lambda item: -abs(item.error))[:WORST_SHOWN]
        ],
        versions=", ".join(_versions(comparisons)),
        left_out=left_out,
        cards=by_card(comparisons),
    )


def by_card(comparisons: Sequence[Comparison]) -> list[Accuracy]:
    """One group for each graphics card, driver and version of PyTorch that rows come from."""
    groups: dict[str, list[Comparison]] = {}
    for item in comparisons:
        if gpu := item.row.get("gpu"):
            words = f"{gpu['card']}, driver {gpu['driver'] or 'unknown'}, CUDA {gpu['cuda']}"
            torch = item.row["versions"]["torch"]
            groups.setdefault(f"{words}, PyTorch {torch}", []).append(item)
    return [accuracy_of(words, members) for words, members in sorted(groups.items())]


def _techniques(comparisons: Sequence[Comparison]) -> list[Accuracy]:
    """One group per value of each option; a step can be in several groups."""
    groups: dict[str, list[Comparison]] = {}
    for item in comparisons:
        for name in item.techniques():
            groups.setdefault(name, []).append(item)
    order = ["defaults", *Plan.options()]
    return [
        accuracy_of(_in_words(name), groups[name])
        for name in sorted(groups, key=lambda name: (_place(name.split("=")[0], order), name))
    ]


def _place(field: str, order: list[str]) -> int:
    return order.index(field) if field in order else len(order)


def _in_words(technique: str) -> str:
    """`optimizer=adam` as a command-line option; empty for defaults."""
    field, _, value = technique.partition("=")
    name = field.replace("_", "-")
    match value:
        case "":
            return "The defaults"
        case "True":
            return f"--{name}"
        case "False" if field == "tied_embeddings":
            return "--untied-embeddings"
        case "False":
            return f"--no-{name}"
        case _:
            return f"--{name} {value}"


def _versions(comparisons: Iterable[Comparison]) -> list[str]:
    """Each library's version once, without `oracle`."""
    found = {
        f"{name} {version}"
        for item in comparisons
        for name, version in item.row["versions"].items()
        if name not in ("oracle", "python")
    }
    return sorted(found)


def example() -> tuple[str, str]:
    """A `measure` command and its output for a committed row."""
    comparison = min(comparisons_on("counting"), key=lambda item: len(item.configuration.as_dict()))
    words = comparison.configuration.command
    printed = table(comparison.configuration, comparison.row)
    return f"python -m validation measure {words}", "\n".join(printed)


def _in_scoreboard(anchor: str, title: str) -> str:
    """A link to a place of the scoreboard, which has every row."""
    return f'<a href="../scoreboard/#{anchor}">{title}</a>'


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    told, printed = example()
    return {
        **cards(),
        "scoreboard": [
            [_in_scoreboard(board.source.key, board.source.title), *board.summary.cells]
            for board in boards()
        ],
        "card": on_card(),
        "devices": devices(),
        "errors": ERRORS,
        "peers": peer_scores(),
        "others": [
            [_in_scoreboard(f"others-{place}", score.peer.title), *score.rows[0].cells[1:]]
            for place, score in enumerate(peer_scores(), 1)
        ],
        "deepspeed": deepspeed(),
        "check_command": told,
        "check_output": printed,
        "contributed": len(CARD_STEPS),
    }
