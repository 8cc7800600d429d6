"""tools/content_policy.py: pages run the scripts they were built with, and no others."""

import base64
import hashlib
from pathlib import Path

import pytest

from tests.folders import written
from tools.console import BuildError
from tools.content_policy import LOOSE, pin_inline_scripts, script_hashes

POLICY = f'<meta http-equiv="Content-Security-Policy" content="{LOOSE}; object-src \'none\'">'


def hash_of(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@pytest.mark.parametrize(
    ("element", "scripts"),
    [
        ("<script>let a = '<'\n</script>", ["let a = '<'\n"]),
        ('<script type="module">1</script><script\nid=a>2</script>', ["1", "2"]),
        ('<script src="a.js"></script>', []),
        ('<script type="application/json">{}</script>', []),
        ("<noscript>off</noscript>", []),
    ],
)
def test_an_inline_script_is_named_by_the_hash_of_its_text(
    element: str, scripts: list[str]
) -> None:
    assert script_hashes(element) == {hash_of(text) for text in scripts}


def test_every_page_allows_the_scripts_of_all_pages_and_nothing_else(tmp_path: Path) -> None:
    scripts = {"a.html": "1", "deep/b.html": "2"}
    written(tmp_path, {name: f"{POLICY}<script>{text}</script>" for name, text in scripts.items()})
    pin_inline_scripts(tmp_path)
    for path in tmp_path.rglob("*.html"):
        policy = path.read_text().split("object-src")[0]
        assert "script-src 'self' 'sha256-" in policy
        assert all(f"'sha256-{hash_of(script)}'" in policy for script in "12")
        assert "unsafe-inline" not in policy


def test_a_page_without_a_policy_ends_the_build(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>bare</p>")
    with pytest.raises(BuildError, match=r"page\.html: must have script-src .* once"):
        pin_inline_scripts(tmp_path)
