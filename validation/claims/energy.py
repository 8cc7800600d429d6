"""Published energy, carbon, money and failures."""

from collections.abc import Iterator
from typing import Final

from calculator.planner.compute import (
    FailureRate,
    carbon_tonnes,
    daily_failure_rate,
    energy_mwh,
    failure_odds,
    training_days,
    work_per_token,
)
from validation.claims.claim import Claim, Topic

# Touvron et al., 2023 (LLaMA), table 15: GPU hours at 400 W, MWh, tonnes
LLAMA_1: Final = (
    ("OPT-175B", 809_472, "356", "137", ""),
    ("BLOOM-175B", 1_082_880, "475", "183", "The tonnes beside it follow from 476."),
    ("LLaMA 7B", 82_432, "36", "14", ""),
    ("LLaMA 13B", 135_168, "59", "23", ""),
    ("LLaMA 33B", 530_432, "233", "90", ""),
    ("LLaMA 65B", 1_022_362, "449", "173", ""),
)
# Touvron et al., 2023 (Llama 2), table 2: GPU hours, watts, tonnes
LLAMA_2: Final = (
    ("7B", 184_320, 400, "31.22"),
    ("13B", 368_640, 400, "62.44"),
    ("34B", 1_038_336, 350, "153.90"),
    ("70B", 1_720_320, 400, "291.42"),
)
LLAMA_2_TOTAL: Final = "539.00"


def llama_1() -> Topic:
    """Energy and carbon of LLaMA, and how long its largest size took."""
    work = work_per_token(65_200_000_000, 80, 8192, 2048)
    seconds = 1.4e12 / (380 * 2048)
    return Topic(
        "Energy and carbon of LLaMA, 2023",
        "llama",
        "GPU hours at 400 W, 1.1 times that for the data center, 0.385 kg of CO2 per kWh.",
        (
            *(
                Claim(f"{name}, {hours:,} hours", energy, energy_mwh(hours, 400), " MWh", 0, note)
                for name, hours, energy, _, note in LLAMA_1
            ),
            *(
                Claim(name, carbon, carbon_tonnes(energy_mwh(hours, 400)), " t")
                for name, hours, _, carbon, _ in LLAMA_1
            ),
            Claim(
                "LLaMA 65B, 1.4 trillion tokens at 380 a second and GPU on 2,048 GPUs",
                "21",
                training_days(1.4e12 * work.model, 2048, 380 * work.model),
                " days",
            ),
            Claim(
                "the same in GPU hours",
                "1022362",
                2048 * seconds / 3600,
                note="380 tokens a second are rounded; 380.4 give the printed hours.",
            ),
        ),
    )


def llama_2() -> Topic:
    """Carbon of Llama 2."""
    total = sum(_tonnes(hours, watts) for _, hours, watts, _ in LLAMA_2)
    return Topic(
        "Carbon of Llama 2, 2023",
        "llama2",
        "The same formula as LLaMA's, with the power that the table prints. It gives all five "
        "figures; the rows are cut off after two decimals, the total is rounded.",
        (
            *(
                Claim(f"{name}, {hours:,} hours at {watts} W", tonnes, _tonnes(hours, watts), " t")
                for name, hours, watts, tonnes in LLAMA_2
            ),
            Claim("all four", LLAMA_2_TOTAL, total, " t"),
        ),
    )


def _tonnes(hours: int, watts: int) -> float:
    return carbon_tonnes(energy_mwh(hours, watts))


# The chance that one GPU fails within a day, from 8% within a month, in each convention
CONVENTIONS: Final = {
    "0.27% a day, as printed": 0.0027,
    "a thirtieth of 8%": daily_failure_rate(0.08, FailureRate.THIRTIETH),
    "30 days compounded": daily_failure_rate(0.08, FailureRate.COMPOUNDED),
    "a month of 365/12 days": daily_failure_rate(0.08, FailureRate.CALENDAR),
}


def failures() -> Topic:
    """The chance that some GPU fails within a day."""
    printed, *others = (
        Claim(f"{gpus} GPUs, {words}", odds, 100 * failure_odds(daily, gpus), "%", 1)
        for words, daily in CONVENTIONS.items()
        for gpus, odds in ((512, "75"), (1024, "93.7"))
    )
    return Topic(
        "Failures of A100s: an article on the efficiency of training",
        "",
        "If 8% of the GPUs fail within a month, the chance that at least one of 512 or 1,024 fails "
        "within a day. How a month becomes days is a convention, and moves the answer by up to a "
        "point. The article is in Chinese; we know no lasting address of it.",
        (
            printed,
            *others,
            Claim(
                "Llama 2 70B, 1,720,320 GPU hours at 20 yuan",
                "34.4",
                1_720_320 * 20 / 1e6,
                " million yuan",
            ),
            Claim(
                "saved by one point more utilization than 43.47%",
                "0.34",
                1_720_320 * 20 / 1e6 * (1 - 43.47 / 44.47),
                " million yuan",
                note="One percent of the cost is 0.34 million; one point of utilization is more.",
            ),
            Claim(
                "291 t of CO2 in people of the US at 16.1 t a year",
                "18.2",
                291 / 16.1,
                " people",
                note="291.42 t, the unrounded figure, gives 18.1 too.",
            ),
            Claim("291 t in people of China at 6.8 t a year", "42.8", 291 / 6.8, " people"),
            Claim(
                "trees that bind 291 t within a year at 12 kg each",
                "24000",
                291_000 / 12,
                " trees",
                margin=500,
            ),
        ),
    )


def llama_3() -> Topic:
    """Interruptions of a run on 16,384 GPUs."""
    return Topic(
        "Interruptions of Llama 3, 2024",
        "llama3",
        "419 unexpected interruptions in 54 days on 16,384 H100s.",
        (Claim("hours between two of them", "3", 54 * 24 / 419, " hours"),),
    )


def topics() -> Iterator[Topic]:
    """All of this module, the oldest first."""
    yield llama_1()
    yield llama_2()
    yield failures()
    yield llama_3()
