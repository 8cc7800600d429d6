"""The frontier of batch and length, through the protocol."""

from typing import Any
from urllib.parse import parse_qsl

import pytest

from calculator.catalog import find_gpu
from calculator.page.states import read_state
from tests.calculator.plans import Case, ask


def rows(**params: str) -> list[dict[str, Any]]:
    return ask("frontier", **params)["value"]["rows"]


@pytest.mark.parametrize(("model", "gpu"), [("bert-base", "t4"), ("gpt2-s", "rtx-4090")])
def test_each_row_fits_one_more_does_not_and_longer_never_fits_more(model: str, gpu: str) -> None:
    found = rows(model=model, gpu=gpu, precision="amp")
    memory, batches = find_gpu(gpu).memory, []
    for row in found:
        architecture, plan, _ = read_state(dict(parse_qsl(row["query"])))
        case = Case(architecture, plan)
        assert row["batch"] == f"{plan.batch_size:,}"
        assert case.need.fits(memory)
        assert not case.but(batch_size=plan.batch_size + 1).need.fits(memory)
        batches.append(plan.batch_size)
    assert batches == sorted(batches, reverse=True)
    assert [row["length"] for row in found if row["here"]] == [f"{architecture.sequence_length:,}"]
    assert all(int(row["length"].replace(",", "")) <= architecture.positions for row in found)


def test_where_nothing_fits_the_rows_lead_nowhere() -> None:
    found = rows(model="gpt3-175b", gpu="t4")
    assert {(row["batch"], row["query"], row["share"]) for row in found} == {
        ("none fits", None, 0.0)
    }


def test_the_length_that_is_there_stays_in_the_address() -> None:
    (row,) = (row for row in rows(model="bert-base", sequence_length="200") if row["here"])
    assert dict(parse_qsl(row["query"]))["sequence_length"] == "200"
