"""`python3 build.py bench [PART ...]`: print tables, and put them into bench/latest.json."""

import argparse
import json
import subprocess
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from benchmarks.chromium import fresh_visit
from benchmarks.figures import machine, write_part
from tools.console import ROOT, say

# Each is a module here with run(quick) -> Table, imported when measured, since some need PyTorch;
# and what it measures.
PARTS = {
    "estimate": ("calculator",),
    "slider": ("calculator", "docs/assets", "templates/pages/calculator"),
    "advice": ("calculator", "docs/assets", "templates/pages/calculator"),
    "fit": ("calculator",),
    "start": ("docs/assets/python.js", "docs/assets/worker", "tools/browser_python.py"),
    "weight": ("docs/assets", "templates", "mkdocs.yml"),
    "live": ("docs/assets/live", "templates/pages/live"),
    "size": ("docs/assets", "templates", "tools/browser_python.py"),
    "lamb": ("training/optimizer",),
    "arithmetic": ("training/model",),
    "wire": ("training/averaging/wire.py",),
    "tally": ("training/monitor/tally.py", "training/records"),
    "groups": ("training/averaging/matchmaking.py",),
    "crowd": ("calculator/swarm/aggregation.py", "training/averaging"),
    "swarm": ("training/averaging", "training/run"),
    "defence": ("calculator/swarm/aggregation.py", "training/averaging/aggregation.py"),
    "sparse": ("training/sparse",),
    "judging": ("training/sparse", "training/monitor/judging.py"),
    "sampled": ("training/sparse", "training/monitor/judging.py"),
}
ON_REQUEST = {
    "lighthouse": ("docs/assets", "templates", "mkdocs.yml"),  # large to fetch
    "snapshot": ("docs/assets/worker",),  # a part of what start measures, explained
    "slow_links": ("training/averaging", "training/network"),  # needs root and most of an hour
    "sparse_links": ("training/sparse",),  # needs root and ten minutes
    "long_rounds": ("training/sparse",),  # takes most of an hour
    "gradient": ("training/averaging/wire.py",),  # writes a file that a page draws
    "tab": ("docs/assets/tab", "training/recipes/tab.toml"),  # takes two whole cores for minutes
    "tab_ways": ("docs/assets/tab",),  # fetches a library
    "tabs": ("docs/assets/tab", "docs/assets/volunteer"),  # two whole cores, a quarter of an hour
}
KNOWN = PARTS | ON_REQUEST
RECORDED = ROOT / "benchmarks" / "recorded.json"


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="build.py bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(KNOWN)}")
    parser.add_argument("--quick", action="store_true", help="fewer runs, rougher figures")
    words = "into benchmarks/recorded.json, which git keeps and the pages show"
    parser.add_argument("--record", action="store_true", help=words)
    words = "measure nothing: list recorded parts that are older than what they measure"
    parser.add_argument("--stale", action="store_true", help=words)
    options = parser.parse_args()
    unknown = set(options.parts) - set(KNOWN)
    if unknown:
        parser.error(f"PART = {', '.join(sorted(unknown))}: must be one of {', '.join(KNOWN)}")
    if options.stale:
        for line in stale(recorded()):
            say(line)
        return
    path = RECORDED if options.record else ROOT / "bench" / "latest.json"
    with fresh_visit() as visit:
        chromium = visit.browser.version
    for name in options.parts or PARTS:
        words_of_machine = machine(chromium)
        table = import_module(f"benchmarks.{name}").run(options.quick)
        say(str(table))
        command = f"python3 build.py bench {name}{' --quick' if options.quick else ''}"
        # At once, so that a later part's failure loses nothing.
        write_part(path, name, table, command, words_of_machine)
    facts = ("processor", "cores", "system", "load")
    say(", ".join(f"{what}: {words_of_machine[what]}" for what in facts))
    say(f"Written to {path.relative_to(ROOT)}.")


def recorded() -> dict[str, Any]:
    """All recorded parts, those in files of their own included."""
    parts: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))["parts"]
    for name in KNOWN:
        path = RECORDED.with_name(f"{name.replace('_', '-')}.json")
        if path.exists():
            parts[name] = json.loads(path.read_text("utf-8"))
    return parts


def stale(parts: dict[str, Any]) -> Iterator[str]:
    """One line for each recorded part whose sources have changed since it was measured."""
    for name, part in parts.items():
        date = part["machine"]["date"]
        command = ["git", "log", f"--since={date}", "--format=%cs", "--", *KNOWN[name]]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        if changes := done.stdout.split():
            times = f"{len(changes)} commits" if len(changes) > 1 else "1 commit"
            where = ", ".join(KNOWN[name])
            yield f"{name}, measured {date[:10]}: {times} since, the last {changes[0]}, in {where}"


if __name__ == "__main__":
    main()
