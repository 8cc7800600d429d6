"""tools/unused_styles.py: styles stay if a page or a script of the site can use them."""

from pathlib import Path

import pytest

from tools.unused_styles import readers_of, without_unread, without_unused, words_of

WORDS = {"used", "also", "tab--"}


@pytest.mark.parametrize(
    "rule",
    [
        "a{b:c}",
        ".used{b:c}",
        "#also>.used:hover{b:c}",
        ".used:not(.unused),[dir=rtl] .also{b:c}",  # true where no element has it
        ":is(.unused,.used) p{b:c}",  # one of several
        ".tab--next{b:c}",  # a script writes "tab--" + side
        "/*! a.b */.used{b:c}",
        "@media print{.used{b:c}}",
        "@keyframes unused{0%{b:c}to{b:d}}",
        '@charset "UTF-8";',
        '.used:after{content:"}.unused{"}',
        ".used{b:url(data:;base64,}.unused{)}",
    ],
)
def test_what_may_be_used_stays_as_it_is(rule: str) -> None:
    assert without_unused(rule, WORDS) == rule


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        (".unused{b:c}a{d:e}", "a{d:e}"),
        (".used .unused,.used,#unused{b:c}", ".used{b:c}"),
        (
            "@media print{.unused{b:c}}@media screen{.unused{b:c}.used{b:c}}",
            "@media screen{.used{b:c}}",
        ),
        (".used,.unused:not(.a,.b){b:c}", ".used{b:c}"),
        (".tab{b:c}.ta--next{b:c}", ""),
    ],
)
def test_a_selector_that_needs_an_unknown_class_is_left_out(rules: str, left: str) -> None:
    assert without_unused(rules, WORDS) == left


def test_a_variable_that_nothing_reads_is_left_out_also_where_only_such_a_one_reads_it() -> None:
    icon = "url('data:image/svg+xml;charset=utf-8,<svg></svg>')"
    styles = (
        f":root{{--md-icon:{icon};--md-one:var(--md-two);--md-two:1px;--md-here:2px;--ours:3px}}"
    )
    left = without_unread(styles, "a{b:var(--md-icon)} style.getPropertyValue('--md-here')")
    assert left == f":root{{--md-icon:{icon};--md-here:2px;--ours:3px}}"


def test_the_words_of_a_site_are_its_pages_classes_and_all_of_its_scripts(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    (tmp_path / "assets").mkdir()
    page = '<p class="one two--three" id=four title="class">five</p>'
    (tmp_path / "page" / "index.html").write_text(page)
    (tmp_path / "assets" / "one.js").write_text("e.className=`tab tab--${side}`")
    (tmp_path / "assets" / "one.json").write_text('{"markup": "<i class=six>"}')
    words = words_of(tmp_path)
    assert {"one", "two--three", "four", "tab", "tab--", "six"} <= words
    assert "five" not in words
    assert readers_of(tmp_path) == page + "e.className=`tab tab--${side}`"
