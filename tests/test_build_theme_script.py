"""tools/theme_script.py: the theme's own script, changed where this site needs it."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.theme_script import CHANGES, change_theme_script


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """The script as the theme's package has it, in a site."""
    found = find_spec("material")
    scripts = Path(found.origin).parent / "templates" / "assets" / "javascripts"
    (script,) = scripts.glob("bundle.*.min.js")
    path = tmp_path / "assets" / "javascripts" / script.name
    path.parent.mkdir(parents=True)
    path.write_text(script.read_text("utf-8"), "utf-8")
    return path


def test_the_installed_theme_has_every_place_once(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(bundle.read_text("utf-8"))
    change_theme_script(tmp_path)
    assert capsys.readouterr().out == ""
    assert len(bundle.read_text("utf-8")) > before / 2


@pytest.mark.parametrize("does", CHANGES)
def test_a_place_that_is_gone_is_named_and_the_rest_changed(
    bundle: Path, tmp_path: Path, does: str, capsys: pytest.CaptureFixture[str]
) -> None:
    original = bundle.read_text("utf-8")
    bundle.write_text(re.sub(CHANGES[does][0], "0", original), "utf-8")
    change_theme_script(tmp_path)
    (named,) = capsys.readouterr().out.splitlines()
    assert f"must {does} in one place, has 0" in named
    assert bundle.read_text("utf-8") != original
