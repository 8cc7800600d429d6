"""tools/links.py: what counts as a link that leads nowhere."""

from pathlib import Path

import pytest

from tools.links import broken_links


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text('<h2 id="part">Part</h2><a href="../">up</a>')
    (tmp_path / "picture.png").touch()
    return tmp_path


def problems(site: Path, markup: str, name: str = "index.html", base: str = "/") -> list[str]:
    (site / "index.html").touch()
    (site / name).write_text(markup)
    return broken_links(site, base)


@pytest.mark.parametrize(
    "address",
    [
        *("page/", "page/?model=gpt2-s#part", "page/index.html", "#", "#here", "picture.png"),
        *("https://example.org/a#b", "http://localhost:8000/", "mailto:somebody@example.org"),
        "data:image/png;base64,AA",
    ],
)
def test_a_link_that_leads_somewhere_is_fine(site: Path, address: str) -> None:
    assert problems(site, f'<p id="here"></p><a href="{address}">link</a>') == []


@pytest.mark.parametrize(
    ("markup", "problem"),
    [
        ('<a href="pages/">', "leads to no file"),
        ('<a href="page/#other">', "leads to no place"),
        ('<a href="#other">', "leads to no place"),
        ('<img src="photo.png">', "leads to no file"),
        ('<script src="missing.js"></script>', "leads to no file"),
        ('<link rel="stylesheet" href="missing.css">', "leads to no file"),
        ('<a href="https://example/">', "not a well-formed address"),
        ('<a href="https://example.org/a b">', "not a well-formed address"),
        ('<a href="https:/example.org">', "not a well-formed address"),
        ('<a href="javascript:void(0)">', "neither https nor http"),
        ('<a href="https://[example.org/">', "is no address"),
    ],
)
def test_a_link_that_leads_nowhere_is_told_with_its_page(
    site: Path, markup: str, problem: str
) -> None:
    (found,) = problems(site, markup)
    assert found.startswith("index.html: ")
    assert problem in found


def test_the_page_for_what_is_not_there_starts_at_the_sites_root(site: Path) -> None:
    markup = '<a href="/under/page/#part">page</a><a href="/under/">home</a>'
    assert problems(site, markup, "404.html", "/under/") == []
    assert len(problems(site, markup, "404.html", "/")) == 2
