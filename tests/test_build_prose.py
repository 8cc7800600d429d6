"""tools/prose.py: prose that reads like a translation is found, code is not taken for prose."""

from pathlib import Path

import pytest

from tools import prose

# in parts, so that this file has none of the words
PAGE = "First.\n\nWe m" + "end {{ figure }} bytes a para" + "meter.\nIt waits for e" + "ver.\n"
MODULE = '"""Whe' + 'ther it holds."""\n\nmoment = 1  # made a' + "new\n"
MODULE += "print(f'he to" + "ld of {this}')\n"


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("page.md.j2", PAGE, [3, 3, 4]),  # the last is a rule of proselint's own
        ("module.py", MODULE, [1, 3, 4]),
        ("script.js", "let a = 1; /* begun a" + "new */\n", [1]),
    ],
)
def test_replaced_words_are_found_in_their_line(
    name: str, text: str, lines: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    path = tmp_path / name
    path.write_text(text)
    found = [finding.split(":")[:2] for finding in prose.findings([path])]
    assert {each for each, _ in found} == {name}
    assert sorted(int(line) for _, line in found) == lines


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
