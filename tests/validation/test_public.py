"""Published measurements: the right options, and the relations that the page describes."""

import pytest

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.resolution import resolve
from calculator.units import MiB
from validation.public import GUIDE, SITE, Publication, Published, as_classifier

ALL = (*GUIDE.rows, *SITE.rows)


def words(row: Published) -> str:
    return row.words


@pytest.mark.parametrize("row", ALL, ids=words)
def test_every_row_names_a_plan_that_its_model_can_have(row: Published) -> None:
    assert resolve(find_model(row.model), row.plan).attention == "eager"


def test_rows_are_told_apart_by_their_words() -> None:
    assert len({row.words for row in ALL}) == len(ALL)


@pytest.mark.parametrize("publication", [GUIDE, SITE], ids=["guide", "site"])
def test_pairs_hold_the_report_of_the_same_row(publication: Publication) -> None:
    pairs = publication.pairs()
    assert [row for row, _ in pairs] == list(publication.rows)
    for row, report in pairs:
        assert report.model == row.model
        assert report.plan.sequence_length == row.plan.sequence_length


def test_the_guide_was_read_before_the_model_was_there() -> None:
    # BertForSequenceClassification has as many parameters as the calculator's class but for the
    # vocabulary's bias: 2,631 - 1,343 MiB of fp32 weights, says the guide
    weights = estimate(find_model("bert-large")).gpu.weights
    assert weights / (2_631 * MiB - GUIDE.context) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("row", GUIDE.rows, ids=words)
def test_tensors_of_a_classifier_take_less_than_was_reserved(row: Published) -> None:
    assert as_classifier(row) < row.bytes - GUIDE.context


@pytest.mark.parametrize("row", GUIDE.rows, ids=words)
def test_a_classifier_needs_less_than_a_head_of_words(row: Published) -> None:
    peak = estimate(find_model(row.model), row.plan).gpu.total
    assert 0.9 * peak < as_classifier(row) < peak


@pytest.mark.parametrize("row", SITE.rows, ids=words)
def test_reserved_is_at_least_allocated(row: Published) -> None:
    assert row.reserved is not None
    assert row.reserved >= row.bytes
