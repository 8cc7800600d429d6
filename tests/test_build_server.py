"""tools/server.py: what a browser and a polling page need from a server."""

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from http.client import HTTPResponse
from pathlib import Path

import pytest

from tools.console import BuildError
from tools.server import listen, serving


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    for name in ("page.html", "code.mjs", "code.wasm", "library.zip", "empty.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "progress.jsonl").write_bytes(b"0123456789")
    with serving(tmp_path) as found:
        yield found


def get(address: str, **headers: str) -> HTTPResponse:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return urllib.request.urlopen(urllib.request.Request(address, headers=headers))


def refused(address: str, **headers: str) -> tuple[int, Message, bytes]:
    with pytest.raises(urllib.error.HTTPError) as caught:
        get(address, **headers)
    with caught.value as error:  # it holds a socket
        return error.code, error.headers, error.read()


@pytest.mark.parametrize(
    ("name", "mime_type"),
    [
        ("page.html", "text/html"),
        ("code.mjs", "text/javascript"),
        ("code.wasm", "application/wasm"),
        ("library.zip", "application/zip"),
    ],
)
def test_files_have_the_mime_types_that_browsers_insist_on(
    address: str, name: str, mime_type: str
) -> None:
    with get(address + name) as response:
        assert response.headers.get_content_type() == mime_type


@pytest.mark.parametrize(
    ("byte_range", "part", "content_range"),
    [
        ("bytes=4-", b"456789", "bytes 4-9/10"),
        ("bytes=2-3", b"23", "bytes 2-3/10"),
        ("bytes=8-99", b"89", "bytes 8-9/10"),
    ],
)
def test_a_byte_range_gives_just_that_part(
    address: str, byte_range: str, part: bytes, content_range: str
) -> None:
    with get(f"{address}progress.jsonl", Range=byte_range) as response:
        assert response.status == 206
        assert response.headers["Content-Range"] == content_range
        assert response.read() == part


@pytest.mark.parametrize("name", ["progress.jsonl", "empty.jsonl"])
def test_a_range_behind_the_end_is_refused_with_the_size(address: str, name: str) -> None:
    status, headers, _ = refused(address + name, Range="bytes=10-")
    assert status == 416
    assert headers["Content-Range"] in ("bytes */10", "bytes */0")


def test_what_is_not_there_gets_the_sites_own_page(address: str, tmp_path: Path) -> None:
    (tmp_path / "404.html").write_text("not here")
    status, _, content = refused(f"{address}nowhere/")
    assert (status, content) == (404, b"not here")


def test_a_taken_port_is_said_plainly() -> None:
    with listen(0) as first, pytest.raises(BuildError, match=r"taken; try --port"):
        listen(first.getsockname()[1])


@pytest.mark.parametrize("port", [-1, 65536])
def test_an_impossible_port_is_refused_with_the_rule(port: int) -> None:
    with pytest.raises(BuildError, match=rf"port = {port}: must be between 0 and 65535"):
        listen(port)


def test_a_compressed_file_answers_a_browser_that_takes_it(tmp_path: Path, address: str) -> None:
    (tmp_path / "index.html").write_text("<p>plain")
    for suffix, content in ((".br", b"brotli"), (".gz", b"gzip")):
        (tmp_path / f"index.html{suffix}").write_bytes(content)
    for accepted, content, encoding in (
        ("gzip, deflate, br", b"brotli", "br"),
        ("gzip;q=1.0, deflate", b"gzip", "gzip"),
        ("identity", b"<p>plain", None),
    ):
        with get(address, Accept_Encoding=accepted) as response:
            assert response.read() == content
            assert response.headers["Content-Encoding"] == encoding
            assert response.headers.get_content_type() == "text/html"
            date = response.headers["Last-Modified"]
        assert refused(address, Accept_Encoding=accepted, If_Modified_Since=date)[0] == 304


def test_a_file_changed_after_it_was_compressed_is_sent_as_it_is(
    tmp_path: Path, address: str
) -> None:
    (tmp_path / "page.html.gz").write_bytes(b"old")
    os.utime(tmp_path / "page.html.gz", (0, 0))
    with get(f"{address}page.html", Accept_Encoding="gzip") as response:
        assert response.read() == b""
        assert response.headers["Content-Encoding"] is None


@pytest.mark.parametrize(
    ("path", "caching"),
    [
        ("page.html", "no-cache"),
        ("assets-0123456789ab/site.js", "public, max-age=31536000, immutable"),
        ("assets/page.js", "no-cache"),
    ],
)
def test_what_is_named_by_its_content_is_kept_and_nothing_else(
    address: str, tmp_path: Path, path: str, caching: str
) -> None:
    for folder in ("assets", "assets-0123456789ab"):
        (tmp_path / folder).mkdir()
    (tmp_path / "assets" / "page.js").touch()
    (tmp_path / "assets-0123456789ab" / "site.js").touch()
    with get(address + path) as answer:
        assert answer.headers["Cache-Control"] == caching


def test_a_file_that_is_missing_now_is_asked_for_again(address: str) -> None:
    _, headers, _ = refused(f"{address}assets-0123456789ab/gone.js")
    assert headers["Cache-Control"] == "no-cache"
