"""`python3 build.py bench [PART ...]`: print the tables and write them to bench/."""

import argparse
import sys
from importlib import import_module

from benchmarks.chromium import fresh_visit
from benchmarks.figures import Table, machine, write_json
from tools.console import ROOT, say

# Each is a module here with run(quick) -> Table; imported when measured, since some need PyTorch.
PARTS = (
    "estimate",
    "slider",
    "advice",
    "fit",
    "start",
    "weight",
    "live",
    "size",
    "lamb",
    "arithmetic",
    "wire",
    "tally",
    "groups",
    "crowd",
    "swarm",
    "defence",
    "sparse",
    "judging",
    "sampled",
)
ON_REQUEST = (
    "lighthouse",  # large to fetch
    "snapshot",  # a part of what start measures, explained
    "slow_links",  # needs root and most of an hour
    "sparse_links",  # needs root and ten minutes
    "long_rounds",  # takes most of an hour
    "gradient",  # writes a file that a page draws
    "tab",  # takes two whole cores for minutes
    "tab_ways",  # fetches a library
    "tabs",  # takes two whole cores for a quarter of an hour
)
KNOWN = PARTS + ON_REQUEST


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="build.py bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(KNOWN)}")
    parser.add_argument("--quick", action="store_true", help="fewer runs, rougher figures")
    parser.add_argument(
        "--record", metavar="NAME", help="write benchmarks/NAME.json, which git keeps"
    )
    options = parser.parse_args()
    unknown = set(options.parts) - set(KNOWN)
    if unknown:
        parser.error(f"PART = {', '.join(sorted(unknown))}: must be one of {', '.join(KNOWN)}")
    path = ROOT / (f"benchmarks/{options.record}.json" if options.record else "bench/latest.json")
    with fresh_visit() as visit:
        words = machine(visit.browser.version)
    command = " ".join(("python3 build.py bench", *sys.argv[1:]))
    tables: dict[str, Table] = {}
    for name in options.parts or PARTS:
        tables[name] = import_module(f"benchmarks.{name}").run(options.quick)
        say(str(tables[name]))
        # At once, so that a later part's failure loses nothing.
        write_json(path, tables, command, words)
    say(", ".join(f"{what}: {words[what]}" for what in ("processor", "cores", "system", "load")))
    say(f"Written to {path.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
