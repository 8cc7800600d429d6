"""The page 'Plan a run': its first state, its address and its command."""

import shlex
from urllib.parse import parse_qsl

import pytest

from calculator.__main__ import build_parser
from calculator.errors import InputError
from calculator.page.run import plan_run, presets, query_of
from calculator.planner.run import Run
from templates.pages.plan.context import STAIRS
from tests.pages.rendered import render_page


def page() -> str:
    return render_page("plan")


def test_every_figure_has_one_text_from_python() -> None:
    value = plan_run({})
    for name, text in value["figures"].items():
        if f'data-figure="{name}"' in page():
            assert f'data-figure="{name}">{text}<' in page()
    shown = {part.partition('"')[0] for part in page().split('data-figure="')[1:]}
    assert shown <= value["figures"].keys()
    assert {stair["field"] for stair in value["stairs"]} == set(STAIRS)
    assert value["command"] in page()
    for label, words, _ in value["assumptions"]:
        assert f'<th scope="row">{label}</th><td>{words}</td>' in page()


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset["title"])
def test_an_address_leads_to_itself_and_to_its_command(preset: dict[str, str]) -> None:
    value = plan_run(dict(parse_qsl(preset["query"])))
    assert value["query"] == preset["query"]
    words = shlex.split(value["command"])[3:]
    given = vars(build_parser().parse_args(words))
    run = Run.parse({name: given[name] for name in Run.options()})
    assert query_of(given["model"] or "other", run) == preset["query"]
    for stair in value["stairs"]:
        assert plan_run(dict(parse_qsl(stair["query"])))["figures"]["time"]


def test_what_the_page_shows_of_a_choice_is_what_it_takes() -> None:
    value = plan_run({"gpu": "l4", "compression": "sparse"})
    again = plan_run(
        {name: text for name, text in value["values"].items() if name not in value["left_out"]}
    )
    assert again["figures"] == value["figures"]
    assert {"kept", "block", "value_bits"}.isdisjoint(value["left_out"])
    with pytest.raises(InputError):
        plan_run({"model": "other"})


def test_other_gpus_are_in_the_address_the_command_and_a_table_of_their_own() -> None:
    value = plan_run({"more_gpus": "rtx-4090:5,l4:2"})
    assert dict(parse_qsl(value["query"])) == {"more_gpus": "rtx-4090:5,l4:2"}
    words = shlex.split(value["command"])
    assert words[words.index("--more-gpus") + 1] == "rtx-4090:5,l4:2"
    assert value["figures"]["subject"].endswith("27 volunteers")
    assert [row[:2] for row in value["kinds"]] == [
        ["Tesla T4 16 GB", "20"], ["GeForce RTX 4090 24 GB", "5"], ["L4 24 GB", "2"],
    ]  # fmt: skip
    (named,) = [row for row in value["assumptions"] if row[0] == "Volunteers with other GPUs"]
    times = "\N{MULTIPLICATION SIGN}"
    assert named[1:] == [f"5 {times} GeForce RTX 4090 24 GB, 2 {times} L4 24 GB", "chosen"]
