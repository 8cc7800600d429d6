"""'How it works' shows what the calculator counts and what was measured."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from calculator.swarm import communication
from templates.pages.calculator.context import ask
from templates.pages.how_it_works import slow_links
from templates.pages.how_it_works.context import (
    TECHNIQUES,
    context,
    exchange_stairs,
    plain_models,
    sharing_factor,
    techniques,
)
from templates.render import render_page
from tests.pages.tables import rows_of


@pytest.fixture(scope="module")
def page() -> str:
    return render_page("how-it-works")


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


def test_sharing_divides_the_parameters_by_nearly_nine() -> None:
    assert sharing_factor() == pytest.approx(1_116_354_148 / 125_894_244)


def test_each_technique_is_the_only_one_in_its_address() -> None:
    for technique, (_, _, added) in zip(techniques(), TECHNIQUES, strict=True):
        for saving, (_, _, choices) in zip(technique.savings, plain_models(), strict=True):
            if saving is None:
                assert technique.label == "LoRA"
                continue
            peak = ask("answer", **(choices | added))["figures"]["report.gpu.peak"]
            assert saving.peak == peak
            assert 0 < saving.part < 100
            for name, value in added.items():
                assert f"{name}={value}" in saving.query


def test_the_race_is_drawn_as_the_protocol_answers(page: str) -> None:
    race: Any = context()["race"]
    for timeline in race["timelines"].values():
        for lane in timeline["lanes"]:
            for part in lane:
                place = f'x="{round(part["left"], 3)}%" width="{round(part["width"], 3)}%"'
                assert f'<rect class="race__{part["activity"]}" {place}' in page
    for name, text in race["figures"].items():
        for shown in re.findall(rf'data-figure="{re.escape(name)}">([^<]*)<', page):
            assert shown == text


def test_every_layer_of_the_model_is_drawn(page: str) -> None:
    assert page.count('"layers__one') == 64
    assert page.count("layers__one layers__last") == 1


def row(measured: str, bits: int, **more: Any) -> dict[str, Any]:
    common = {
        "measured": measured,
        "bits": bits,
        "mbit_per_second": 20.0,
        "round_trip_ms": 100.0,
        "loss_percent": 0.0,
        "congestion_control": "cubic",
        "peers": 2,
        "reachable": 2,
        "parameters": 1000,
        "overlap": None,
        "seconds": bits / 4,
        "bytes_sent": bits * 125,
        "expected_bytes": bits * 125,
    }
    return common | more


def test_measured_exchanges_become_rows(tmp_path: Path) -> None:
    path = tmp_path / "slow-links.json"
    assert slow_links.read(path) is None
    rows = [row("exchange", bits) for bits in (8, 16, 32)]
    rows += [row("exchange", 8, loss_percent=1.0), row("exchange", 8, peers=4, reachable=2)]
    rows += [row("step", 8, overlap=overlap, seconds=9 - 4 * overlap) for overlap in (False, True)]
    rows.reverse()  # the order of the file does not matter
    path.write_text(json.dumps({"machine": {"date": "2026-11-21T11:00"}, "rows": rows}), "utf-8")
    found = slow_links.read(path)
    assert found is not None
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
    assert again is not None
    assert again.with_bbr == (2.0, 0.5)
    assert found.overlaps == [slow_links.Overlap(f"{line}, 8 bits", 9, 5)]


def test_what_was_measured_is_on_the_page(page: str) -> None:
    found = slow_links.read()
    assert ("We also measured it" in page) == (found is not None)
    assert ("\n\nThe next table shows" in page) == bool(found and found.overlaps)
    for item in found.exchanges if found else []:
        assert [str(cell) for cell in item.cells] in rows_of(page)
