"""`python3 build.py bench [PART ...]`: print the tables and write them to bench/."""

import argparse
from collections.abc import Callable

from tests.benchmarks import estimate, size, slider, start
from tests.benchmarks.chromium import fresh_visit
from tests.benchmarks.figures import Table, machine, write_json
from tools.console import ROOT, say


def _lamb(quick: bool) -> Table:
    from tests.benchmarks import lamb  # torch is imported by those who measure it only

    return lamb.run(quick)


PARTS: dict[str, Callable[[bool], Table]] = {
    "estimate": estimate.run,
    "slider": slider.run,
    "start": start.run,
    "size": size.run,
    "lamb": _lamb,
}


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="build.py bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="fewer runs, rougher figures")
    parser.add_argument(
        "--record", metavar="NAME", help="write benchmarks/NAME.json, which git keeps"
    )
    options = parser.parse_args()
    unknown = set(options.parts) - PARTS.keys()
    if unknown:
        parser.error(f"PART = {', '.join(sorted(unknown))}: must be one of {', '.join(PARTS)}")
    tables = []
    for name in options.parts or PARTS:
        tables.append(PARTS[name](options.quick))
        say(str(tables[-1]))
    with fresh_visit() as visit:
        words = machine(visit.browser.version)
    path = ROOT / (f"benchmarks/{options.record}.json" if options.record else "bench/latest.json")
    write_json(path, tables, words)
    say(", ".join(f"{what}: {words[what]}" for what in ("processor", "cores", "system", "load")))
    say(f"Written to {path.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
