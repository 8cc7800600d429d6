"""'How training together works' shows what is counted, 'Measurements' what was measured."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from calculator.planner.communicate import Connection
from calculator.swarm import communication
from templates.pages.how_it_works import gradient, step
from templates.pages.how_it_works.context import context, exchange_stairs
from templates.pages.measurements import slow_links
from tests.pages.rendered import render_page

# by hand: 126.4 MB of gradients in 8 bits (reference run)
ONE_STEP = step.Step(126_400_000, Connection(up=50e6, down=50e6))


def test_each_stair_sends_less_and_the_last_a_quarter_of_a_gigabyte() -> None:
    stairs = exchange_stairs()
    sent = [stair.sent for stair in stairs]
    assert sent == sorted(sent, reverse=True)
    # 126.4 MB of gradients in 8 bits (reference run), each sent 15/16 times out and back
    assert sent[-1] / 1e6 == pytest.approx(126.4 * 2 * 15 / 16, abs=0.1)
    # 1,116,354,148 numbers of 4 bytes, eight times
    assert sent[0] == communication.all_reduce_bytes(4 * 1_116_354_148, 16) * 8


def test_a_home_takes_as_much_longer_as_its_line_is_slower() -> None:
    first, *_, last = exchange_stairs()
    assert (first.on_cluster, first.at_home) == ("54 s", "3.0 h")
    assert (last.on_cluster, last.at_home) == ("0.19 s", "38 s")


def test_own_pace_does_more_than_equal_shares_as_told() -> None:
    # Equal shares of 80 take the slowest 80 s, and an exchange 6: two steps of 240 in 180 s. At
    # their own pace, 13 per second need 18.5 s and at most 2 more: six steps, or 7 at the most.
    told = r"finish (\d+) in 3 minutes with equal shares and ([\d,]+) at"
    equal, own = re.findall(told, render_page("how-it-works"))[0]
    assert equal == "480"
    assert 6 * 240 <= int(own.replace(",", "")) <= 7 * 246


def row(measured: str, bits: int, **more: Any) -> dict[str, Any]:
    link = {"mbit_per_second": 20.0, "round_trip_ms": 100.0, "loss_percent": 0.0}
    link |= {"congestion_control": "cubic", "peers": 2, "reachable": 2, "overlap": None}
    sent = {"seconds": bits / 4, "bytes_sent": bits * 125, "expected_bytes": bits * 125}
    return {"measured": measured, "bits": bits, "parameters": 1000, **link, **sent, **more}


def test_measured_exchanges_become_rows(tmp_path: Path) -> None:
    path = tmp_path / "slow-links.json"
    assert slow_links.read(path) is None
    rows = [row("exchange", bits) for bits in (8, 16, 32)]
    rows += [row("exchange", 8, loss_percent=1.0), row("exchange", 8, peers=4, reachable=2)]
    rows += [row("step", 8, overlap=overlap, seconds=9 - 4 * overlap) for overlap in (False, True)]
    rows.reverse()  # the order of the file does not matter
    path.write_text(json.dumps({"machine": {"date": "2026-11-21T11:00"}, "rows": rows}), "utf-8")
    found = slow_links.read(path)
    line = "20 Mbit/s, 100 ms round trip"
    assert [item.cells for item in found.exchanges] == [
        [line, "2", "0.0 million", "0.0 s", "2.0 s", "4.0 s", "8.0 s"],
        [line, "4, 2 behind a firewall", "0.0 million", "0.0 s", "2.0 s", *["\N{EN DASH}"] * 2],
        [f"{line}, 1 % lost", "2", "0.0 million", "0.0 s", "2.0 s", "\N{EN DASH}", "\N{EN DASH}"],
    ]
    # 1,000 bytes to average between two: each sends 1,000, at 20 Mbit/s
    assert found.exchanges[0].full_rate == pytest.approx(8 * 1000 / 20e6)
    assert (found.compression, found.has_losses) == (4.0, True)
    assert found.with_bbr is None
    rows.append(row("exchange", 8, loss_percent=1.0, congestion_control="bbr", seconds=0.5))
    path.write_text(json.dumps({"machine": {"date": "2026-11-21T11:00"}, "rows": rows}), "utf-8")
    again = slow_links.read(path)
    assert again.with_bbr == (2.0, 0.5)
    assert found.overlaps == [slow_links.Overlap(f"{line}, 8 bits", 9, 5)]


def test_each_volunteer_sends_four_thirds_of_its_gradients() -> None:
    # by hand: of three parts, two go to the others, and the averaged one goes to two others
    for volunteer in range(3):
        sent = [ONE_STEP.sent_so_far(picture, volunteer) for picture in step.Picture]
        assert sent == sorted(sent)
        assert sent[-1] == pytest.approx(126_400_000 * 4 / 3)
    assert ONE_STEP.sent() == pytest.approx(126_400_000 * 4 / 3)
    assert ONE_STEP.sent(16) == pytest.approx(126_400_000 * 2 * 15 / 16)
    # 168.5 MB at 50 Mbit/s, and TCP's start
    assert 26.9 < ONE_STEP.exchange_seconds < 29


def test_every_part_goes_to_its_averager_and_back() -> None:
    marks = step.marks(ONE_STEP)
    copies = [mark for mark in marks if mark.kind == "part"]
    means = [mark for mark in marks if mark.kind == "mean"]
    assert (len(copies), len(means)) == (9, 9)
    for mark in copies:
        part, owner = int(mark.text) - 1, mark.series - 1
        for picture, column in (
            (step.Picture.CUT, owner),
            (step.Picture.FIRST, part if part == 0 else owner),
            (step.Picture.OTHERS, part),
        ):
            assert picture in mark.shown
            assert mark.places[picture][0] // step.COLUMN_STEP == column
    homes = {mark.places[step.Picture.CUT] for mark in copies}
    assert {mark.places[step.Picture.BACK] for mark in means} == homes
    averaged = [mark for mark in means if step.Picture.AVERAGE in mark.shown]
    assert sorted(int(mark.text) for mark in averaged) == [1, 2, 3]
    arrows = [mark for mark in marks if mark.kind == "arrow"]
    counts = [sum(picture in mark.shown for mark in arrows) for picture in step.Picture]
    assert counts == [0, 0, 0, 2, 4, 0, 6, 0]


def test_the_step_is_on_the_page_in_pictures_and_words() -> None:
    assert len(step.scenes(step.Step(1, Connection(1e6, 1e6)))) == len(step.Picture)
    page, shown = render_page("how-it-works"), context()["scenes"]
    assert len(shown) == len(step.Picture)
    for scene in shown:
        assert f"</span> {scene.title}</strong> {scene.words}</li>" in page
    # one picture each without a script, and the stage
    assert page.count('<svg class="step__picture"') == len(step.Picture) + 1
    words = " ".join(scene.words for scene in shown)
    # 126.4 MB of gradients in 8 bits (reference run): a third, four thirds, and for 16 volunteers
    for size in ("126.4 MB", "42.1 MB", "168.5 MB", "237.0 MB"):
        assert size in words


def test_a_gradients_pictures_have_a_bar_for_each_bin_with_values(tmp_path: Path) -> None:
    path = tmp_path / "gradient.json"
    assert gradient.read(path) is None
    row = {"bytes": 4e6, "error": 0.1, "tensor_error": 0.2, "values": 2, "from_beyond": 0.5}
    rows = [row | {"bits": bits, "wide": [0, 1, 9, 0], "zoom": [3, 0]} for bits in (32, 16, 8)]
    path.write_text(json.dumps({"formats": rows}), "utf-8")
    found = gradient.read(path)
    foot = gradient.TOP + gradient.PANEL
    for drawing, bars in ((found.whole, 2), (found.part, 1)):
        outlines = re.findall(r'class="gradient__bars" d="([^"]*)"', drawing)
        assert len(outlines) == 3
        tops = re.findall(r"V([\d.]+)h", outlines[0])
        assert sum(float(top) < foot for top in tops) == bars
    # log10(1 + 9) = 1 is the highest; 1 is log10(2) = 0.301 of it
    (tops, *_) = re.findall(r'class="gradient__bars" d="([^"]*)"', found.whole)
    _, low, high, _ = (float(top) for top in re.findall(r"V([\d.]+)h", tops))
    assert foot - high == pytest.approx(gradient.PANEL)
    assert foot - low == pytest.approx(0.301 * gradient.PANEL, abs=0.1)
