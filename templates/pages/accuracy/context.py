"""Data for 'How accurate is it?': measured steps, published figures, other calculators."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from calculator.overhead import estimate_overhead
from calculator.plan import Attention, Plan
from calculator.units import format_bytes
from templates.pages.accuracy.deepspeed import deepspeed
from templates.pages.calculator.context import by_family
from templates.pieces.accuracy import DEVICES, Accuracy, accuracy_of
from templates.pieces.comparisons import comparisons_on
from validation.compare import Comparison
from validation.figure import draw
from validation.grid import CARD_STEPS
from validation.peers import KERNELS, PEERS, Peer, Score, read_predictions, score
from validation.public import GUIDE, SITE, Publication, Published, as_classifier
from validation.rows import read_rows
from validation.table import table

WORST_SHOWN = 5
# The columns of an `Accuracy`, after its heading.
ERRORS = ["Steps", "Within 0.01 %", "Median error", "90 % are within", "Worst"]


@dataclass(frozen=True, slots=True)
class Device:
    """The steps measured on one device, in groups and in a figure."""

    words: str
    families: list[Accuracy]
    techniques: list[Accuracy]
    statics_exact: int
    phases_right: int
    phases_exact: int
    worst: list[tuple[str, str, str]]
    versions: str
    figure: str
    left_out: int
    cards: list[Accuracy]

    @property
    def count(self) -> int:
        """Number of compared steps."""
        return self.families[0].count


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
        figure=draw(comparisons),
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


def signed_percent(error: float) -> str:
    """A relative error with its sign and about three digits."""
    digits = 2 if abs(error) < 0.1 else 1 if abs(error) < 1 else 0
    return f"{100 * error:+.{digits}f}\N{NO-BREAK SPACE}%"


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A published figure and ours, as texts, with the command for ours."""

    words: str
    published: str
    reserved: str
    ours: str
    error: str
    classifier: str
    classifier_error: str
    command: str

    @property
    def guide_cells(self) -> list[str]:
        """A table row without reserved bytes."""
        classifier = [self.classifier, self.classifier_error]
        return [self.words, self.published, self.ours, self.error, *classifier]

    @property
    def site_cells(self) -> list[str]:
        """A table row without a second head."""
        return [self.words, self.published, self.reserved, self.ours, self.error]


def published(publication: Publication) -> list[PublishedRow]:
    """The publication's figures without its CUDA context, and the calculator's peaks."""
    found = []
    for row, report in publication.pairs():
        size, ours = row.bytes - publication.context, report.gpu.total
        classifier = as_classifier(row) if publication is GUIDE else ours
        found.append(
            PublishedRow(
                row.words,
                format_bytes(size),
                format_bytes(row.reserved or 0),
                format_bytes(ours),
                signed_percent(ours / size - 1),
                format_bytes(classifier),
                signed_percent(classifier / size - 1),
                command(row),
            )
        )
    return found


def command(row: Published) -> str:
    """The command line for a published row's plan."""
    words = (f"--{name.replace('_', '-')} {value}" for name, value in row.options.items())
    return " ".join(("python -m calculator estimate", row.model, *words))


def guide_sums() -> tuple[str, str]:
    """Lowest and highest error of peak, workspace and typical slack against the guide's figures."""
    errors = []
    for row in GUIDE.rows:
        peak = as_classifier(row)
        overhead = estimate_overhead(peak)
        errors.append(
            (peak + overhead.workspace + overhead.slack) / (row.bytes - GUIDE.context) - 1
        )
    return signed_percent(min(errors)), signed_percent(max(errors))


def saving(without: str, with_it: str) -> tuple[str, str]:
    """Difference in bytes between two rows of the guide, as published and for our classifier."""
    rows = {row.words: row for row in GUIDE.rows}
    first, second = rows[without], rows[with_it]
    ours = as_classifier(first) - as_classifier(second)
    return format_bytes(first.bytes - second.bytes), format_bytes(ours)


@dataclass(frozen=True, slots=True)
class PeerRow:
    """One calculator's errors in one family, with eager and with fused attention."""

    family: str
    count: int
    measured: int
    medians: list[str]
    worst: list[str]
    too_low: list[int]

    @property
    def cells(self) -> list[object]:
        """A table row, one kernel after another."""
        figures = zip(self.medians, self.worst, self.too_low, strict=True)
        kernels = [figure for kernel in figures for figure in kernel]
        return [self.family, self.count, self.measured, *kernels]


@dataclass(frozen=True, slots=True)
class PeerScore:
    """A calculator, its version and its errors."""

    peer: Peer
    version: str
    rows: list[PeerRow]


@cache  # five hundred configurations with two kernels each
def peer_scores() -> list[PeerScore]:
    """All other calculators, in every family for which they have figures."""
    comparisons = [item for name in DEVICES for item in comparisons_on(name)]
    scores = score(read_predictions(), comparisons)
    found = []
    for peer in PEERS:
        own = [item for item in scores if item.prediction.calculator == peer.name]
        rows = [_peer_row("All", own)]
        rows += [_peer_row(title, members) for title, members in by_family(own)]
        found.append(PeerScore(peer, own[0].prediction.version, rows))
    return found


def _peer_row(family: str, scores: list[Score]) -> PeerRow:
    def errors(kernel: Attention) -> list[float]:
        return [item.error(kernel) for item in scores]

    return PeerRow(
        family,
        len(scores),
        sum(any(item.measured.values()) for item in scores),
        [f"{100 * statistics.median(map(abs, errors(k))):.1f}\N{NO-BREAK SPACE}%" for k in KERNELS],
        [signed_percent(max(errors(kernel), key=abs)) for kernel in KERNELS],
        [sum(error < 0 for error in errors(kernel)) for kernel in KERNELS],
    )


def example() -> tuple[str, str]:
    """A `measure` command and its output for a committed row."""
    comparison = min(comparisons_on("counting"), key=lambda item: len(item.configuration.as_dict()))
    words = comparison.configuration.command
    printed = table(comparison.configuration, comparison.row)
    return f"python -m validation measure {words} --device cuda", "\n".join(printed)


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    told, printed = example()
    fp32 = "fp32, batch 4"
    return {
        "devices": devices(),
        "errors": ERRORS,
        "has_gpu_rows": bool(comparisons_on("cuda")),
        "guide": GUIDE,
        "guide_rows": published(GUIDE),
        "guide_sums": guide_sums(),
        "guide_context": format_bytes(GUIDE.context),
        "adafactor": saving(fp32, f"{fp32}, Adafactor"),
        "eight_bit": saving(fp32, f"{fp32}, 8-bit Adam"),
        "site": SITE,
        "site_rows": published(SITE),
        "peers": peer_scores(),
        "deepspeed": deepspeed(),
        "check_command": told,
        "check_output": printed,
        "contributed": len(CARD_STEPS),
    }
