import re
from typing import Final
from urllib.parse import parse_qsl

import pytest

from calculator.__main__ import main
from calculator.catalog import find_gpu, find_model
from calculator.estimate import estimate
from calculator.page.answer import answer
from calculator.plan import Plan
from calculator.planner.compute import carbon_tonnes, energy_mwh
from calculator.planner.job import NO_HOURS, Job, Spent, spent
from calculator.report import Report
from tests.calculator.answers import refused
from tests.calculator.plans import advise

Captured = pytest.CaptureFixture[str]


def report_of(gpu: str = "a100-80", **options: object) -> Report:
    plan = Plan.parse({"sequence_length": 1024, "batch_size": 4, "accumulation": 2, **options})
    return estimate(find_model("gpt2"), plan.on(find_gpu(gpu)))


def takes(report: Report, **job: float) -> Spent:
    return spent(report, Job(**job))


def test_rows_and_their_tokens_take_as_many_steps() -> None:
    report = report_of()
    by_rows = takes(report, rows=8_001, epochs=2)
    assert by_rows == takes(report, tokens=8_001 * 1024, epochs=2)
    assert by_rows.steps == 2_001  # 16,002 sequences, 4 x 2 of them in a step
    assert by_rows.hours == pytest.approx(2_001 * report.seconds.step / 3600)
    assert by_rows.low < by_rows.hours < by_rows.high


def test_every_gpu_of_the_run_is_paid_for() -> None:
    job = {"tokens": 1e9, "price_per_hour": 2.79}
    alone, together = (takes(report_of(gpus=gpus), **job) for gpus in (1, 8))
    assert together.steps == -(-alone.steps // 8)
    assert together.dollars == pytest.approx(8 * together.hours * 2.79)


def test_energy_and_carbon_are_those_of_the_planner_without_the_site() -> None:
    # Llama 2 70B: 1,720,320 hours at 400 W and 0.385 kg a kWh; printed with a PUE of 1.1: 291.42 t
    found = takes(report_of(), tokens=1e9, kilograms_per_kwh=0.385)
    assert find_gpu("a100-80").watts == 400
    times = 1_720_320 / found.hours
    assert found.kilograms * times * 1.1 / 1000 == pytest.approx(291.42, abs=0.01)
    assert found.kilowatt_hours * times == pytest.approx(1000 * energy_mwh(1_720_320, 400, 1))
    assert carbon_tonnes(found.kilowatt_hours / 1000) == pytest.approx(found.kilograms / 1000)


def test_what_is_not_known_is_not_said() -> None:
    found = takes(report_of(), rows=1)
    assert (found.dollars, found.kilograms) == (None, None)
    assert found.words.count("\n") == 1  # hours, and energy at the card's own limit
    assert spent(report_of("40GiB"), Job(rows=1)) is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"tokens": "1e9", "rows": "5"}, "rows"),
        ({"price_per_hour": "2"}, "tokens"),
        ({"rows": "2.5"}, "rows"),
        ({"rows": "2", "epochs": "0"}, "epochs"),
        ({"tokens": "-1"}, "tokens"),
        ({"tokens": "1e300"}, "tokens"),
    ],
)
def test_a_job_that_cannot_be_is_refused_by_its_field(given: dict[str, str], field: str) -> None:
    with refused(field):
        Job.asked(given)


DATA: Final = {"tokens": "1e7", "epochs": "2", "price_per_hour": "0.5", "kilograms_per_kwh": "0.4"}


def test_the_page_says_what_the_terminal_says_of_a_training(capsys: Captured) -> None:
    found = answer({"model": "gpt2-l", "gpu": "t4", **DATA})
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in DATA.items()]
    main(["estimate", "gpt2-l", "--gpu", "t4", *flags])
    printed = capsys.readouterr().out
    for sentence in re.split(r"(?<=\.)\s", found["training"]):
        assert sentence.removesuffix(".") in printed
    assert "Price: $" in found["training"]
    assert DATA.items() <= dict(parse_qsl(found["query"])).items()
    assert answer({"model": "gpt2-l", "price_per_hour": "2"})["training"] == ""
    untimed = answer({"model": "gpt2-l", "gpu_memory": "20", "rows": "10"})
    assert untimed["training"] == NO_HOURS


def test_proposals_keep_the_data_set() -> None:
    advice = advise(model="gpt2-s", batch_size="32", gpu="t4", rows="10")
    ways = [way["query"] for way in advice["ways"] if way["query"]]
    assert ways
    assert all("rows=10" in query for query in ways)
