"""tools/theme_script.py: the theme's own script, changed where this site needs it."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.console import BuildError
from tools.theme_script import OPENING, Change, lighten_opening, read_relative_sitemap

READS = "let i=[f(new URL(n.textContent,t),t)]"
READS_ABSOLUTE = "let i=[f(new URL(n.textContent),t)]"


def bundle(site: Path, text: str) -> Path:
    path = site / "assets" / "javascripts" / "bundle.0a1b2c.min.js"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    return path


def test_the_themes_script_reads_relative_addresses(tmp_path: Path) -> None:
    path = bundle(tmp_path, f"a();{READS_ABSOLUTE};b()")
    read_relative_sitemap(tmp_path)
    assert path.read_text() == f"a();{READS};b()"


@pytest.mark.parametrize("text", ["a()", f"{READS_ABSOLUTE};{READS_ABSOLUTE}"])
def test_another_script_of_the_theme_ends_the_build(text: str, tmp_path: Path) -> None:
    bundle(tmp_path, text)
    with pytest.raises(BuildError, match="must read the sitemap in one place"):
        read_relative_sitemap(tmp_path)


def test_the_installed_theme_has_every_place_once(tmp_path: Path) -> None:
    path = bundle(tmp_path, theme())
    lighten_opening(tmp_path)
    with pytest.raises(BuildError, match=r"must start the search in one place, has 0\. The theme"):
        lighten_opening(tmp_path)
    assert len(path.read_text("utf-8")) > len(theme()) / 2


@pytest.mark.parametrize("change", OPENING, ids=lambda change: change.name)
def test_a_place_that_is_gone_is_named(change: Change, tmp_path: Path) -> None:
    bundle(tmp_path, change.place.sub("0", theme()))
    with pytest.raises(BuildError, match=f"must {change.does} in one place, has 0.*{change.name}"):
        lighten_opening(tmp_path)


def theme() -> str:
    """The script as the theme's package has it."""
    found = find_spec("material")
    assert found is not None
    assert found.origin is not None
    scripts = Path(found.origin).parent / "templates" / "assets" / "javascripts"
    (script,) = scripts.glob("bundle.*.min.js")
    return script.read_text("utf-8")
