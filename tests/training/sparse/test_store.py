"""training/sparse/store.py: files by their sums."""

import hashlib
from pathlib import Path

import pytest

from training.sparse import catching_up, closing
from training.sparse.store import FolderStore, StoreError


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path)


def test_a_file_is_found_by_its_sum_and_refused_when_it_is_another(
    store: FolderStore, tmp_path: Path
) -> None:
    sha256 = store.put(b"abc")
    # FIPS 180-4's example
    assert sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert store.get(sha256, 3) == b"abc"
    assert store.put(b"abc") == sha256
    store.point("closings/000000001", sha256)
    files = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert files == [f"files/{sha256}", "names/closings/000000001"]  # and none that is half
    with pytest.raises(StoreError, match="cannot be read"):
        store.get("ab" * 32, 3)
    with pytest.raises(StoreError, match="more than 2 bytes"):
        store.get(sha256, 2)
    (tmp_path / "files" / sha256).write_bytes(b"abx")
    with pytest.raises(StoreError, match="SHA-256"):
        store.get(sha256, 3)


@pytest.mark.parametrize("sha256", ["", "../names/a", "ab" * 31, "AB" * 32, "ab" * 32 + "\n"])
def test_what_is_no_sum_reaches_no_file(store: FolderStore, sha256: str) -> None:
    for call in (lambda: store.get(sha256, 3), lambda: store.point("closings/1", sha256)):
        with pytest.raises(StoreError, match="not a SHA-256"):
            call()


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../a", "a/../b", "a/.b", "a//b", "A/b", "a\n"]
)
def test_names_stay_in_the_folder(store: FolderStore, name: str) -> None:
    for call in (store.find, store.names, lambda name: store.point(name, "ab" * 32)):
        with pytest.raises(StoreError, match="no name"):
            call(name)


def test_a_name_leads_to_the_last_file_that_it_was_given_to(store: FolderStore) -> None:
    assert store.find("closings/1") is None
    assert store.names("closings") == []
    first, second = hashlib.sha256(b"1").hexdigest(), hashlib.sha256(b"2").hexdigest()
    store.point("closings/2", first)
    store.point("closings/1", first)
    store.point("closings/1", second)
    assert store.find("closings/1") == second
    assert store.names("closings") == ["closings/1", "closings/2"]


@pytest.mark.parametrize("content", [b"", b"ab" * 31, b"\xff" * 64, b"AB" * 32])
def test_a_name_to_nowhere_gives_none(store: FolderStore, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "names" / "closings" / "1"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert store.find("closings/1") is None


def test_what_is_forgotten_is_gone_and_can_be_forgotten_again(store: FolderStore) -> None:
    sha256 = store.put(b"abc")
    for name in ("closings/1", "closings/2"):  # of the same file
        store.point(name, sha256)
    assert store.path_of(sha256) is not None
    assert store.came_at(sha256) > 0
    for name in ("closings/1", "closings/2") * 2:
        store.forget(name)
        assert store.find(name) is None
        assert store.path_of(sha256) is None
    assert store.came_at(sha256) == 0


def test_checkpoints_that_are_kept_keep_the_lists_that_vouch_for_them(store: FolderStore) -> None:
    for number in range(7):
        store.point(f"{closing.FOLDER}/{number:09d}", store.put(b"list %d" % number))
        store.point(f"payloads/{number:09d}/a-peer", store.put(b"update %d" % number))
        if number % 2 == 0:
            store.point(f"{catching_up.FOLDER}/{number:09d}", store.put(b"weights %d" % number))
    catching_up.forget_before(store, kept=2)
    assert [name[-1] for name in store.names(catching_up.FOLDER)] == ["4", "6"]
    # a checkpoint of round 4 is believed because the list of round 3 names its digest
    assert [name[-1] for name in store.names(closing.FOLDER)] == ["3", "4", "5", "6"]
    assert store.names("payloads/000000002") == []
    assert len(store.names("payloads/000000003")) == 1
