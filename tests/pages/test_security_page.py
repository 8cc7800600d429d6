"""'Security' and 'Measurements' show what Python computes, and commands and fields that exist."""

import json
from pathlib import Path
from pkgutil import resolve_name

import pytest

from benchmarks.figures import Figure, Table, write_part
from templates.pages.measurements import chaos, defence, judging
from templates.pages.measurements.protections import BOUNDED, CLOSED, Claim
from templates.pieces.benchmark import read_benchmark
from tests.pages.rendered import render_page
from tests.pages.tables import rows_of
from tools.console import ROOT

# Libraries that are imported here for the first time warn of their own future.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def measurements() -> str:
    return render_page("measurements")


# Each number in the code with the words that a page has for it.
SAID = [
    ("training.authority.admission:Policy.lifetime", 600, "security", "lasts ten minutes"),
    ("training.authority.admission:Policy.lifetime", 600, "security", "within ten minutes"),
    ("training.averaging.aggregation:ITERATIONS", 3, "measurements", "three iterations"),
    ("training.averaging.aggregation:LONGEST", 10, "measurements", "ten times the median length"),
    ("training.averaging.paces:FASTEST", 4, "measurements", "four times the median pace"),
    ("training.averaging.progress:LIARS", 4, "measurements", "fewer than a quarter"),
    ("training.records.validator:MOST_BYTES", 16 * 1024, "measurements", "at most 16 kB"),
    ("training.records.kinds:LONGEST_SECONDS", 900, "measurements", "for at most 15 minutes"),
    ("training.run.recipes:PAPER.swarm.aggregation", "centered-clip", "security", "as in `paper`"),
    ("training.sparse.judging:FIRST_ROUNDS", 10, "measurements", "after the first ten, gain"),
    ("training.sparse.judging:USELESS", 0.1, "measurements", "less than a tenth of"),
    ("training.sparse.judging:SAMPLE", 0.25, "measurements", "a quarter of the others"),
    ("training.sparse.judging:FIRST_ROUNDS", 10, "measurements", "after ten good rounds therefore"),
    ("training.sparse.shared:LONGEST", 4, "measurements", "four times the median length"),
    ("training.sparse.shared:HEAVIEST", 8, "measurements", "eight times the median number"),
    ("benchmarks.sampled:PEERS", 100, "measurements", "enough for a hundred volunteers"),
    ("benchmarks.sampled:BAD", 20, "measurements", "Twenty of them were honest"),
    ("benchmarks.sampled:HONEST_ROUNDS", 12, "measurements", "honest for twelve rounds"),
    ("benchmarks.chaos:KILL_SECONDS", 30, "measurements", "killed every half minute"),
    ("benchmarks.chaos:SMOOTHED", 10, "measurements", "mean of 10 steps"),
    ("benchmarks.misbehaving:SPOIL", -1000, "measurements", "gradients times \N{MINUS SIGN}1,000"),
    ("benchmarks.misbehaving:SPOIL", -1000, "measurements", "updates times \N{MINUS SIGN}1,000"),
    ("benchmarks.misbehaving:EXAGGERATION", 10, "measurements", "claims ten times its work"),
]


@pytest.mark.parametrize(("name", "value", "page", "words"), SAID)
def test_numbers_on_the_pages_are_the_codes(
    name: str, value: object, page: str, words: str
) -> None:
    assert resolve_name(name) == value
    assert words in render_page(page)


def write_measurement(path: Path) -> None:
    figures = [
        Figure(f"{way}, {attack}: {what}", value, "")
        for way, factor in (("mean", 100.0), ("centered-clip", 1.0))
        for attack in defence.ATTACKS
        for what, value in (
            ("error of the average", 0.01 * factor),
            ("held-out loss after 20 steps", 2.5 + factor),
            ("held-out loss after 40 steps", 1.5 + factor),
            ("sent by all", 10_000.0),
        )
    ]
    for way, value in (("mean", 88.9), ("centered-clip", 263.2)):
        figures.append(Figure(f"{way}: a million values of 9 peers", value, "ms"))
    table = Table("9 peers, 2 of them bad where not all are honest; 40 steps", figures)
    write_part(path, "defence", table, "bench", {"date": "2026-11-21T11:00:00+00:00"})


def test_measured_figures_become_rows(tmp_path: Path) -> None:
    path = tmp_path / "recorded.json"
    assert defence.read(path) is None
    write_measurement(path)
    found = defence.read(path)
    assert found.rows[1] == ["Gradients times 1,000", "100 %", "101.50", "1.0 %", "2.50"]
    assert defence.in_per_cent(float("inf")) == "not finite"
    assert (found.steps, found.looks) == (40, [20, 40])
    assert found.curves[3] == ["Gradients times 1,000", "CenteredClip", "3.50", "2.50"]
    assert found.milliseconds == ("89 ms", "263 ms")
    assert found.megabytes == ("10.00 MB", "10.00 MB")


def test_what_judging_does_is_on_the_page_as_recorded(measurements: str) -> None:
    found = judging.read()
    recorded = read_benchmark("judging")
    values = recorded.values
    for attack, row in zip(judging.ATTACKS, found.rows, strict=True):
        assert row in rows_of(measurements)
        assert row[1] == f"{values[f'{attack}, not judged: held-out loss']:.2f}"
        assert row[2] == f"{values[f'{attack}, judged: held-out loss']:.2f}"
    assert found.rows[0][3] == "\N{EN DASH}"
    left_out = 1 - values["sign turned, judged: bad updates taken"]
    assert found.rows[2][3] == f"{left_out:.0%}"


CHAOS = {
    "steps_calm": 240, "steps": 200, "compared_at_step": 200, "loss_calm": 1.5, "loss": 1.515,
    "sequences_calm": 20_000, "sequences": 12_000, "loss_by_sequences_calm": 1.7,
    "loss_by_sequences": 1.55, "pictures_right_calm": 0.9, "pictures_right": 0.875,
    "curve": [[1, 4.6], [200, 1.515]], "curve_calm": [[1, 4.6], [240, 1.4]],
}  # fmt: skip


def test_the_figures_of_the_chaos_become_rows_and_curves(tmp_path: Path) -> None:
    path = tmp_path / "chaos.json"
    assert chaos.read(path=path) is None
    path.write_text(json.dumps({"local": CHAOS}), "utf-8")
    assert chaos.read(path=path) is None
    found = chaos.read("local", path)
    assert found.rows == [
        ["Steps", "240", "200"],
        ["Loss, mean of 10 steps to step 200", "1.500", "1.515"],
        ["Sequences counted", "20,000", "12,000"],
        ["Loss, mean of 10 steps to sequence 12,000", "1.700", "1.550"],
        ["Pictures that match their captions, at the end", "90.0%", "87.5%"],
    ]
    assert found.curve.count("<polyline") == 2


def test_what_the_page_says_of_the_liars_is_as_recorded(measurements: str) -> None:
    from benchmarks.chaos import ROLES

    recorded = {exchange: chaos.read(exchange) for exchange in ROLES}
    for exchange, found in recorded.items():
        assert found is not None, exchange
        for role in set(ROLES[exchange].values()) - {"poisoner"}:
            claimed, credited = (found.figures[f"{role}_{key}"] for key in ("claimed", "credited"))
            assert f"{claimed:,}" in measurements
            assert f"{credited:,}" in measurements
        assert f"Of the {found.figures['steps']:,} " in measurements


@pytest.mark.parametrize("claim", [*CLOSED, *BOUNDED], ids=lambda claim: claim.test)
def test_every_claim_names_a_test_that_exists(claim: Claim, measurements: str) -> None:
    source = (ROOT / "tests" / "training" / claim.file).read_text("utf-8")
    assert f"def {claim.test}(" in source
    assert claim.words in measurements
    assert claim.test in measurements
