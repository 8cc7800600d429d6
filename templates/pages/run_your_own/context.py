"""Data for 'Run your own': commands, a run file, and the organizers' costs."""

from typing import Final

from calculator.catalog import SOURCES
from calculator.units import format_bytes
from templates.pieces import commands
from templates.pieces.volunteer_costs import (
    CLIP_PARAMETERS,
    download_words,
    parameter_count,
    steps_an_hour,
)
from tools.source import find_source
from training.run.recipes import PAPER, RECIPES
from training.run.runfile import RunFile

RUN: Final = RunFile(
    name="our-run",
    title="Our run",
    recipe="paper",
    initial_peers=(
        "/ip4/203.0.113.5/tcp/31337/p2p/QmXoypizjW3WknFiJnKLwHCnL72vedxjQkDDP1mXWo6uco",
    ),
    data="my-org/encoded-pictures",
    live="https://example.org/live/our-run/",
    organisation="my-org",
    authority="https://run.example.org",
    authority_key="Ujx3TmGxO4u4n2Zk8m1Qe9d5b0RrVtYwHsCfJpLaXgE=",
    checkpoints="my-org/our-model",
    license="apache-2.0",
)
# The proportional share of memory (PSS) of all its processes while it waited for volunteers, on
# Linux with torch 2.13 and hivemind 1.1.12, 21 November 2026.
MONITOR_MEMORY_GIB: Final = 0.9
CHECKPOINTS_KEPT: Final = 3  # as `training.model.checkpoint.KEPT`, which needs torch to be imported

FIELDS: Final = (
    ("name", "the run's name in the network; it never changes"),
    (
        "recipe",
        f"one of {', '.join(f'<code>{name}</code>' for name in RECIPES)}; or a table "
        "<code>[recipe]</code> with one of them as its <code>base</code> and what differs",
    ),
    ("initial_peers", "the entry points for newcomers, as the monitor prints them when it starts"),
    ("data", "the encoded pictures: a data set on the Hub, or a folder"),
    ("live", "the address of the monitor's folder of live data"),
    (
        "exchange",
        "only with local steps: the address of the monitor's web host",
    ),
    (
        "store",
        "only with local steps: an object store for the larger files; optional",
    ),
    (
        "organisation, authority, authority_key",
        "the people who may join, and the server that admits them; without these, anyone may",
    ),
    (
        "checkpoints, license",
        "a repository on the Hub for the weights, and their license; optional",
    ),
    ("steps", "the length of the schedule, if it differs from the recipe's"),
    ("title, links", "for the run's page"),
)


def helper_costs() -> list[list[str]]:
    """Table of the needs of the organizers' own machines, for the recipe `paper`."""
    count = parameter_count()
    weights = 4 * count
    state = 2 * count + 2 * count * PAPER.optimizer.state_bits // 8
    checkpoint_hours = PAPER.swarm.checkpoint_every / steps_an_hour()
    return [
        [
            "Monitor: memory",
            f"{MONITOR_MEMORY_GIB:.1f} GiB",
            "measured with the recipe <code>paper</code>, while the monitor waits for volunteers; "
            "it needs no GPU and little computing",
        ],
        [
            "Monitor: disk",
            format_bytes(CHECKPOINTS_KEPT * weights),
            f"for the {CHECKPOINTS_KEPT} newest checkpoints of {format_bytes(weights)}; of older "
            "ones, the monitor keeps checksums and pictures",
        ],
        [
            "Monitor: traffic",
            f"{state / 1e6:,.0f} MB down every {checkpoint_hours:.0f} hours",
            f"every {PAPER.swarm.checkpoint_every} steps at the pace of 2021, a volunteer sends "
            "16-bit weights and 8-bit states for a checkpoint. Each newcomer that takes the "
            f"checkpoint downloads {weights / 1e6:,.0f} MB from your web host or from the Hub",
        ],
        [
            "Authority",
            "very little",
            "a small web service with a database file, which can run beside the monitor",
        ],
        [
            "Web host",
            "any static host",
            "the live data consists of files, with a line of about 200 bytes per step",
        ],
    ]


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    source = find_source()
    return {
        "commands": commands,
        "colab": source.colab("generate.ipynb"),
        "run_file": RUN.to_toml().rstrip(),
        "fields": [[f"<code>{names}</code>", words] for names, words in FIELDS],
        "costs": helper_costs(),
        "drawing": download_words(4 * (parameter_count() + CLIP_PARAMETERS)),
        "paper": SOURCES["together"],
        "recipe": PAPER,
    }
