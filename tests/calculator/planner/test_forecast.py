"""Plans of whole runs: what is printed of others' runs, and what must hold for every run."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator.cards import CARDS, COMMON
from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.parameters import parameter_tensors
from calculator.plan import Plan
from calculator.planner.communicate import Way
from calculator.planner.forecast import Forecast, forecast, speed_ups
from calculator.planner.largest import largest_batch
from calculator.planner.presets import PRESETS
from calculator.planner.run import Compression, Run
from calculator.planner.subject import message_bytes, subject_of
from calculator.planner.utilization import ASSUMED
from calculator.resolution import resolve
from calculator.swarm.communication import gradient_bytes
from tests.calculator.answers import refused

MODELS = st.sampled_from(["gpt2-l", "dalle-together", "t5-small", "mistralai/Mixtral-8x7B-v0.1"])
NAMES = st.sampled_from([card.name for card in COMMON])
COUNTED = st.builds("{}:{}".format, NAMES, st.integers(1, 40))
RUNS = st.builds(
    Run,
    billion_tokens=st.floats(0.1, 1000),
    volunteers=st.integers(1, 60),
    hours=st.floats(1, 24),
    gpu=NAMES,
    more_gpus=st.none() | st.lists(COUNTED, min_size=1, max_size=3).map(",".join),
    utilization=st.floats(1, 70),
    up=st.floats(1, 1000),
    down=st.floats(1, 1000),
    round_trip=st.floats(0, 1000),
    way=st.sampled_from(Way),
    target_batch=st.integers(1, 10_000),
    local_steps=st.integers(1, 500),
    compression=st.sampled_from(Compression),
    overlap=st.booleans(),
)


def test_the_messages_of_the_2021_run() -> None:
    # reference run: 126.4 MB at 8 bits, 251.8 at 16, 503.6 at 32
    for bits, megabytes in ((Compression.EIGHT, 126.4), (Compression.HALF, 251.8),
                            (Compression.NONE, 503.6)):  # fmt: skip
        run = Run(compression=bits)
        size = message_bytes(subject_of("dalle-together", run), run)
        assert size / 1e6 == pytest.approx(megabytes, abs=0.05)
        model = find_model("dalle-together")
        tensors = parameter_tensors(model, resolve(model, Plan()))
        assert size == gradient_bytes(tensors, int(bits))  # what peers of this project send


def test_the_2021_run_takes_two_and_a_half_months() -> None:
    preset = PRESETS["2021"]
    assert forecast(preset.model, preset.run).cost.days == pytest.approx(2.5 * 30.4, abs=1)


def test_a_mixed_crowd_computes_as_much_as_its_cards_together() -> None:
    # NVIDIA's data sheets: 312 TFLOP/s and 400 W an A100, 65 and 70 a T4, 989.5 and 700 an H100
    run = Run(volunteers=10, more_gpus="a100-80:3,h100:1", gpus_each=2, utilization=30)
    found = forecast("gpt2-l", run)
    assert run.everyone == 14
    assert found.tokens_per_second == pytest.approx(
        0.3 * 0.5 * 2 * (10 * 65 + 3 * 312 + 989.5) * 1e12 / found.work.model
    )
    hours = 2 * 12 * found.cost.days
    assert found.cost.gpu_hours == pytest.approx(14 * hours)
    watts = 10 * 70 + 3 * 400 + 700
    assert found.cost.megawatt_hours == pytest.approx(1.1 * watts * hours / 1e6)
    assert [kind.title for kind, _, _ in found.by_kind] == [
        "Tesla T4 16 GB", "A100 80 GB", "H100 80 GB",
    ]  # fmt: skip
    assert [share for _, share, _ in found.by_kind] == pytest.approx(
        [650 / 2575.5, 936 / 2575.5, 989.5 / 2575.5]
    )


def test_a_run_takes_the_clocks_seconds_unless_its_utilization_is_given() -> None:
    gpu, model = CARDS["a100-80"], find_model("gpt2-l")
    run = Run(gpu="a100-80", volunteers=1, hours=24)
    batch = largest_batch(model, Plan().on(gpu), gpu.memory)
    seconds = estimate(model, Plan(batch_size=batch).on(gpu)).seconds
    # the share is shown, and computed with, to a tenth of a percent
    assert forecast("gpt2-l", run).tokens_per_second == pytest.approx(
        seconds.tokens_per_second, rel=0.002
    )
    given = forecast("gpt2-l", replace(run, utilization=30))
    assert given.utilizations == (0.3,)
    assert given.tokens_per_second == pytest.approx(0.3 * 312e12 / given.work.model)


def test_where_the_clock_has_no_answer_the_utilization_is_an_assumption() -> None:
    described = {"parameters": 10**9, "layers": 24, "width": 2048}
    assert forecast("", Run.parse(described)).utilizations == (ASSUMED,)
    assert forecast("gpt2-l", Run(gpu="other", teraflops=100)).utilizations == (ASSUMED,)


@settings(deadline=None, max_examples=40)
@given(MODELS, RUNS, st.sampled_from(["up", "down", "volunteers"]), st.integers(2, 50))
def test_a_forecast_keeps_every_rule(model: str, run: Run, field: str, factor: int) -> None:
    found = forecast(model, run)
    shares_and_energy_of_all_kinds_add_up_to_the_run(found)
    assert found.seconds == pytest.approx(found.exchanges * found.rhythm.round_seconds)
    assert 0 < found.rhythm.computing_share <= 1
    figures = [value for value in found.as_json().values() if not isinstance(value, str)]
    assert all(map(math.isfinite, figures))
    the_last_speed_up_ends_at_the_run_itself(model, run, found)
    more = forecast(model, replace(run, **{field: getattr(run, field) * factor}))
    if field == "volunteers":
        assert more.tokens_per_second > found.tokens_per_second
    else:
        assert more.seconds <= found.seconds * (1 + 1e-9)


def shares_and_energy_of_all_kinds_add_up_to_the_run(found: Forecast) -> None:
    assert sum(share for _, share, _ in found.by_kind) == pytest.approx(1)
    energy = sum(energy for _, _, energy in found.by_kind)
    assert energy == pytest.approx(found.cost.megawatt_hours)


def the_last_speed_up_ends_at_the_run_itself(model: str, run: Run, found: Forecast) -> None:
    first, ups = speed_ups(model, run)
    ends = [first, *(up.after for up in ups)]
    assert ends[-1].seconds == pytest.approx(found.seconds)
    for up in ups:
        forecast(model, up.toggled)  # each can be switched
        is_switched = getattr(up.toggled, up.field) != getattr(run, up.field)
        assert is_switched or up.field == "sharing_groups"


def test_a_switch_goes_there_and_back() -> None:
    _, ups = speed_ups("gpt2-l", Run(overlap=True))
    states = {up.field: up.is_on for up in ups}
    assert states == {
        "target_batch": True, "compression": True, "sharing_groups": False, "local_steps": False,
        "overlap": True,
    }  # fmt: skip
    for up in ups:
        _, after = speed_ups("gpt2-l", up.toggled)
        assert {one.field: one.is_on for one in after} == {**states, up.field: not up.is_on}


@pytest.mark.parametrize(
    ("model", "changes", "field", "rule"),
    [
        ("gpt2-l", {"utilization": 101}, "utilization", "no GPU computes more than its peak"),
        ("gpt2-l", {"utilization": 80, "recomputation": "full"}, "utilization", "computed again"),
        ("gpt2-l", {"hours": 25}, "hours", "at most 24"),
        ("gpt2-l", {"gpu": "other"}, "teraflops", "not on the list"),
        ("gpt2-l", {"more_gpus": "t5:3"}, "more_gpus", "must be one of"),
        *(("gpt2-l", {"more_gpus": f"l4:{count}"}, "more_gpus", "from 1 to 10,000")
          for count in ("0", "", "2.5", 5000 * "9")),
        ("gpt2-l", {"more_gpus": ","}, "more_gpus", "such as t4:1,p100:2"),
        ("gpt2-l", {"more_gpus": ",".join(30 * ["l4"])}, "more_gpus", "at most 24 names"),
        ("gpt2-l", {"more_gpus": "l4:6000,t4:4000"}, "more_gpus", "10,000 volunteers in all"),
        ("gpt2-l", {"up": 0}, "up", "at least 0.001"),
        ("gpt2-l", {"overhead": 0.5}, "overhead", "at least 1"),
        ("", {"layers": 2, "width": 8}, "parameters", "must be given"),
        ("", {"parameters": 9, "layers": 2, "width": 8, "compression": "powersgd"}, "compression",
         "matrices"),
        ("", {"parameters": 9, "layers": 2, "width": 8, "sharing_groups": 1}, "sharing_groups",
         "of the list"),
        ("gpt9", {}, "model", "name that `models` lists"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_is_refused_with_the_reason(
    model: str, changes: dict[str, object], field: str, rule: str
) -> None:
    with refused(field, rule):
        forecast(model, Run.parse(changes))
