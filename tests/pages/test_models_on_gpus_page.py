"""The table of models and GPUs says what the calculator says."""

from urllib.parse import parse_qsl

import pytest

from calculator.catalog import GPUS, MODELS, Gpu
from calculator.models.registry import type_of
from calculator.page.states import read_state
from calculator.planner.need import judged, need_of
from calculator.report import Report
from calculator.units import format_seconds
from templates.pages.models_on_gpus.context import NOTHING, SHOWN, TRAININGS, Row, rows, without
from tests.pages.rendered import render_page

FULL, LORA = TRAININGS


def all_rows() -> list[Row]:
    """Of both tables, computed when the first test asks: other processes only collect tests."""
    return [*rows(FULL), *rows(LORA)]


def test_every_cell_opens_a_state_that_it_describes_and_has_the_calculators_time() -> None:
    times = []
    for row in all_rows()[::6]:
        own = read_state(dict(parse_qsl(row.query)))[1]
        for name, cell in zip(SHOWN, row.cells, strict=True):
            architecture, plan, gpu = read_state(dict(parse_qsl(cell.query)))
            assert gpu is GPUS[name]
            changed, as_it_is = (judged(architecture, each.on(gpu)) for each in (plan, own))
            assert fits(changed, gpu) is (cell.words != NOTHING), (row.title, name)
            assert fits(as_it_is, gpu) is (cell.kind == "fits") is (cell.rank == 0), cell
            if cell.kind == "no" or changed.seconds is None:
                assert cell.time == ""
            else:
                assert cell.time == format_seconds(10_000_000 / changed.seconds.tokens_per_second)
                times.append(cell.time)
    assert times
    page = render_page("models-on-gpus")
    assert all(f"<small>{time}</small>" in page for time in times)


def fits(report: Report, gpu: Gpu) -> bool:
    return need_of(report).fits(gpu.memory)


@pytest.mark.parametrize("old", [True, False])
def test_more_memory_never_takes_more_changes(old: bool) -> None:
    for row in all_rows():
        of_kind = [
            (GPUS[name].memory, cell)
            for name, cell in zip(SHOWN, row.cells, strict=True)
            if GPUS[name].predates_ampere is old  # others take other kernels
        ]
        by_memory = sorted(of_kind, key=lambda one: one[0])
        counts = [99 if cell.kind == "no" else cell.rank // 10 for _, cell in by_memory]
        assert counts == sorted(counts, reverse=True), row.query


def test_models_for_which_lora_is_not_counted_are_named() -> None:
    titles = list(without(LORA))
    adapted = {row.title for row in rows(LORA)}
    assert {row.title for row in rows(FULL)} - adapted == set(titles) != set()
    page = render_page("models-on-gpus")
    assert f": {', '.join(titles)}." in page
    own = [model for model in MODELS.values() if not type_of(model).counted]
    assert titles == [model.title for model in own]
    assert not list(without(FULL))


def test_four_bits_fit_a_large_model_where_sixteen_do_not() -> None:
    # Dettmers et al., 2023, finetune 65 billion parameters on one GPU of 48 GB
    row = next(row for row in rows(LORA) if "70B" in row.title)
    cells = dict(zip(SHOWN, row.cells, strict=True))
    assert "QLoRA" in cells["a100-80"].words
