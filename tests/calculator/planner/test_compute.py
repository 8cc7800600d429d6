"""Every figure here was published by others; the comments say where."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.errors import InputError
from calculator.planner.compute import (
    Crowd,
    FailureRate,
    Recomputation,
    carbon_tonnes,
    daily_failure_rate,
    energy_mwh,
    failure_odds,
    megatron_flops,
    megatron_parameters,
    run_cost,
    training_days,
    utilization,
    utilization_of_run,
    work_per_token,
)

PUBLISHED = Path(__file__).parents[3] / "validation" / "published" / "llm-foundry.csv"
# layers and width of each model: scripts/train/yamls/pretrain of the same repository
MPT = {
    "mpt-125m": (12, 768),
    "mpt-350m": (24, 1024),
    "mpt-760m": (24, 1536),
    "mpt-1b": (24, 2048),
    "mpt-3b": (32, 2560),
    "mpt-7b": (32, 4096),
    "mpt-13b": (40, 5120),
    "mpt-30b": (48, 7168),
    "mpt-70b": (80, 8192),
}
# peak rates that the table divides by: Composer's speed_monitor
PEAK = {"a100": 312e12, "h100 bf16": 989.5e12, "h100 fp8": 1979e12}


def rows() -> list[dict[str, str]]:
    with PUBLISHED.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def peak_of(row: dict[str, str]) -> float:
    card = row["gpu"].partition("_")[0]
    precision = "fp8" if "fp8" in row["precision"] else "bf16"
    return PEAK["a100" if card == "a100" else f"{card} {precision}"]


def test_two_hundred_published_utilizations_are_reproduced() -> None:
    for row in (table := rows()):
        work = work_per_token(
            int(row["parameters"]),
            *MPT[row["model"]],
            int(row["sequence_length"]),
            Recomputation(row["checkpointing"]),
        )
        rate = int(row["tokens_per_second"]) / int(row["gpus"])
        mfu = 100 * utilization(work.model, rate, peak_of(row))
        hfu = 100 * utilization(work.hardware, rate, peak_of(row))
        assert mfu == pytest.approx(float(row["mfu"]), abs=0.05), row
        assert hfu == pytest.approx(float(row["hfu"]), abs=0.07), row
    assert len(table) > 200


# Narayanan et al., 2021 (Megatron-LM), table 1: billions of parameters, layers, width
NARAYANAN_SIZES = [
    (1.7, 24, 2304),
    (3.6, 30, 3072),
    (7.5, 36, 4096),
    (18.4, 40, 6144),
    (39.1, 48, 8192),
    (76.1, 60, 10240),
    (145.6, 80, 12288),
    (310.1, 96, 16384),
    (529.6, 105, 20480),
    (1008.0, 128, 25600),
]


@pytest.mark.parametrize(("billions", "layers", "width"), NARAYANAN_SIZES)
def test_the_ten_sizes_of_narayanan_to_the_printed_digit(
    billions: float, layers: int, width: int
) -> None:
    # half a unit of the printed digit, and float's own error on top: 18.45 is printed as 18.4
    count = megatron_parameters(layers, width, 51_200, 2048) / 1e9
    assert count == pytest.approx(billions, abs=0.0501)


# The same paper, table 2: layers, width, GPUs, achieved TFLOP/s, days for 300 billion tokens
NARAYANAN_DAYS = [
    (96, 12288, 384, 144, 90),
    (96, 12288, 768, 88, 74),
    (96, 12288, 1536, 44, 74),
    (105, 20480, 640, 138, 169),
    (105, 20480, 1120, 98, 137),
    (105, 20480, 2240, 48, 140),
    (96, 12288, 384, 153, 84),
    (96, 12288, 768, 149, 43),
    (96, 12288, 1536, 141, 23),
    (105, 20480, 560, 171, 156),
    (105, 20480, 1120, 167, 80),
    (105, 20480, 2240, 159, 42),
]


@pytest.mark.parametrize(("layers", "width", "gpus", "teraflops", "days"), NARAYANAN_DAYS)
def test_the_twelve_training_days_of_narayanan_within_one(
    layers: int, width: int, gpus: int, teraflops: int, days: int
) -> None:
    per_token = megatron_flops(1, 2048, layers, width, 51_200) / 2048
    assert training_days(300e9 * per_token, gpus, teraflops * 1e12) == pytest.approx(days, abs=1)


# Touvron et al., 2023 (Llama 2), table 2: GPU hours, watts, printed tonnes
LLAMA_2 = [
    (184_320, 400, 31.22),
    (368_640, 400, 62.44),
    (1_038_336, 350, 153.90),
    (1_720_320, 400, 291.42),
]


@pytest.mark.parametrize(("hours", "watts", "tonnes"), LLAMA_2)
def test_carbon_of_llama_2_to_the_printed_digit(hours: int, watts: int, tonnes: float) -> None:
    # the paper cuts digits off where we would round: 62.448 is printed as 62.44
    ours = carbon_tonnes(energy_mwh(hours, watts))
    assert tonnes - 0.001 <= ours < tonnes + 0.01


# Touvron et al., 2023 (LLaMA), table 15: GPU hours, printed MWh, printed tonnes
LLAMA_1 = [
    (809_472, 356, 137),
    (82_432, 36, 14),
    (135_168, 59, 23),
    (530_432, 233, 90),
    (1_022_362, 449, 173),
]


@pytest.mark.parametrize(("hours", "megawatt_hours", "tonnes"), LLAMA_1)
def test_energy_and_carbon_of_llama_1_to_the_printed_digit(
    hours: int, megawatt_hours: int, tonnes: int
) -> None:
    energy = energy_mwh(hours, 400)
    assert megawatt_hours - 0.5 <= energy < megawatt_hours + 1
    assert carbon_tonnes(energy) == pytest.approx(tonnes, abs=0.5)


def test_the_printed_energy_of_bloom_is_one_lower_than_its_hours_give() -> None:
    # the same table prints 475 MWh for 1,082,880 hours, where 476.5 follows; its carbon agrees
    assert energy_mwh(1_082_880, 400) == pytest.approx(476.5, abs=0.05)
    assert carbon_tonnes(energy_mwh(1_082_880, 400)) == pytest.approx(183, abs=0.5)


# 'Efficiency of training large models', section 3: 8% a month, 512 and 1,024 A100s, percent a day
@pytest.mark.parametrize(
    ("daily", "of_512", "of_1024"),
    [
        (0.0027, 74.95, 93.73),  # 0.27% as printed there: 75% and 93.7%
        (daily_failure_rate(0.08, FailureRate.THIRTIETH), 74.52, 93.51),
        (daily_failure_rate(0.08, FailureRate.COMPOUNDED), 75.90, 94.19),
        (daily_failure_rate(0.08, FailureRate.CALENDAR), 75.43, 93.96),
    ],
)
def test_odds_of_a_failing_gpu_in_every_convention(
    daily: float, of_512: float, of_1024: float
) -> None:
    assert 100 * failure_odds(daily, 512) == pytest.approx(of_512, abs=0.01)
    assert 100 * failure_odds(daily, 1024) == pytest.approx(of_1024, abs=0.01)


# Zhao et al., 2023, table 1: parameters, tokens, GPUs, days; peak rates of the cards
@pytest.mark.parametrize(
    ("parameters", "tokens", "gpus", "days", "peak", "percent"),
    [
        (65.2e9, 1.4e12, 2048, 21, 312e12, 47.2),  # LLaMA on A100; 65.2 billion: its table 2
        (176e9, 366e9, 384, 105, 312e12, 35.6),  # BLOOM on A100
        (130e9, 400e9, 768, 60, 312e12, 25.1),  # GLM on A100
        (82e9, 300e9, 1024, 13.4, 312e12, 39.9),  # HyperCLOVA on A100
    ],
)
def test_utilization_of_published_runs(
    parameters: float, tokens: float, gpus: int, days: float, peak: float, percent: float
) -> None:
    share = utilization_of_run(6 * parameters * tokens, gpus, days, peak)
    assert 100 * share == pytest.approx(percent, abs=0.1)


@pytest.mark.parametrize(
    ("parameters", "tokens", "gpus", "days", "peak"),
    [
        (137e9, 768e9, 1024, 57.7, 123e12),  # LaMDA on TPUv3, as the table prints it
        (101e9, 311e9, 192, 22, 312e12),  # FLM-101B on A800: it grew from 16B, so 6ND is too much
    ],
)
def test_a_run_beyond_the_hardware_is_refused_with_the_reason(
    parameters: float, tokens: float, gpus: int, days: float, peak: float
) -> None:
    with pytest.raises(InputError, match="no GPU computes more than 100%") as error:
        utilization_of_run(6 * parameters * tokens, gpus, days, peak)
    assert error.value.field == "days"


def test_a_throughput_beyond_the_hardware_is_refused() -> None:
    with pytest.raises(InputError, match=r"100\.1%"):
        utilization(1e9, 1001, 1e12)


def test_hours_of_a_crowd_add_up_to_the_work() -> None:
    # LLaMA 65B: 1,022,362 A100 hours and about 21 days on 2,048 of them (its section 2.4)
    flops = 1_022_362 * 3600 * 312e12 * 0.472
    cost = run_cost(flops, (Crowd(2048, 312e12, 0.472, watts=400, dollars_per_hour=2),))
    assert cost.gpu_hours == pytest.approx(1_022_362)
    assert cost.days == pytest.approx(20.8, abs=0.05)
    assert cost.megawatt_hours == pytest.approx(449.84, abs=0.01)
    assert cost.dollars == pytest.approx(2 * 1_022_362)


counts = st.integers(1, 10_000)


@given(counts, counts, st.floats(0.01, 1), st.floats(0.1, 24))
def test_more_gpus_never_take_longer(one: int, more: int, mfu: float, hours: float) -> None:
    few = run_cost(1e21, (Crowd(one, 312e12, mfu, hours),))
    many = run_cost(1e21, (Crowd(one, 312e12, mfu, hours), Crowd(more, 65e12, mfu, hours)))
    assert many.days < few.days


@given(st.floats(0, 1), counts, counts)
def test_more_gpus_never_fail_less(monthly: float, one: int, more: int) -> None:
    daily = daily_failure_rate(monthly)
    assert failure_odds(daily, one) <= failure_odds(daily, one + more)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True])
def test_a_rate_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="peak_flops"):
        utilization(1e9, 1.0, value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"gpus": 0}, "gpus"),
        ({"utilization": 1.1}, "utilization"),
        ({"utilization": 0.0}, "utilization"),
        ({"hours_per_day": 25.0}, "hours_per_day"),
        ({"watts": -1.0}, "watts"),
    ],
)
def test_a_crowd_that_cannot_be_is_refused(change: dict[str, float], field: str) -> None:
    fields: dict[str, float] = {"gpus": 1, "peak_flops": 1e12, "utilization": 0.5, **change}
    with pytest.raises(InputError) as error:
        Crowd(**fields)  # type: ignore[arg-type]
    assert error.value.field == field
