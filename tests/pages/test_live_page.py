"""The live page as it is built: the recorded run in words, and runs with little in them."""

import json
import random
import re
from datetime import datetime
from pathlib import Path

import pytest

from calculator.units import format_bytes
from templates.pages.live.context import describe
from templates.pieces.loss_curve import draw
from templates.pieces.recorded_run import LIVE, Run, first_run
from tests.browser.written_run import WrittenRun
from tests.pages.scripts import call

MOST_ROWS = 100  # of templates/pages/live/texts.mjs
MOMENTS = {
    "2026-03-04T23:59:59.999Z": "4 March 2026, 23:59 UTC",
    "2026-03-04T23:30:00+02:00": "4 March 2026, 21:30 UTC",
}


@pytest.fixture
def young(tmp_path: Path) -> Run:
    """A run that has only just been opened."""
    WrittenRun(tmp_path / "young").open()
    return Run("young", "", tmp_path)


def person(number: int, **others: object) -> dict[str, object]:
    times = dict.fromkeys(("first_seen", "last_seen"), "2026-11-21T09:19:33.297Z")
    counted = {"samples": 5, "seconds": 1.0, "steps": 1, **times, "state": "training"}
    return {"id": f"{number:012x}", "name": "", **counted, **others}


def test_only_a_finished_run_says_how_long_it_took(young: Run) -> None:
    assert describe(young)["left"] == ""
    times = {"start": "2026-11-21T09:19:33.297Z", "finished": "2026-11-22T11:20:35.297Z"}
    (young.folder / "run.json").write_text(json.dumps(young.card | times))
    assert describe(young)["left"] == "It took 1 d 2 h."


def test_the_page_says_what_the_files_say() -> None:
    run, page = first_run(), describe(first_run())
    last, moved = run.steps[-1], [step["bytes_sent"] + step["bytes_received"] for step in run.steps]
    assert page["step"] == str(last["step"])
    assert page["loss"] == f"{last['loss']:.3f}"
    assert page["samples"] == f"{sum(step['samples'] for step in run.steps):,}"
    assert plain(page["traffic"]) == format_bytes(sum(moved))
    assert page["share"] == last["step"] / run.card["schedule"]["total_steps"]
    assert [person["name"] for person in page["contributors"]] == [
        peer["name"] for peer in sorted(run.peers, key=lambda peer: -peer["samples"])
    ]
    assert [entry["sha256"] for entry in reversed(page["checkpoints"])] == [
        entry["sha256"] for entry in run.checkpoints
    ]
    assert ["Parameters", f"{run.card['parameters']:,}"] in page["about"]


def test_every_picture_on_the_page_is_a_file() -> None:
    rows = describe(first_run())["pictures"]
    assert rows
    for row in rows:
        for image in row["images"]:
            assert (LIVE / image["address"]).is_file()
            assert row["prompt"] in image["words"]


def test_a_run_without_a_step_has_dashes(young: Run) -> None:
    page = describe(young)
    assert (page["step"], page["loss"], page["curve"]) == ("0", "–", "")
    assert (page["contributors"], page["checkpoints"], page["pictures"]) == ([], [], [])
    assert page["join_heading"] == "Join this run"


def test_a_crowd_is_cut_to_what_a_page_can_hold(young: Run) -> None:
    people = [person(number) for number in range(500)]
    (young.folder / "peers.json").write_text(json.dumps(people))
    rows = describe(young)["contributors"]
    assert len(rows) == MOST_ROWS
    assert rows[0]["name"] == "0" * 12, "who gave no name is shown by their key"
    assert not describe(young)["has_traffic"]


def test_traffic_is_what_was_sent_and_received_and_what_is_no_volunteer_is_left_out(
    young: Run,
) -> None:
    first = person(1, bytes_sent=2**20, bytes_received=2**21)
    people = [first, person(2), person(3, samples="many"), {"id": "alone"}]
    (young.folder / "peers.json").write_text(json.dumps(people))
    page = describe(young)
    assert page["has_traffic"]
    assert [plain(one["traffic"]) for one in page["contributors"]] == ["3.00 MiB", "–"]
    assert [one["id"] for one in page["contributors"]] == [one["id"] for one in people[:2]]


def test_a_half_written_line_does_not_stop_the_build(young: Run) -> None:
    step = first_run().steps[0]
    lines = f'{json.dumps(step)}\n{{"step": 2, "ti'
    (young.folder / "progress.jsonl").write_text(lines)
    assert describe(young)["step"] == "1"


def test_the_curve_leaves_out_steps_without_a_loss_and_thins_long_runs() -> None:
    curve = draw([(step, None if step % 7 == 0 else 4 - step / 10_000) for step in range(1, 9000)])
    points = re.search(r'points="([^"]*)"', curve)
    assert 300 < len(points[1].split()) <= 601
    assert "Loss from 4.000 at step 1 to 3.100 at step 8,999" in curve


def words(name: str, *values: object) -> list[str]:
    """Values in words, as a function of the live page's script writes them."""
    return call("docs/assets/live/words.js", name, [[value] for value in values])


def plain(text: str) -> str:
    """A text in which any space is a plain one."""
    return " ".join(text.split())


def test_numbers_are_grouped_as_python_groups_them() -> None:
    draw_from = random.Random(5)
    sizes = [10 ** draw_from.uniform(0, 15) for _ in range(500)]
    numbers = [round(draw_from.choice([-1, 1]) * size) for size in sizes]
    numbers += [0, 7, 999, 1000, 999_999, 1_000_000, -999, -1000]
    found = call("docs/assets/digits.js", "grouped", [[n] for n in numbers])
    assert found == [f"{n:,}" for n in numbers]
    parts = [[1234.5, 1], [0.04, 1], [1234.56789, 3], [2000.0, 3], [2.5], [-0.2], [999.9]]
    assert call("docs/assets/digits.js", "grouped", parts) == [
        *("1,234.5", "0", "1,234.568", "2,000", "3", "0", "1,000")
    ]


def test_times_are_told_in_words() -> None:
    moments = [datetime.fromisoformat(time).timestamp() * 1000 for time in MOMENTS]
    assert words("momentInWords", *moments) == list(MOMENTS.values())
    seconds = {9: "9 s", 59.4: "59 s", 1399.5: "23 min 20 s", 3661: "1 h 1 min", 90_000: "1 d 1 h"}
    assert words("duration", *seconds) == list(seconds.values())


def test_sizes_are_in_the_calculators_words() -> None:
    draw_from = random.Random(17)
    sizes = [round(2 ** draw_from.uniform(0, 55)) for _ in range(2000)]
    edges = [999.5 / 1024 * 2**power for power in (10, 20, 30, 40, 50)]
    sizes += [round(edge) + more for edge in edges for more in (-1, 1)]
    assert [plain(size) for size in words("bytes", *sizes)] == [format_bytes(n) for n in sizes]


def test_traffic_is_drawn_as_the_mean_of_recent_steps() -> None:
    # every fifth step moves more, as states are averaged then; the mean of five is level
    moved = [5.0, 1.0, 1.0, 1.0, 2.0] * 3
    means, few = call("docs/assets/live/series.js", "recentMeans", [[moved, 5], [[None, 4.0], 5]])
    assert means[:2] == [5.0, 3.0]  # of as many steps as there are
    assert means[4:] == [2.0] * 11
    assert few == [None, 4.0]
