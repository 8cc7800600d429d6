"""'How right is it?' shows every measured step, published figure and other calculator."""

import pytest

from templates.pages.accuracy.context import (
    context,
    devices,
    example,
    guide_sums,
    peer_scores,
    signed_percent,
)
from templates.pages.accuracy.deepspeed import in_sum, ranks
from templates.pieces.comparisons import comparisons_on
from templates.render import render_page
from tests.pages.tables import cells_of
from validation.__main__ import main
from validation.deepspeed_zero import read_runs
from validation.peers import PEERS, read_predictions
from validation.public import GUIDE, SITE, as_classifier


@pytest.fixture(scope="module")
def page() -> str:
    return render_page("accuracy")


def test_every_step_is_a_point_and_in_one_family() -> None:
    for device in devices():
        everything, *families = device.families
        assert everything.count == device.count == sum(family.count for family in families)
        assert device.figure.count('r="3.5"') == device.count


def test_the_worst_step_is_the_first_of_the_list(page: str) -> None:
    (counting, *_) = devices()
    worst = max(comparisons_on("counting"), key=lambda item: abs(item.error))
    assert counting.worst[0][0] == worst.row["command"]
    assert signed_percent(worst.error) in page


def test_every_option_of_the_measured_steps_has_a_row(page: str) -> None:
    for item in comparisons_on("counting"):
        for name in item.techniques():
            field, _, value = name.partition("=")
            flag = "--" + field.replace("_", "-")
            expected = {
                "": "The defaults",
                "True": flag,
                "False": flag.replace("--tied", "--untied")
                if "tied" in field
                else f"--no-{flag[2:]}",
            }.get(value, f"{flag} {value}")
            assert expected in cells_of(page)


def test_every_published_figure_is_on_the_page(page: str) -> None:
    for publication in (GUIDE, SITE):
        assert publication.address in page
        for row in publication.rows:
            assert row.words in cells_of(page)


def test_the_sum_with_the_estimate_is_said_to_be_off_by_as_much_as_it_is(page: str) -> None:
    # fp32, batch 4: the guide's 14,949 MB less 1,343 of context, and our peak as a classifier
    first = GUIDE.rows[0]
    peak, card = as_classifier(first), (14_949 - 1_343) * 2**20
    assert first.bytes - GUIDE.context == card
    error = (1.05 * peak + 8_519_680) / card - 1  # 5 % of slack and cuBLAS' workspace
    lowest, highest = guide_sums()
    assert float(lowest.rstrip("\u00a0%")) <= 100 * error <= float(highest.rstrip("\u00a0%"))
    assert f"off by {lowest} to {highest}." in page


def test_every_prediction_counts_once() -> None:
    scores = peer_scores()
    assert [item.peer for item in scores] == list(PEERS)
    assert sum(item.rows[0].count for item in scores) == len(read_predictions())
    for item in scores:
        everything, *families = item.rows
        assert everything.count == sum(family.count for family in families)


def test_an_error_keeps_its_sign() -> None:
    shown = [signed_percent(error) for error in (-0.25, 0.0012, 2.4)]
    assert shown == [
        "-25.0\N{NO-BREAK SPACE}%",
        "+0.12\N{NO-BREAK SPACE}%",
        "+240\N{NO-BREAK SPACE}%",
    ]


def test_the_page_says_what_is_missing_until_a_gpu_is_measured(page: str) -> None:
    assert ("did not measure these steps on a real GPU" in page) == (not comparisons_on("cuda"))


def test_the_told_command_exists(capsys: pytest.CaptureFixture[str]) -> None:
    words = example()[0].split()
    assert words[:3] == ["python", "-m", "validation"]
    with pytest.raises(SystemExit) as ended:
        main([*words[3:], "--help"])
    assert ended.value.code == 0
    assert words[3] in capsys.readouterr().out


def test_what_the_command_prints_has_all_phases(page: str) -> None:
    printed = context()["check_output"]
    assert isinstance(printed, str)
    assert printed in page
    for phase in ("forward", "loss", "backward", "update", "peak"):
        assert f"\n{phase}" in printed


def test_each_of_deepspeeds_stages_is_beside_the_papers_equation_and_ours(page: str) -> None:
    shown = [rank.run for rank in ranks()]
    assert {(run.stage, run.gpus) for run in shown} == {(s, n) for s in (1, 2, 3) for n in (2, 3)}
    assert set(shown) == {run for run, _ in read_runs() if not run.persistent}
    # 2Ψ + 14Ψ/N on two GPUs
    assert "9.00 <small>2.00 + 1.00 + 6.00</small>" in cells_of(page)
    for rank in ranks():
        assert {rank.measured, rank.paper, rank.ours} <= cells_of(page)


def test_parts_of_a_weights_bytes_are_shown_with_their_sum() -> None:
    assert in_sum((2, 2 / 3, 4)) == "6.67 <small>2.00 + 0.67 + 4.00</small>"
