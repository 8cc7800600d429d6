"""Nested navigation of the theme becomes groups; nothing else of a page changes."""

from pathlib import Path

from tools.landmarks import unnest_navigation, without_nested_navigation


def test_only_the_outermost_navigation_stays_a_landmark() -> None:
    page = "<nav a><nav b><i></i><nav c></nav></nav></nav><p></p><nav d></nav>"
    inner = '<div role="group" b><i></i><div role="group" c></div></div>'
    assert without_nested_navigation(page) == f"<nav a>{inner}</nav><p></p><nav d></nav>"


def test_every_page_of_a_site_is_changed(tmp_path: Path) -> None:
    page = tmp_path / "deep" / "index.html"
    page.parent.mkdir()
    page.write_text("<nav><nav>x</nav></nav>")
    (tmp_path / "index.html").write_text("<p>no navigation</p>")
    unnest_navigation(tmp_path)
    assert page.read_text() == '<nav><div role="group">x</div></nav>'
    assert (tmp_path / "index.html").read_text() == "<p>no navigation</p>"
