"""The page 'Scoreboard' shows every published figure, its source, our error and the reason."""

import statistics

from templates.pages.scoreboard.context import COLUMNS, NOT_COUNTED, UNKNOWN, boards, figure
from templates.render import render_page
from tests.pages.tables import rows_of
from validation import simumax
from validation.causes import CAUSES
from validation.scoreboard import TARGET_MEDIAN, TARGET_MOST, scores, sources

PAGE = render_page("scoreboard")
LENGTHS = (len(COLUMNS), len(COLUMNS) + 1)
ROWS = [row for row in rows_of(PAGE) if len(row) in LENGTHS]


def test_every_figure_has_a_row_with_both_figures_and_the_error() -> None:
    for score in scores():
        printed, unit = score.row.printed, score.row.unit
        shown = f"{float(printed):,.{len(printed.partition('.')[2])}f} {unit}"
        (row,) = (row for row in ROWS if row[:2] == [score.row.words, shown])
        assert row[3] == f"{100 * (score.ours / score.row.bytes - 1):+.1f}\N{NO-BREAK SPACE}%"
        assert score.row.command in PAGE


def test_every_source_is_cited_with_what_was_assumed_and_left_out() -> None:
    for source in sources():
        assert f"## {source.title}" in PAGE
        for name, address in source.addresses.items():
            assert f"[{name}]({address})" in PAGE
        for sentence in (*source.assumed, *source.left_out):
            assert f"- {sentence}\n" in PAGE


def test_every_miss_has_a_reason_or_is_said_to_be_unknown() -> None:
    titles = [cause.title for cause in CAUSES.values()]
    for score in scores():
        if abs(score.error) > TARGET_MOST:
            (row,) = (
                r
                for r in ROWS
                if r[0] == score.row.words and score.row.printed in r[1].replace(",", "")
            )
            assert any(title in row[4] for title in titles) or row[4] == UNKNOWN
            if not score.is_explained:
                assert UNKNOWN in row[4] or "Mask" in row[4] or "Other scores" in row[4]


def test_every_reason_is_explained_with_its_address() -> None:
    for board in boards():
        for row in board.rows:
            for reason in row[4].split("; "):
                title = reason.rpartition(" ")[0] if reason.endswith("%") else reason
                assert title in ("\N{EN DASH}", UNKNOWN) or f"**{title}.**" in PAGE
    for cause in CAUSES.values():
        assert cause.words in PAGE
        assert cause.address in PAGE


def test_the_page_says_that_the_targets_are_missed() -> None:
    errors = sorted(abs(s.error) for s in scores() if s.source.figure.is_allocated)
    median, last = statistics.median(errors), errors[-(-9 * len(errors) // 10) - 1]
    assert median > TARGET_MEDIAN
    assert last > TARGET_MOST
    assert "Both targets are missed." in PAGE
    assert f"the median error is {100 * median:.1f}\N{NO-BREAK SPACE}%" in PAGE
    assert f"nine of ten are within {100 * last:.1f}\N{NO-BREAK SPACE}%" in PAGE


def test_every_figure_is_a_point() -> None:
    assert figure().count("<circle") + figure().count("<path") == len(scores())
    assert figure() in PAGE


def test_every_source_has_a_row_with_its_largest_error() -> None:
    for board in boards():
        (row,) = (row for row in rows_of(PAGE) if f'href="#{board.source.key}"' in row[0])
        errors = [s.error for s in scores() if s.source is board.source]
        assert row[1] == str(len(errors))
        assert row[3] == f"{100 * max(errors, key=abs):+.1f}\N{NO-BREAK SPACE}%"
        assert f"{{ #{board.source.key} }}" in PAGE


def test_the_other_calculators_error_stands_beside_ours() -> None:
    for score in (score for score in scores() if score.row.other):
        (row,) = (row for row in ROWS if row[0] == score.row.words)
        error = 100 * (float(score.row.other) / float(score.row.printed) - 1)
        assert row[-1] == f"{error:+.1f}\N{NO-BREAK SPACE}%"


def test_every_step_that_is_not_counted_has_its_reason() -> None:
    rows = {row[0]: row for row in rows_of(PAGE) if len(row) == len(NOT_COUNTED)}
    for key, reason in simumax.REASONS.items():
        cases = simumax.with_reason(key)
        row = rows[reason.title]
        assert row[1] == str(len(cases))
        assert set(row[2].split(", ")) == {case.allocated for case in cases}
        assert row[3] == reason.words
    assert f"has {len(simumax.cases())} steps of Megatron-LM, measured in 19 runs" in PAGE
