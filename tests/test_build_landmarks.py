"""Nested navigation of the theme becomes groups; nothing else of a page changes."""

from pathlib import Path

from tests.folders import written
from tools.files import change_pages
from tools.landmarks import without_nested_navigation


def test_every_page_of_a_site_is_changed(tmp_path: Path) -> None:
    files = {"deep/index.html": "<nav a><nav b><i></i><nav>x</nav></nav></nav><nav d></nav>"}
    written(tmp_path, files | {"index.html": "<p>no navigation</p>"})
    change_pages(tmp_path, without_nested_navigation)
    inner = '<div role="group" b><i></i><div role="group">x</div></div>'
    page = (tmp_path / "deep/index.html").read_text()
    assert page == f"<nav a>{inner}</nav><nav d></nav>"
    assert (tmp_path / "index.html").read_text() == "<p>no navigation</p>"
