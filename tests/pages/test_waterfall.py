"""The waterfall of an exchange and its table: bytes counted and measured, factor by factor."""

import pytest

from templates.pages.how_it_works.context import ROUND_PEERS, waterfall
from templates.pages.measurements import long_rounds, sparse_links
from templates.pages.measurements.context import times_less
from templates.pages.measurements.waterfall import LONG
from tests.pages.rendered import render_page
from tests.pages.tables import rows_of


def test_the_exchange_falls_from_all_in_32_bits_to_rounds_of_one_file_up_and_the_others_down() -> (
    None
):
    falls = waterfall(sparse_links.read())
    # 1,116,354,148 numbers of 4 bytes (reference run), 7/8 of them out and back, both ways, 8 times
    assert falls[0].moved == pytest.approx(8 * 4 * 1_116_354_148 * 4 * 7 / 8)
    # 126.4 MB of gradients in 8 bits (reference run) and as much of weights
    (paper,) = (fall for fall in falls if fall.label == "Averaged weights")
    assert paper.moved / 1e6 == pytest.approx(2 * 126.4 * 4 * 7 / 8, abs=0.5)
    round_, longer = falls[-2:]
    # 0.2266 bits for each of 125.9 million parameters; headers of packets come on top
    assert round_.moved / 1e6 == pytest.approx(3.57 * ROUND_PEERS, rel=0.08)
    assert longer.moved == pytest.approx(round_.moved / LONG)
    assert (LONG, False) in long_rounds.WAYS, "its loss is measured"


def test_longer_rounds_are_on_the_page_and_what_is_said_of_them_holds() -> None:
    page, found = render_page("measurements"), long_rounds.read()
    less = times_less(sparse_links.read())
    for row in found.rows(less):
        assert row in rows_of(page)
    assert "nothing with 200x less traffic learned as well" in page
    synchronous = float(found.synchronous.split()[0])
    worse = [float(loss.split()[0]) > synchronous for loss in found.losses]
    assert [times >= 200 for times in less] == [False, True, False, True]
    assert worse == [False, True, True, True]
