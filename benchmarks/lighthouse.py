"""Lighthouse's view of the pages for visitors on a phone, from a server that compresses."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.chromium import site_with_bare_pages
from benchmarks.figures import Figure, Table, median
from tools.chromium import FLAGS, find_chromium
from tools.console import ROOT
from tools.console import run as run_command
from tools.node import Node, environment_of, find_node, install

PAGES = {"home": ""} | {
    name: f"{name}/"
    for name in (
        "calculator",
        "plan",
        "numbers",
        "how-it-works",
        "security",
        "accuracy",
        "tutorial",
        "run-your-own",
        "live",
        "join",
        "about",
    )
}
# Lighthouse's names of what is scored, ours, and the least we want of 100.
SCORES = {
    "performance": ("performance", 98),
    "accessibility": ("accessibility", 100),
    "best-practices": ("best practices", 100),
    "seo": ("search", 100),
}
AUDITS = {
    "first-contentful-paint": ("first paint", "ms", None),
    "largest-contentful-paint": ("largest paint", "ms", None),
    "total-blocking-time": ("blocked", "ms", None),
    "cumulative-layout-shift": ("layout shift", "", 0.02),
    "total-byte-weight": ("bytes sent", "bytes", None),
}


def run(quick: bool) -> Table:
    """Visit each page once or, to be robust against a busy machine, three times."""
    rounds = 1 if quick else 3
    node = find_node()
    packages = install(node, ROOT / "tools" / "lighthouse", "Lighthouse", {"Lighthouse"})
    program = packages / "lighthouse" / "cli" / "index.js"
    reports: dict[str, list[dict[str, Any]]] = {}
    with site_with_bare_pages() as address:
        for _ in range(rounds):
            for name, path in PAGES.items():
                reports.setdefault(name, []).append(_report(node, program, address + path))
    figures = [figure for name, seen in reports.items() for figure in _figures(name, seen)]
    # its phone is four times slower than the machine, however slow that is
    speeds = [
        report["environment"]["benchmarkIndex"] for seen in reports.values() for report in seen
    ]
    figures.append(
        Figure("speed of this machine, a desktop's = 1,500 to 2,000", median(speeds), "")
    )
    version = reports["home"][0]["lighthouseVersion"]
    return Table(f"Lighthouse {version}, mobile (median of {rounds})", figures)


def _report(node: Node, program: Path, address: str) -> dict[str, Any]:
    """Lighthouse's report on one page in a fresh browser, with its own simulated phone."""
    with TemporaryDirectory() as folder:
        target = Path(folder) / "report.json"
        flags = " ".join(["--headless=new", *FLAGS])
        command: list[str | Path] = [node.node, program, address, "--quiet", "--output=json"]
        command += [f"--output-path={target}", f"--chrome-flags={flags}"]
        command += ["--no-enable-error-reporting", "--form-factor=mobile"]
        environment = {**environment_of(node), "CHROME_PATH": os.fspath(find_chromium())}
        run_command(command, f"Lighthouse did not finish {address}.", environment=environment)
        report: dict[str, Any] = json.loads(target.read_text("utf-8"))
    return report


def _figures(name: str, reports: list[dict[str, Any]]) -> Iterator[Figure]:
    for key, (words, least) in SCORES.items():
        score = median([100 * report["categories"][key]["score"] for report in reports])
        yield Figure(f"{name}: {words}", score, "", least, at_least=True)
    for key, (words, unit, most) in AUDITS.items():
        value = median([report["audits"][key]["numericValue"] for report in reports])
        yield Figure(f"{name}: {words}", value, unit, most)
    requests = [request_count(report) for report in reports]
    yield Figure(f"{name}: requests", median(requests), "", 20)


def request_count(report: dict[str, Any]) -> int:
    """Requests to the server; Lighthouse lists the pictures in styles, too."""
    items = report["audits"]["network-requests"]["details"]["items"]
    return sum(item["url"].startswith("http") for item in items)
