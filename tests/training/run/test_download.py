import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.hub_repository import HubRepository
from training.run import download

CONTENT = bytes(range(256)) * 8192  # 2 MiB
SUM = hashlib.sha256(CONTENT).hexdigest()
Fetch = Callable[..., None]


@pytest.fixture
def server(hub: HubRepository, monkeypatch: pytest.MonkeyPatch) -> HubRepository:
    monkeypatch.setattr(download, "PAUSE_SECONDS", 0.01)
    hub.commits["main"] = {"weights": CONTENT}
    return hub


@pytest.fixture
def fetch(server: HubRepository, tmp_path: Path) -> Fetch:
    """Downloads a file of that sum, which then is whole."""

    def fetch(sha256: str = SUM, report: download.Report | None = None) -> None:
        address = f"{server.address}/someone/model/resolve/main/weights"
        download.download(address, tmp_path / "file", sha256, report)
        assert (tmp_path / "file").read_bytes() == CONTENT

    return fetch


def test_a_broken_download_asks_for_the_rest_only_and_its_progress_is_told(
    fetch: Fetch, server: HubRepository, tmp_path: Path
) -> None:
    server.cut = 1
    percents: list[int] = []
    fetch(report=percents.append)
    assert server.ranges == [f"bytes={len(CONTENT) // 2}-"]
    assert percents[-1] == 100
    assert percents == sorted(set(percents))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_has_come_is_kept_for_the_next_call(fetch: Fetch, server: HubRepository) -> None:
    server.cut = download.ATTEMPTS
    with pytest.raises(OSError, match="broke off"):
        fetch()
    server.ranges.clear()
    fetch()
    there = len(CONTENT) - len(CONTENT) // 2**download.ATTEMPTS
    assert server.ranges == [f"bytes={there}-"]


def test_a_server_without_ranges_sends_all_of_it_again(fetch: Fetch, server: HubRepository) -> None:
    server.cut, server.without_ranges = 1, True
    fetch()


def test_a_whole_file_that_was_not_yet_checked_is_not_fetched_again(
    fetch: Fetch, server: HubRepository, tmp_path: Path
) -> None:
    (tmp_path / f".{SUM[:16]}.part").write_bytes(CONTENT)
    fetch()
    assert server.ranges == [f"bytes={len(CONTENT)}-"]


def test_another_file_than_announced_is_refused_and_removed(fetch: Fetch, tmp_path: Path) -> None:
    with pytest.raises(download.WrongSumError, match="SHA-256 differs"):
        fetch("0" * 64)
    assert not list(tmp_path.iterdir())


def test_what_is_not_there_is_not_asked_for_again(server: HubRepository, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="404"):
        download.download(f"{server.address}/nothing", tmp_path / "file", SUM)
