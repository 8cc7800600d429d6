"""Hours, money, energy and carbon of a training job, from the seconds of its step.

Prices and the carbon intensity of the grid are the reader's. Energy is that of the cards at their
power limit, so it is the most that they take; the machines around them are not counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final, Self

from calculator.errors import InputError
from calculator.planner.checks import check_not_negative, check_positive
from calculator.planner.compute import carbon_tonnes, energy_mwh
from calculator.planner.option import Option
from calculator.report import Report
from calculator.units import format_count, format_energy, format_mass, format_seconds

PRICES: Final = (
    "on 2026-09-20, lambda.ai/instances asked 2.79 for an A100 80 GB and 3.99 for an H100"
)
OPTIONS: Final = (
    Option("tokens", "tokens of the data set, for the hours of the whole training", "0"),
    Option("rows", "rows of the data set, each one sequence; instead of --tokens", "0", whole=True),
    Option("epochs", "times that the training passes through the data set", "1"),
    Option(
        "price_per_hour",
        f"dollars for one GPU and hour; {PRICES}",
        "0",
    ),
    Option("kilograms_per_kwh", "kg of CO2 equivalent per kWh of your grid", "0"),
)
# beyond all tokens that were ever written
MOST: Final = 1e18
NO_HOURS: Final = "Hours of the training: no answer, since the step has no seconds."


@dataclass(frozen=True, slots=True)
class Job:
    """A data set, how often it is read, and what the reader pays.

    Attributes:
        tokens: tokens of the data set; 0 where it is given in rows.
        rows: sequences of the data set; 0 where it is given in tokens.
        epochs: passes through it.
        price_per_hour: dollars for one GPU and hour; 0 if unknown.
        kilograms_per_kwh: carbon intensity of the grid; 0 if unknown.
    """

    tokens: float = 0
    rows: int = 0
    epochs: float = 1
    price_per_hour: float = 0
    kilograms_per_kwh: float = 0

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            InputError: for a value that no job can have.
        """
        check_not_negative(**{name: getattr(self, name) for name in self.__slots__})
        check_positive(epochs=self.epochs)
        for name in self.__slots__:
            if getattr(self, name) >= MOST:
                raise InputError(name, getattr(self, name), f"must be below {MOST:g}")
        if self.tokens and self.rows:
            raise InputError("rows", self.rows, "must not stand beside tokens")
        if not (self.tokens or self.rows):
            raise InputError("tokens", "", "must be given for a whole training, or rows")

    @classmethod
    def asked(cls, given: Mapping[str, Any]) -> Self | None:
        """The job that options describe; None where none of them is given.

        Raises:
            InputError: for an option that its field does not take.
        """
        if all(given.get(option.field) is None for option in OPTIONS):
            return None
        values: dict[str, Any] = {
            option.field: option.read(given.get(option.field)) for option in OPTIONS
        }
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Spent:
    """Time of a job, with bounds, and what follows from it.

    Attributes:
        steps: updates.
        hours: of the clock on the wall.
        low: the fewest hours.
        high: the most.
        gpus: GPUs that compute all the time.
        dollars: price of their hours; None where the reader gives none.
        kilowatt_hours: at the cards' power limit; None for a card without one.
        kilograms: CO2 equivalent of that; None without the grid's.
    """

    steps: int
    hours: float
    low: float
    high: float
    gpus: int
    dollars: float | None
    kilowatt_hours: float | None
    kilograms: float | None

    @property
    def words(self) -> str:
        """The time, and a line for whatever else is known."""
        typical, low, high = (format_seconds(3600 * h) for h in (self.hours, self.low, self.high))
        lines = [f"The training takes about {typical} ({low} to {high}): {self._steps}."]
        if self.dollars is not None:
            least, most = (self.dollars * h / self.hours for h in (self.low, self.high))
            lines.append(f"Price: ${self.dollars:,.2f} (${least:,.2f} to ${most:,.2f})")
        if self.kilowatt_hours is not None:
            words = f"Energy: {format_energy(self.kilowatt_hours / 1000)} at the cards' power limit"
            if self.kilograms is not None:
                words += f", {format_mass(self.kilograms / 1000)} of CO2"
            lines.append(words)
        return "\n".join(lines)

    @property
    def _steps(self) -> str:
        steps = f"{format_count(self.steps)} steps"
        return steps if self.gpus == 1 else f"{steps} on {format_count(self.gpus)} GPUs"

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def training_words(report: Report, job: Job | None) -> list[str]:
    """The lines on a job, where one is asked for."""
    if job is None:
        return []
    found = spent(report, job)
    return found.words.splitlines() if found else [NO_HOURS]


def training_as_json(report: Report, job: Job | None) -> dict[str, Any]:
    """The same as a field of an object."""
    if job is None:
        return {}
    found = spent(report, job)
    return {"training": found and found.as_json()}


def spent(report: Report, job: Job) -> Spent | None:
    r"""The time, price, energy and carbon of a job; None where the step has no seconds.

    $$h = \lceil e D / d \rceil \, s / 3600$$

    with e the epochs, D the tokens or rows of the data, d those of a step of all GPUs, and s the
    seconds of a step.
    """
    seconds = report.seconds
    if seconds is None:
        return None
    plan = report.plan
    a_step = plan.batch_size * plan.accumulation * plan.replicas
    if job.tokens:
        a_step *= plan.sequence_length + (plan.target_length or 0)
    steps = ceil(job.epochs * (job.tokens or job.rows) / a_step)
    hours, low, high = (steps * each / 3600 for each in (seconds.step, seconds.low, seconds.high))
    gpu_hours, watts = hours * plan.all_gpus, plan.card.watts
    energy = energy_mwh(gpu_hours, watts, overhead=1) if watts else None
    return Spent(
        steps,
        hours,
        low,
        high,
        plan.all_gpus,
        job.price_per_hour * gpu_hours if job.price_per_hour else None,
        None if energy is None else 1000 * energy,
        None
        if energy is None or not job.kilograms_per_kwh
        else 1000 * carbon_tonnes(energy, job.kilograms_per_kwh),
    )
