from itertools import combinations, product

import pytest

from calculator.errors import InputError
from calculator.plan import Plan
from calculator.presets import Preset, options_with, preset_of
from validation.configuration import Configuration
from validation.drawn import SIZES, drawn, meaningless, models
from validation.grid import TOGETHER, _agree, _presets, choices, grid
from validation.mesh import Axes
from validation.sample import Try, report
from validation.together import check_together


@pytest.fixture(scope="module")
def rows() -> list[Configuration]:
    return grid()


def values_of(configuration: Configuration) -> set[tuple[str, object]]:
    return {*configuration.plan.changed().items()}


def test_a_drawn_option_has_what_it_says_nothing_without() -> None:
    for each in drawn(1, 200):
        plan = each.plan
        assert plan.lora or plan.quantization == "none"
        assert plan.gpus > 1 or plan.data_parallel == "ddp"
        assert plan.checkpointing == "full" or plan.activation_offload == "none"
        assert plan.precision == "amp" or not plan.gradient_scaler


def test_the_grid_has_every_value_of_every_option_on_every_model(rows: list[Configuration]) -> None:
    on: dict[str, set[tuple[str, object]]] = {name: set() for name in models()}
    for each in rows:
        if each.model in on:  # a variant has rows of one task alone
            on[each.model] |= values_of(each)
    sized = {"accumulation", "expert_parallel"}  # whose numbers follow from the rest
    for name, seen in on.items():
        wanted = {one for one in choices({*meaningless(name)}) if one[0] not in sized}
        assert wanted <= seen, name


def test_the_grid_has_every_pair_of_values_on_three_models(rows: list[Configuration]) -> None:
    on: dict[frozenset[tuple[str, object]], set[str]] = {}
    for each in rows:
        for pair in combinations(sorted(values_of(each), key=str), 2):
            on.setdefault(frozenset(pair), set()).add(each.model)
    fit = {name: {*choices({*meaningless(name)})} for name in models()}
    for one, other in combinations(choices({"accumulation", "expert_parallel"}), 2):
        able = [name for name in fit if {one, other} <= fit[name]]
        if able and _agree(one, [other]):
            found = on.get(frozenset((one, other)), set())
            assert len(found) >= min(TOGETHER, len(able)), (one, other)


def test_the_grid_has_every_preset_on_every_model(rows: list[Configuration]) -> None:
    found = {(each.model, preset_of(each.plan)) for each in rows if is_preset(each)}
    assert found == {*product(models(), Preset)}


def test_a_new_type_leaves_most_rows_of_others_and_all_of_their_presets(
    rows: list[Configuration], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = "validation/configs/qwen3.json"
    after = [each.command for each in rows if each.model != new]
    others = [name for name in models() if name != new]
    monkeypatch.setattr("validation.grid.models", lambda: others)
    before = {each.command for each in grid()}
    assert sum(command not in before for command in after) < len(after) / 10  # some pairs alone
    assert {each.command for each in _presets()} <= {*after}


def is_preset(configuration: Configuration) -> bool:
    card, architecture = configuration.card, configuration.architecture
    found = preset_of(configuration.plan)
    plan = Plan.parse(options_with(found, architecture, card, {})).on(card)
    sizes = {name: getattr(configuration.plan, name) for name in SIZES}
    return configuration.plan == plan.but(**sizes)


def test_a_rank_is_a_place_on_every_axis() -> None:
    axes = Axes(pipeline=2, replicas=3, layers=4)
    assert axes.world == 24
    assert [axes.rank(axes.places(rank)) for rank in range(24)] == [*range(24)]
    assert axes.places(13) == {"pipeline": 1, "replicas": 0, "layers": 1}


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("update_in_backward", {"update_in_backward": True, "accumulation": 2}),
        ("optimizer", {"optimizer": "lion", "gpus": 2, "data_parallel": "fsdp"}),
        ("cpu_offload", {"cpu_offload": True}),
        ("activation_offload", {"activation_offload": "pinned"}),
        ("gradient_scaler", {"gradient_scaler": True, "pipeline_parallel": 2}),
    ],
)
def test_a_plan_of_which_a_part_would_have_no_effect_is_not_measured(
    field: str, options: dict[str, object]
) -> None:
    configuration = Configuration("validation/configs/qwen3.json", Plan.parse(options))
    with pytest.raises(InputError) as refused:
        check_together(configuration.asked)
    assert refused.value.field == field


def test_the_report_counts_answers_and_how_far_off_they_are() -> None:
    plans = drawn(1, 5)
    tries = [
        Try(plans[0], 100, "", False, 100, ""),
        Try(plans[1], 101, "", False, 100, ""),
        Try(plans[2], None, "must be 1", False, 100, ""),
        Try(plans[3], 100, "", False, None, "ValueError at peft"),
        Try(plans[4], None, "has no dropout", True, 100, ""),
    ]
    lines = [*report(tries)]
    assert lines[0] == "4 run by PyTorch, 1 of them against a law and left out below"
    assert lines[1] == "1 refused by PyTorch or a library"
    assert lines[3].split() == ["all", "3", "2", "1", "2", "+1.000"]
    assert "    1  must be 1" in lines
    assert "    1  has no dropout" in lines
    assert "    1  ValueError at peft" in lines
