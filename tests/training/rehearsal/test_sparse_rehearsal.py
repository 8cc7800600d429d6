"""A whole rehearsal of a run with local steps, by its command."""

import json
from pathlib import Path

import pytest

from tests.training.rehearsal.rehearsals import rehearse


@pytest.mark.swarm
def test_a_rehearsal_with_the_sparse_recipe_ends_with_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "rehearsal"
    rehearse(folder, "--minutes", "0.5", "--recipe", "tiny-sparse")
    card = json.loads((folder / "live" / "run.json").read_text())
    assert card["schedule"]["round_seconds"] > 0
    lines = (folder / "live" / "progress.jsonl").read_text().splitlines()
    empty = [line for line in lines if not json.loads(line)["samples"]]
    assert len(empty) <= 0.1 * len(lines), "rounds whose updates were all left out"
