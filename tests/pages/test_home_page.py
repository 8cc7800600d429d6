"""The home page: the swarm drawn from a run, and figures that add up."""

import itertools
import math
import re
from xml.etree import ElementTree

import pytest

from templates.pages.index.context import (
    LARGE_GPU_FLOP_PER_SECOND,
    LARGE_MODEL_FLOP,
    large_model,
    stairs,
)
from templates.pages.index.swarm_figure import (
    HEIGHT,
    SHOWN,
    TOP,
    WIDTH,
    discs,
    draw_loss,
    draw_swarm,
    in_words,
)
from templates.pieces.recorded_run import first_run
from templates.render import render_page


def peer(number: int, samples: int, state: str = "training", name: str = "") -> dict[str, object]:
    return {
        "id": f"{number:04d}",
        "name": name or f"volunteer {number}",
        "samples": samples,
        "state": state,
        "first_seen": f"2026-01-01T00:{number % 60:02d}:00Z",
    }


@pytest.mark.parametrize("count", [1, 2, 4, 12, 24, 500])
def test_volunteers_stay_in_the_figure_and_apart(count: int) -> None:
    placed = discs([peer(number, 10 + number) for number in range(count)])
    assert len(placed) == min(count, SHOWN)
    for disc in placed:
        assert disc.radius <= disc.x <= WIDTH - disc.radius
        assert TOP + disc.radius <= disc.y <= TOP + HEIGHT - disc.radius
    for first, second in itertools.pairwise(placed):
        distance = math.hypot(first.x - second.x, first.y - second.y)
        assert distance >= 0.75 * (first.radius + second.radius)


def test_a_discs_area_is_the_contribution() -> None:
    small, large = discs([peer(0, 100), peer(1, 400)])
    assert large.radius == pytest.approx(2 * small.radius)


def test_those_with_most_contributions_are_drawn() -> None:
    placed = discs([peer(number, number) for number in range(100)])
    assert {disc.peer["samples"] for disc in placed} == set(range(100 - SHOWN, 100))


def test_lines_join_each_two_who_are_there() -> None:
    peers = [peer(0, 9), peer(1, 9, "syncing"), peer(2, 9, "left")]
    drawing = ElementTree.fromstring(draw_swarm(peers, 0.5).replace(" data-off", ' data-off=""'))
    lines = [line for line in drawing.iter() if line.get("class") == "swarm__chord"]
    on = [line.get("data-ends") for line in lines if line.get("data-off") is None]
    assert (len(lines), on) == (3, ["0000 0001"])


def test_a_hostile_name_is_only_text() -> None:
    drawing = draw_swarm([peer(0, 1, name='<script>"&')], 1.0)
    assert "<script>" not in drawing
    assert ElementTree.fromstring(drawing).find(".//{*}text") is not None


def test_a_run_without_contributions_is_drawn() -> None:
    assert "0 volunteers" in draw_swarm([], 0.0)
    assert [disc.radius for disc in discs([peer(0, 0)])] == [7.0]


def test_the_figure_says_in_words_what_it_shows() -> None:
    assert "ada: 1,200 sequences, left" in in_words([peer(0, 1200, "left", "ada")])


def test_the_line_of_losses_falls_where_the_loss_falls() -> None:
    (line,) = re.findall(r'class="line" d="M([^"]+)"', draw_loss([4.0, 2.0, 1.0]))
    heights = [float(point.split()[1]) for point in line.split("L")]
    assert heights == sorted(heights)
    assert draw_loss([1.0])


def test_the_page_shows_the_first_run_as_its_data_say() -> None:
    run, page = first_run(), render_page("index")
    last = run.steps[-1]
    assert f'data-run-figure="loss">{last["loss"]:.2f}<' in page
    assert f'data-run-figure="step">{last["step"]:,}<' in page
    for volunteer in run.peers:
        assert f'data-id="{volunteer["id"]}"' in page
    for prompt, _ in run.pictures:
        assert page.count(prompt) >= 2


def test_a_recorded_run_is_labelled_as_one() -> None:
    run, page = first_run(), render_page("index")
    assert run.card["finished"]
    assert "A recorded run" in page
    assert f"recorded on {run.day}" in page
    assert "The run now" not in page


def test_the_large_model_takes_a_gpu_decades() -> None:
    # Brown et al., 2020, table D.1: 3.64e3 petaflop/s-days are 3.14e23 operations.
    assert pytest.approx(3.64e3 * 1e15 * 86400, rel=0.01) == LARGE_MODEL_FLOP
    assert LARGE_GPU_FLOP_PER_SECOND == 312e12
    assert large_model().years == 32


def test_each_technique_needs_less_than_the_one_before() -> None:
    sizes = [stair.bytes for stair in stairs()]
    assert sizes == sorted(sizes, reverse=True)
