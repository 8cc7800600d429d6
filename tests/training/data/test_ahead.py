"""Batches made ahead: the same ones, in the same order, also after a restart."""

import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from unittest.mock import Mock

import pytest

from calculator.errors import InputError
from tests.training.data.test_reading import GOOD, RECIPE, write
from training.data import streaming
from training.data.ahead import DEPTH, BatchesAhead

STOP = threading.Event()


def varied(number: int) -> dict[str, object]:
    return GOOD | {"code": bytes([number % 128, 0]) * 64}


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    for number in range(3):
        write(tmp_path, [varied(10 * number + i) for i in range(10)], number)
    return tmp_path


@pytest.fixture
def ahead(shards: Path) -> Iterator[BatchesAhead]:
    ahead = BatchesAhead(streaming.stream(RECIPE, b"peer", shards))
    yield ahead
    ahead.close()


def take(batches: Iterator[streaming.Batch], count: int) -> list[list[int]]:
    return [batch["image_codes"][:, 0].tolist() for batch in islice(batches, count)]


def test_batches_made_ahead_are_those_of_the_stream_also_after_a_restart(
    shards: Path, ahead: BatchesAhead
) -> None:
    expected = take(streaming.stream(RECIPE, b"peer", shards), 30)
    assert take(ahead.until(STOP), 10) == expected[:10]
    again = BatchesAhead(streaming.stream(RECIPE, b"peer", shards))
    again.load_state_dict(ahead.state_dict())
    assert take(again.until(STOP), 20) == expected[10:]
    again.close()


def test_no_thread_lives_before_the_first_batch_and_few_batches_wait(ahead: BatchesAhead) -> None:
    before = threading.active_count()
    assert ahead._thread is None
    batches = ahead.until(STOP)
    next(batches)
    assert threading.active_count() == before + 1
    assert ahead._made.qsize() <= DEPTH
    ahead.close()
    assert threading.active_count() == before


def test_what_goes_wrong_in_the_thread_is_raised_where_it_is_asked(tmp_path: Path) -> None:
    write(tmp_path, [GOOD | {"code": b""}])
    ahead = BatchesAhead(streaming.stream(RECIPE, b"peer", tmp_path))
    with pytest.raises(InputError, match="has 0 bytes"):
        next(ahead.until(STOP))
    ahead.close()


def test_who_waits_for_data_can_be_stopped(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    stream = streaming.stream(RECIPE, b"peer", shards, say=said.append)
    cut = Mock(side_effect=ConnectionError("the line is cut"))
    monkeypatch.setattr(stream._source, "take", cut)
    ahead, stop = BatchesAhead(stream), threading.Event()
    threading.Timer(0.5, stop.set).start()
    assert list(ahead.until(stop)) == []
    ahead.close()
    assert said == ["the data do not come (the line is cut): waiting for their host"]
