"""tools/server.py: what a browser and a polling page need from a server."""

import os
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.folders import written
from tools.console import BuildError
from tools.server import Site, listen

IMMUTABLE = "public, max-age=31536000, immutable"


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    """A browser of a site that has a page."""
    return TestClient(Site(written(tmp_path, {"index.html": "<p>plain"})))


@pytest.mark.parametrize(
    ("name", "mime_type", "caching"),
    [
        ("page.html", "text/html; charset=utf-8", "no-cache"),
        ("assets/page.js", "text/javascript; charset=utf-8", "no-cache"),
        ("assets-0123456789ab/code.mjs", "text/javascript; charset=utf-8", IMMUTABLE),
        ("pyodide-0123456789ab/code.wasm", "application/wasm", IMMUTABLE),
        ("library.zip", "application/zip", "no-cache"),
    ],
)
def test_files_have_the_types_that_browsers_insist_on_and_are_kept_if_named_by_their_content(
    client: TestClient, tmp_path: Path, name: str, mime_type: str, caching: str
) -> None:
    written(tmp_path, {name: "text"})
    headers = client.get(name).headers
    assert (headers["Content-Type"], headers["Cache-Control"]) == (mime_type, caching)


def test_what_is_missing_gets_the_sites_own_page_and_is_asked_for_again(
    client: TestClient, tmp_path: Path
) -> None:
    missing = "assets-0123456789ab/gone.js"
    assert client.get(missing).status_code == 404
    written(tmp_path, {"404.html": "not here"})
    answer = client.get(missing)
    assert (answer.status_code, answer.text) == (404, "not here")
    assert answer.headers["Cache-Control"] == "no-cache"


def test_a_taken_port_is_said_plainly() -> None:
    with listen(0) as first, pytest.raises(BuildError, match=r"taken; try --port"):
        listen(first.getsockname()[1])


@pytest.mark.parametrize("port", [-1, 65536])
def test_an_impossible_port_is_refused_with_the_rule(port: int) -> None:
    with pytest.raises(BuildError, match=rf"port = {port}: must be between 0 and 65535"):
        listen(port)


def test_a_compressed_file_answers_a_browser_that_takes_it_and_asks_for_no_part(
    client: TestClient, tmp_path: Path
) -> None:
    forms = {suffix: tmp_path / f"index.html.{suffix}" for suffix in ("br", "gz")}
    for path in forms.values():
        path.write_bytes(b"form")
    for accepted, encoding in (
        ("gzip, deflate, br", "br"),
        ("gzip;q=1.0, deflate", "gzip"),
        ("identity", None),
    ):
        asked = {"Accept-Encoding": accepted}
        with client.stream("GET", "/", headers=asked) as answer:
            assert b"".join(answer.iter_raw()) == (b"form" if encoding else b"<p>plain")
        assert answer.headers.get("Content-Encoding") == encoding
        assert answer.headers["Content-Type"].startswith("text/html")
        asked |= {"If-Modified-Since": answer.headers["Last-Modified"]}
        assert client.get("/", headers=asked).status_code == 304
    part = client.get("/", headers={"Accept-Encoding": "br", "Range": "bytes=3-"})
    assert (part.status_code, part.text) == (206, "plain")
    assert part.headers["Content-Range"] == "bytes 3-7/8"
    os.utime(forms["gz"], (0, 0))  # of an older file
    assert client.get("/", headers={"Accept-Encoding": "gzip"}).text == "<p>plain"
