"""training/sparse/shelf: what a volunteer keeps for others."""

from training.sparse import shelf
from training.sparse.shelf import Shelf


def test_the_oldest_files_give_way() -> None:
    kept = Shelf(most_bytes=10)
    kept.add("a", b"1234")
    kept.add("b", b"1234")
    kept.add("a", b"1234")  # the newest again
    kept.add("c", b"123")
    assert kept.find("b") is None
    assert (kept.find("a"), kept.find("c")) == (b"1234", b"123")
    kept.add("d", b"1" * 11)
    assert kept.find("d") is None
    assert kept.find("c") is not None


def test_checkpoints_are_not_kept() -> None:
    kept = Shelf()
    kept.add("a", bytes(shelf.LARGEST + 1))
    assert kept.find("a") is None
    kept.add("b", bytes(shelf.LARGEST))
    assert kept.find("b") is not None
