"""Data for 'Measurements': exchanges, local steps, attacks, and protections with their tests."""

from calculator.catalog import SOURCES
from calculator.units import format_bytes
from templates.pages.how_it_works import gradient
from templates.pages.how_it_works.context import (
    ROUND_MBIT,
    ROUND_PEERS,
    exchange_stairs,
    sharing_factor,
    waterfall,
)
from templates.pages.measurements import (
    chaos,
    defence,
    judging,
    long_rounds,
    slow_links,
    sparse_links,
    speed,
    tabs,
)
from templates.pages.measurements.differences import DIFFERENCES
from templates.pages.measurements.protections import BOUNDED, CLOSED
from templates.pages.measurements.waterfall import SMALL_BATCH
from training.run.recipes import PAPER


def shown_rounds(rounds: sparse_links.SparseLinks | None) -> list[sparse_links.Round]:
    """The measured rounds, and the one that is too fast for the measurement."""
    if rounds is None:
        return []
    processed, moved = rounds.find(ROUND_PEERS, ROUND_MBIT), rounds.find(4, 50.0)
    more = [sparse_links.simulate(processed, moved)] if processed and moved else []
    return [*rounds.rounds, *more]


def times_less(rounds: sparse_links.SparseLinks | None) -> list[float]:
    """For each way of the part long_rounds, the times that it moves less than the 2021 run."""
    found, alone = (
        rounds.find(peers, ROUND_MBIT) if rounds else None for peers in (ROUND_PEERS, 2)
    )
    if found is None or alone is None:
        return []
    paper = waterfall(rounds)[-3].moved
    # of two volunteers, each downloads one file
    moved = {False: found.sent + found.received, True: alone.sent + alone.received}
    return [paper * length / moved[one_file] for length, one_file in long_rounds.WAYS]


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    rounds, stairs = sparse_links.read(), exchange_stairs()
    return {
        "rare": PAPER.swarm.target_batch_size // SMALL_BATCH,
        "compression": stairs[1].sent / stairs[2].sent,
        "sharing": sharing_factor(),
        "links": slow_links.read(),
        "gradient": gradient.read(),
        "percent": gradient.percent,
        "falls": waterfall(rounds),
        "rounds": rounds,
        "shown_rounds": shown_rounds(rounds),
        "measured_round": rounds.find(ROUND_PEERS, ROUND_MBIT) if rounds else None,
        "pace_seconds": sparse_links.batch_seconds(ROUND_PEERS),
        "round_peers": ROUND_PEERS,
        "long_rounds": long_rounds.read(),
        "less": times_less(rounds),
        "measured": defence.read(),
        "judging": judging.read(),
        "sampled": judging.read_sampled(),
        "tab_ways": tabs.read("tab_ways"),
        "tab": tabs.read("tab"),
        "tabs": tabs.read("tabs"),
        "closed": CLOSED,
        "bounded": BOUNDED,
        "chaos": chaos.read(),
        "chaos_local": chaos.read("local"),
        "size": format_bytes,
        "differences": DIFFERENCES,
        "speed": speed.read(),
        "sources": SOURCES,
    }
