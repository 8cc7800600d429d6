"""Nested navigation of the theme becomes groups; nothing else of a page changes."""

from pathlib import Path

from tools.files import change_pages
from tools.landmarks import without_nested_navigation


def test_every_page_of_a_site_is_changed(tmp_path: Path) -> None:
    page = tmp_path / "deep" / "index.html"
    page.parent.mkdir()
    page.write_text("<nav a><nav b><i></i><nav>x</nav></nav></nav><nav d></nav>")
    (tmp_path / "index.html").write_text("<p>no navigation</p>")
    change_pages(tmp_path, without_nested_navigation)
    inner = '<div role="group" b><i></i><div role="group">x</div></div>'
    assert page.read_text() == f"<nav a>{inner}</nav><nav d></nav>"
    assert (tmp_path / "index.html").read_text() == "<p>no navigation</p>"
