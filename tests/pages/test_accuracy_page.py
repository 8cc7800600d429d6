"""'How accurate is it?', 'Scoreboard' and 'Claims we checked' show every figure and its source."""

import statistics
from collections import Counter

import pytest

from templates.pages.accuracy.boards import UNKNOWN, boards, figure
from templates.pages.accuracy.context import example
from templates.pages.accuracy.deepspeed import ranks
from templates.pages.accuracy.peers import peer_scores
from templates.pieces.accuracy import on_card
from templates.pieces.comparisons import comparisons_on, scores
from tests.pages.rendered import render_page
from tests.pages.tables import cells_of, rows_of
from tests.pages.typed import is_understood
from tools.console import ROOT
from validation.causes import CAUSES
from validation.claims.everything import GROUPS
from validation.deepspeed_zero import read_runs
from validation.error_figure import MANY
from validation.hopper import TITLES
from validation.peers import PEERS, read_predictions
from validation.published_rows import Figure
from validation.real import BEFORE_2, held_or_not
from validation.scoreboard import TARGET_MOST, Score


@pytest.fixture(scope="module")
def page() -> str:
    return render_page("accuracy")


def percent(error: float, digits: int = 2) -> str:
    return f"{100 * error:.{digits}f}\N{NO-BREAK SPACE}%"


def errors_of(chosen: list[Score]) -> list[float]:
    return sorted(abs(score.error) for score in chosen)


def test_the_first_sentences_say_what_a_t4_showed(page: str) -> None:
    allocated, reserved, used = (
        [one for one in scores() if (one.source.key, one.figure) == ("t4", figure)]
        for figure in (Figure.ALLOCATED, Figure.OF_ALLOCATOR, Figure.USED)
    )
    lead = page.partition("{: .lead }")[0]
    assert f"off by {percent(statistics.median(errors_of(allocated)))} in the median" in lead
    assert f"in {sum(score.is_held for score in used)} of 57 steps on a Tesla T4" in lead
    first = page.partition("<figure")[0].partition('<div class="figure"')[0]
    assert f"that others measured; {percent(errors_of(allocated)[-1])} at most" in first
    assert f"<dd>{percent(statistics.median(errors_of(reserved)))} <small>nine of ten" in first
    assert f"within {percent(errors_of(reserved)[-(-9 * 57 // 10) - 1])}<" in first


def test_the_first_figures_say_what_our_own_cards_showed(page: str) -> None:
    ours = [item for item in scores() if item.source.key in TITLES]
    for kind in (Figure.ALLOCATED, Figure.OF_ALLOCATOR):
        errors = errors_of([item for item in ours if item.figure is kind])
        assert f"<dd>{percent(statistics.median(errors))} <small>" in page
    drawn = [item for item in ours if item.source.key == "h200" and item.figure is Figure.USED]
    lora = [item.is_held_as_counted for item in drawn if item.row.plan.lora]
    whole = [item.is_held_as_counted for item in drawn if not item.row.plan.lora]
    said = page[page.index(f"Of {len(lora)} random plans with LoRA") :].partition("\n")[0]
    assert f"it held {sum(lora)}; of {len(whole)} that train all weights" in said
    assert said.endswith(f", {sum(whole)}.")
    both = f"in {sum(lora + whole)} of {len(lora + whole)} random ones on an H200."
    assert both in page.partition("{: .lead }")[0]
    assert sum(lora) >= 0.9 * len(lora)  # no range was fitted to them


def test_steps_on_other_cards_are_held_once_known_differences_are_counted(page: str) -> None:
    own = ("t4", *TITLES)
    others = [item for item in held_or_not(scores()) if item.source.key not in own]
    old = [item for item in others if item.source.key in BEFORE_2]
    new = [item for item in others if item not in old]
    held = [sum(item.is_held_as_counted for item in chosen) for chosen in (new, old)]
    assert f"holds {held[0]} of {len(new)} steps, and {held[1]} of {len(old)} that" in page
    assert held[0] == len(new)


def test_the_simulated_gpu_is_never_taken_for_a_card(page: str) -> None:
    counted = comparisons_on("counting")
    exact = sum(abs(item.error) < 1e-4 for item in counted)
    sentence = f"our peak is within 0.01&nbsp;% in {exact:,} of {len(counted):,} steps"
    assert sentence in page
    assert page.index(sentence) > page.index("{: .lead }")


def test_every_figure_of_a_card_has_a_cell_with_its_error() -> None:
    rows = rows_of(render_page("scoreboard"))
    for board in boards():
        for cells in board.rows:
            assert cells in rows
    for score in scores():
        error = f"{100 * (score.ours / score.measured - 1):+.1f}\N{NO-BREAK SPACE}%"
        assert any(row[0] == score.row.words and error in row for row in rows)


def test_every_miss_has_a_reason_or_is_said_to_be_unknown() -> None:
    titles = [cause.title for cause in CAUSES.values()]
    for board in boards():
        for row in board.rows if "Known differences" in board.columns else ():
            error = abs(float(row[3].partition("\N{NO-BREAK SPACE}")[0]))
            if error > 100 * TARGET_MOST:
                assert any(title in row[4] for title in titles) or row[4] == UNKNOWN


def test_every_figure_of_a_card_is_a_point(page: str) -> None:
    drawn = Counter(
        (s.source.key, s.figure)
        for s in scores()
        if s.source.key not in TITLES or s.figure is not Figure.USED
    )
    few = [number for number in drawn.values() if number <= MANY]
    many = len(drawn) - len(few)
    assert many == 7  # of the T4, the H100 and the H200
    assert figure().count("errors__dots") == many
    assert figure().count("<circle") + figure().count("errors__beyond") == sum(few)
    assert figure() in page


def test_every_prediction_counts_once(page: str) -> None:
    scores = peer_scores()
    assert [item.peer for item in scores] == list(PEERS)
    assert sum(item.rows[0].count for item in scores) == len(read_predictions())
    rows = rows_of(page)
    for place, item in enumerate(scores, 1):
        assert f'id="others-{place}"' in render_page("scoreboard")
        assert any(row[1:] == [str(cell) for cell in item.rows[0].cells[1:]] for row in rows)
        everything, *families = item.rows
        assert everything.count == sum(family.count for family in families)


def test_the_told_command_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    is_understood(example()[0], monkeypatch)


def test_each_of_deepspeeds_stages_is_beside_the_papers_equation_and_ours(page: str) -> None:
    shown = [rank.run for rank in ranks()]
    assert {(run.stage, run.gpus) for run in shown} == {(s, n) for s in (1, 2, 3) for n in (2, 3)}
    assert set(shown) == {run for run, _ in read_runs() if not run.persistent}
    # 2Ψ + 14Ψ/N on two GPUs
    assert "9.00 <small>2.00 + 1.00 + 6.00</small>" in cells_of(page)
    for rank in ranks():
        assert {rank.measured, rank.paper, rank.ours} <= cells_of(page)


def test_home_the_calculator_and_the_readme_give_both_figures() -> None:
    card = on_card()
    readme = (ROOT / "README.md").read_text("utf-8").replace(" %", "\N{NO-BREAK SPACE}%")
    for text in (readme, render_page("index"), render_page("calculator")):
        assert card.worst in text
        assert card.median in text
        assert f"{card.count} " in text
        assert "simulated GPU" in text


def test_every_figure_of_a_claim_is_shown_with_its_source() -> None:
    page = render_page("claims")
    cells = set(cells_of(page))
    for topics in GROUPS.values():
        for topic in topics():
            assert f"### {topic.title}" in page
            assert {cell for row in topic.shown for cell in row[1:]} <= cells
            if topic.publication:
                assert f"]({topic.publication.address})" in page
