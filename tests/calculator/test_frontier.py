"""The frontier of batch and length, through the protocol."""

from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl

import pytest

from calculator.catalog import find_gpu, find_model
from calculator.plan import Plan
from calculator.planner.need import judged, need_of
from tests.calculator.plans import ask


def rows(**params: str) -> list[dict[str, Any]]:
    return ask("frontier", **params)["value"]["rows"]


@pytest.mark.parametrize(("model", "gpu"), [("bert-base", "t4"), ("gpt2-s", "rtx-4090")])
def test_each_row_fits_one_more_does_not_and_longer_never_fits_more(model: str, gpu: str) -> None:
    found = rows(model=model, gpu=gpu, precision="amp")
    card, architecture = find_gpu(gpu), find_model(model)
    batches = []
    for row in found:
        state = dict(parse_qsl(row["query"]))
        batch = int(state["batch_size"])
        assert row["batch"] == f"{batch:,}"
        plan = {name: text for name, text in state.items() if name not in ("model", "gpu")}
        for size, fits in ((batch, True), (batch + 1, False)):
            tried = Plan.parse(plan | {"batch_size": size}).on(card)
            assert need_of(judged(architecture, tried)).fits(card.memory) == fits
        batches.append(batch)
    assert all(before >= after for before, after in pairwise(batches))
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
