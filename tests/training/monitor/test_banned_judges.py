"""training/monitor/banned_judges: bans outlast the monitor's process."""

from pathlib import Path

import pytest

from calculator.errors import InputError
from training.monitor import banned_judges


def test_bans_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert banned_judges.read(tmp_path) == set()
    banned_judges.write(tmp_path, {"b", "a"})
    banned_judges.write(tmp_path, {"c", "a", "b"})
    assert banned_judges.read(tmp_path) == {"a", "b", "c"}
    assert [path.name for path in tmp_path.iterdir()] == ["banned_judges.json"]


@pytest.mark.parametrize("content", ['{"a": 1}', "[1]", "[", '"mallory"'])
def test_a_file_that_holds_something_else_stops_the_monitor(content: str, tmp_path: Path) -> None:
    """It does not begin without the bans."""
    (tmp_path / "banned_judges.json").write_text(content)
    with pytest.raises(InputError, match="must hold"):
        banned_judges.read(tmp_path)
