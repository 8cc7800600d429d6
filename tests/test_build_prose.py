"""tools/prose.py: prose that reads like a translation is found, code is not taken for prose."""

from pathlib import Path

import pytest

from tools import prose


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("page.md", "First.\n\nWe m" + "end it.\n", 3),
        ("page.md.j2", "<p>{{ figure }} bytes a para" + "meter</p>\n", 1),
        ("module.py", '"""Fine."""\n\nmoment = 1  # made a' + "new\n", 3),
        ("module.py", "print(f'he to" + "ld of {this}')\n", 1),
        ("module.py", '"""Whe' + 'ther it holds."""\n', 1),
        ("script.js", "let a = 1; /* begun a" + "new */\n", 1),
        ("page.md", "It waits for e" + "ver.\n", 1),  # proselint's own rule
    ],
)
def test_replaced_words_are_found_in_their_line(
    name: str, text: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    path = tmp_path / name
    path.write_text(text)
    (finding,) = prose.findings([path])
    assert finding.startswith(f"{name}:{line}: ")


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("anew = mend(1)\n", ".py"),
        ('"""See `mend`."""\n', ".py"),
        ("const anew = mend;\n", ".js"),
        ("```\nmend\n```\n[there](anew.md) <a href='mend'>{{ anew }}</a>\n", ".md"),
    ],
)
def test_code_is_no_prose_and_keeps_its_place(text: str, suffix: str) -> None:
    kept = prose.prose_of(text, suffix)
    assert len(kept) == len(text)
    assert "mend" not in kept
    assert "anew" not in kept
