"""The page 'Claims we checked' shows every figure, and says where it is printed."""

from tests.pages.rendered import render_page
from tests.pages.tables import cells_of
from validation.claims.everything import GROUPS


def test_every_figure_is_shown_with_its_source() -> None:
    page = render_page("claims")
    cells = set(cells_of(page))
    for topics in GROUPS.values():
        for topic in topics():
            assert f"### {topic.title}" in page
            assert {cell for row in topic.shown for cell in row[1:]} <= cells
            if topic.publication:
                assert f"]({topic.publication.address})" in page
