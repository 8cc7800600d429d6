"""The home page: the swarm drawn from a run, and figures that add up."""

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest

from calculator.catalog import GPUS, find_model
from calculator.page.states import read_state
from calculator.planner.need import Verdict, judged, need_of
from calculator.planner.presets import PRESETS
from calculator.units import format_bytes
from templates.pages.index import run_of_2021
from templates.pages.index.context import LARGE_RUN, TEXTS, large_model, stairs
from templates.pages.index.fit import (
    ANSWERS,
    BATCHES,
    CARDS,
    MODELS,
    NEVER,
    UNSURE,
    WAYS,
    answer,
    table,
)
from templates.pieces.recorded_run import Run, first_run
from templates.pieces.scripts import ask_script
from tests.browser.written_run import WrittenRun
from tests.pages.rendered import render_page
from tests.pages.scripts import call
from tests.pages.test_live_page import person

SHOWN = 24  # the most volunteers that templates/pages/index/ring.js draws


def discs(peers: list[dict[str, object]]) -> list[dict[str, Any]]:
    return call("templates/pages/index/ring.js", "discs", [[peers]])[0]


@pytest.fixture
def young(tmp_path: Path) -> Run:
    """A run of two steps, to which a test adds volunteers."""
    run = WrittenRun(tmp_path / "young")
    run.open()
    run.add(2)
    return Run("young", "", tmp_path)


def drawn(run: Run, *peers: dict[str, object]) -> ElementTree.Element:
    (run.folder / "peers.json").write_text(json.dumps(peers))
    swarm = ask_script(TEXTS, run.folder)["swarm"]
    return ElementTree.fromstring(swarm.replace(" data-off", ' data-off=""'))


@pytest.mark.parametrize("count", [1, 2, 4, 12, 24, 500])
def test_volunteers_stay_in_the_figure_and_apart(young: Run, count: int) -> None:
    left, top, width, height = map(float, drawn(young).get("viewBox", "").split())
    placed = discs([person(number, samples=10 + number) for number in range(count)])
    assert len(placed) == min(count, SHOWN)
    for disc in placed:
        assert left + disc["radius"] <= disc["x"] <= left + width - disc["radius"]
        assert top + disc["radius"] <= disc["y"] <= top + height - disc["radius"]
    for first, second in itertools.pairwise(placed):
        distance = math.hypot(first["x"] - second["x"], first["y"] - second["y"])
        assert distance >= 0.75 * (first["radius"] + second["radius"])


def test_a_discs_area_is_the_contribution() -> None:
    small, large = discs([person(0, samples=100), person(1, samples=400)])
    assert large["radius"] == pytest.approx(2 * small["radius"])


def test_lines_join_each_two_who_are_there_and_a_hostile_name_is_only_text(young: Run) -> None:
    name = '<script>"&'
    figure = drawn(young, person(0, name=name), person(1, state="syncing"), person(2, state="left"))
    lines = [line for line in figure.iter() if line.get("class") == "swarm__chord"]
    on = [line.get("data-ends") for line in lines if line.get("data-off") is None]
    assert (len(lines), on) == (3, [f"{0:012x} {1:012x}"])
    assert name in {text.text for text in figure.findall(".//text")}
    assert name in figure.get("aria-label", "")


def test_the_page_shows_the_first_run_as_its_data_say() -> None:
    run, page = first_run(), render_page("index")
    last = run.steps[-1]
    assert f'data-run-figure="loss">{last["loss"]:.3f}<' in page
    assert f'data-run-figure="step">{last["step"]:,}<' in page
    for volunteer in run.peers:
        assert f'data-id="{volunteer["id"]}"' in page
    for prompt, _ in run.pictures:
        assert page.count(prompt) >= 2


def test_the_large_model_takes_a_gpu_decades() -> None:
    # Brown et al., 2020, table D.1: 3.64e3 petaflop/s-days; NVIDIA's data sheet: 312 teraFLOPS.
    seconds = 3.64e3 * 1e15 * 86400 / (312e12 * LARGE_RUN["utilization"] / 100)
    assert large_model().years == pytest.approx(seconds / (365.25 * 86400), rel=0.05)


def test_each_technique_needs_less_than_the_one_before() -> None:
    sizes = [stair.bytes for stair in stairs()]
    assert sizes == sorted(sizes, reverse=True)


def queries(model: str) -> list[tuple[str, list[Any], str, int]]:
    """Each state of a model in the table: its address, its way's entry, and its card and place."""
    whole = table()
    entry = whole["models"][model]
    return [
        (f"{entry['query']}&gpu={card}&batch_size={batch}&{way}", found, card, place)
        for batch, ways in zip(BATCHES, entry["ways"], strict=True)
        for way, found in zip(whole["ways"], ways, strict=True)
        if found
        for place, card in enumerate(CARDS)
    ]


@pytest.mark.parametrize("model", MODELS)
def test_the_small_calculator_says_what_the_full_one_says(model: str) -> None:
    for query, (kinds, verdicts, *needs), card, place in queries(model)[:: 3 * len(CARDS) - 1]:
        *parts, text = needs[int(kinds[place])]
        architecture, plan, gpu = read_state(dict(parse_qsl(query)))
        assert (architecture.name, gpu) == (model, GPUS[card])
        report = judged(architecture, plan.on(gpu))
        need = need_of(report)
        assert parts[:5] == list(report.gpu.as_json().values())
        assert sum(parts) == need.typical
        assert text == format_bytes(need.typical)
        assert list(Verdict)[int(str(verdicts)[place])] is need.verdict(gpu.memory), query


@pytest.mark.parametrize("model", MODELS)
def test_the_answer_is_the_least_change_that_fits(model: str) -> None:
    for batch, ways in zip(BATCHES, table()["models"][model]["ways"], strict=True):
        for place, card in enumerate(CARDS):
            found = answer(model, batch, GPUS[card])
            kinds = [list(Verdict)[int(way[1][place])] for way in ways if way]
            if found < len(WAYS):
                assert kinds.index(Verdict.FITS) == found
            else:
                assert Verdict.FITS not in kinds
                assert (found == UNSURE) is (Verdict.MAY_NOT_FIT in kinds)
    assert len(ANSWERS) == NEVER + 1


def test_more_memory_never_takes_a_larger_change() -> None:
    alike = [card for card in CARDS if not GPUS[card].predates_ampere]  # a T4 needs more for a step
    by_memory = sorted(alike, key=lambda card: GPUS[card].memory)
    for model, batch in itertools.product(MODELS, BATCHES):
        places = [answer(model, batch, GPUS[card]) for card in by_memory]
        assert places == sorted(places, reverse=True), (model, batch)


def test_without_javascript_a_table_names_every_model_of_the_small_calculator() -> None:
    (text,) = re.findall(r"<noscript>\s*<div.*?</noscript>", render_page("index"), re.S)
    titles = re.findall(r'<th scope="row">([^<]+)</th>', text)
    assert titles == [find_model(model).title for model in MODELS]


def test_the_2021_run_is_as_published() -> None:
    # Borzunov et al., 2022, section 3.3: "31250 steps (the first 10% is the warm-up)"; 3.4:
    # "2.5 months and passed about 80% of the training schedule";
    # 3.1: "1.1B parameters in total", with sharing "about 8x fewer".
    found = run_of_2021.figures(find_model("dalle-together"))
    assert (found["done"], found["steps"], found["share"]) == ("25,000", "31,250", "80 %")
    assert (found["months"], found["volunteers"]) == ("2.5 months", "37")
    assert (found["unshared"], found["shared"]) == ("1.1 billion", "126 million")
    assert (found["warm_up"], found["done_share"]) == ("3,125", "0.8")
    tokens = PRESETS["2021"].options["billion_tokens"]
    assert round(0.8 * 31_250) * 4_096 * 1_280 == pytest.approx(tokens * 1e9)  # type: ignore[operator]
    assert found["sequences"] == "102 million"
