"""The tutorial shows the notebook's own code and the memory of the notebook's own step."""

import re

import pytest

from calculator.cards import COMMON
from templates.pages.tutorial import context as tutorial_page
from templates.pages.tutorial.context import NOTEBOOK, NOTEBOOK_ROW, SMALL, cards, plans, stairs
from templates.pages.tutorial.notebooks import code, code_cells
from tests.pages.rendered import render_page

NEARLY_EXACT = 0.0001


def test_every_way_to_train_has_been_measured_and_agrees() -> None:
    for stair in stairs():
        assert stair.measured == pytest.approx(stair.peak, rel=NEARLY_EXACT)


def test_the_marked_way_is_the_notebooks() -> None:
    cell = code(NOTEBOOK, "parameters")
    names: dict[str, object] = {}
    exec(compile(cell, NOTEBOOK, "exec"), names)
    _, plan = plans()[NOTEBOOK_ROW]
    assert names["EIGHT_BIT"] is (plan["optimizer_bits"] == "8")
    assert names["CHECKPOINTING"] is (plan["checkpointing"] == "full")
    assert str(names["ACCUMULATION"]) == plan["accumulation"]
    assert names["SEQUENCE_LENGTH"] == tutorial_page.MODEL.sequence_length
    assert names["MICRO_BATCH"] == 1
    assert "offload" not in plan


def test_the_code_on_the_page_is_the_notebooks() -> None:
    shown = re.findall(r"^```python\n(.*?)\n```$", render_page("tutorial"), re.M | re.S)
    cells = [re.sub(r"\n{2,}", "\n\n", cell) for cell in code_cells(NOTEBOOK).values()]
    assert len(shown) >= 4
    assert set(shown) <= set(cells)


def test_every_small_gpu_has_a_row_and_one_sequence_more_does_not_fit() -> None:
    for card in cards():
        assert f">{card.gpu.title}<" in render_page("tutorial")
        batches = {"batch_size": str(card.batch + 1)}
        assert tutorial_page.needed(card.gpu, **batches) > card.gpu.memory
    assert len(cards()) == sum(gpu.memory <= SMALL for gpu in COMMON)
