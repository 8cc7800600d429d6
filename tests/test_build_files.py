"""tools/files.py: whole folders, whole files, one builder at a time."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import files
from tools.console import ROOT


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "workshop"
    folder.mkdir()
    monkeypatch.setattr(files, "WORKSHOP", folder)
    return folder


@pytest.mark.usefixtures("workshop")
def test_a_replaced_folder_holds_only_what_is_new(tmp_path: Path) -> None:
    for name in ("old.html", "new.html"):  # the first is put where there was none
        finished = files.fresh(tmp_path / "finished")
        (finished / name).touch()
        files.replace_folder(finished, tmp_path / "site")
        assert [path.name for path in (tmp_path / "site").iterdir()] == [name]
        assert not finished.exists()


def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data"
    files.write_atomically(path, b"old")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_digest_changes_with_content_and_not_with_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ROOT", tmp_path)
    module = tmp_path / "module.py"
    module.write_text("a = 1\n")
    before = files.digest([module])
    module.touch()
    assert files.digest([module]) == before
    module.write_text("a = 2\n")
    assert files.digest([module]) != before


def test_one_process_builds_at_a_time_and_does_not_wait_for_itself(workshop: Path) -> None:
    pytest.importorskip("fcntl")
    program = (
        "from pathlib import Path; from tools import files\n"
        f"files.WORKSHOP = Path({str(workshop)!r})\n"
        "for _ in range(2):\n"
        "    with files.only_one(), files.only_one(): print('inside')\n"  # a build that installs
    )
    with files.only_one():
        second = subprocess.Popen(
            [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert "waiting" in second.stdout.readline()
    output, _ = second.communicate(timeout=60)
    assert output == "inside\ninside\n"
