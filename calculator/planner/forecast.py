"""Forecast of a run: time, traffic, energy, money, failures, and the effect of each speed-up."""

from dataclasses import dataclass, replace
from typing import Any, Final

from calculator.errors import InputError
from calculator.planner.communicate import Connection, Load, Rhythm, exchange_seconds, loads
from calculator.planner.compute import (
    SECONDS_PER_DAY,
    Crowd,
    RunCost,
    Work,
    daily_failure_rate,
    energy_mwh,
    failure_odds,
    run_cost,
    work_per_token,
)
from calculator.planner.run import Compression, Kind, Run
from calculator.planner.scale import Optimum, cerebras_loss, compute_optimal
from calculator.planner.subject import Subject, message_bytes, subject_of
from calculator.planner.utilization import utilization_of

SMALL_BATCH: Final = 512
SHARING_GROUPS: Final = 4


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast of a run.

    Attributes:
        work: FLOPs of one token.
        utilizations: share of the peak rate that model FLOPs reach, for each kind of GPU.
        tokens_per_second: of all who are online, while they compute.
        message: bytes of one volunteer's gradients, compressed.
        load: what the busiest volunteer sends and receives in one exchange.
        rhythm: how computing and exchanging alternate.
        cost: days, energy, carbon and money; waiting counts like computing.
    """

    run: Run
    subject: Subject
    work: Work
    utilizations: tuple[float, ...]
    tokens_per_second: float
    message: float
    load: Load
    rhythm: Rhythm
    cost: RunCost

    @property
    def flops(self) -> float:
        """Model FLOPs of the run."""
        return self.cost.flops

    @property
    def utilization(self) -> float:
        """Share of the peak rate of all GPUs that the model's FLOPs reach (MFU)."""
        peaks = [kind.volunteers * kind.peak_flops for kind in self.run.kinds]
        reached = sum(peak * share for peak, share in zip(peaks, self.utilizations, strict=True))
        return reached / sum(peaks)

    @property
    def hardware_utilization(self) -> float:
        """Share of the peak rate that the hardware executes while it computes (HFU)."""
        return self.utilization * self.work.hardware / self.work.model

    @property
    def exchanges(self) -> float:
        """Exchanges of the run."""
        per_exchange = self.run.target_batch * self.run.local_steps * self.subject.sequence_length
        return self.run.billion_tokens * 1e9 / per_exchange

    @property
    def seconds(self) -> float:
        """From the first token to the last."""
        return self.cost.days * SECONDS_PER_DAY

    @property
    def gigabytes_a_day(self) -> tuple[float, float]:
        """Gigabytes that a volunteer sends and receives within its hours of a day."""
        each_day = self.rhythm.exchanges_per_day * self.run.hours / 24 / 1e9
        return self.load.sent * each_day, self.load.received * each_day

    @property
    def by_kind(self) -> list[tuple[Kind, float, float]]:
        """Each kind of GPU, its share of the work, and its energy in MWh."""
        run = self.run
        rates = [
            kind.volunteers * kind.peak_flops * share
            for kind, share in zip(run.kinds, self.utilizations, strict=True)
        ]
        hours = self.cost.days * run.hours * run.gpus_each
        return [
            (
                kind,
                rate / sum(rates),
                energy_mwh(kind.volunteers * hours, kind.watts, run.overhead),
            )
            for kind, rate in zip(run.kinds, rates, strict=True)
        ]

    @property
    def chance_of_a_quiet_day(self) -> float:
        """The chance that no GPU is interrupted within a day."""
        daily = daily_failure_rate(self.run.failures / 100)
        gpus = self.run.everyone * self.run.gpus_each
        return 1 - failure_odds(daily, gpus, self.run.hours / 24)

    @property
    def optimum(self) -> Optimum:
        """Sizes and tokens that published fits recommend for the same FLOPs."""
        return compute_optimal(6 * self.subject.computed * self.run.billion_tokens * 1e9)

    def as_json(self) -> dict[str, Any]:
        """The object of ``python -m calculator plan --json``."""
        sent, received = self.gigabytes_a_day
        fewest, most = self.optimum.parameters
        return {
            "model": self.subject.title,
            "parameters_computed": self.subject.computed,
            "parameters_exchanged": self.subject.exchanged,
            "flops_per_token": self.work.model,
            "flops": self.flops,
            "tokens_per_second": self.tokens_per_second,
            "model_utilization": self.utilization,
            "hardware_utilization": self.hardware_utilization,
            "online": self.run.online,
            "message_bytes": round(self.message),
            "sent_bytes": round(self.load.sent),
            "received_bytes": round(self.load.received),
            "exchanges": self.exchanges,
            "computing_seconds": self.rhythm.computing_seconds,
            "exchange_seconds": self.rhythm.exchange_seconds,
            "computing_share": self.rhythm.computing_share,
            "gigabytes_sent_a_day": sent,
            "gigabytes_received_a_day": received,
            "days": self.cost.days,
            "gpu_hours": self.cost.gpu_hours,
            "megawatt_hours": self.cost.megawatt_hours,
            "carbon_tonnes": self.cost.carbon_tonnes,
            "dollars": self.cost.dollars,
            "chance_of_a_quiet_day": self.chance_of_a_quiet_day,
            "tokens_per_parameter": self.run.billion_tokens * 1e9 / self.subject.computed,
            "fewest_optimal_parameters": round(fewest),
            "most_optimal_parameters": round(most),
            "pile_loss_by_cerebras_gpt": cerebras_loss(self.optimum.flops),
        }


def forecast(model: str, run: Run) -> Forecast:
    """Forecast of a run of that model.

    What is left out makes a real run longer: finding a group, joining, and data that do not come
    in time.

    Args:
        model: a name of the catalog; empty for a model that the run's own numbers describe.
        run: who computes, and how they exchange.

    Raises:
        InputError: for a model that nobody knows, numbers that are missing, or a utilization
            that recomputation raises above 100%.
    """
    subject = subject_of(model, run)
    work = work_per_token(
        subject.computed,
        subject.layers,
        subject.width,
        subject.sequence_length,
        run.recomputation,
    )
    shares = tuple(utilization_of(model, run, kind, work) for kind in run.kinds)
    if max(shares) * work.hardware > work.model:
        rule = "is more than 100% with what is computed again: no GPU computes beyond its peak rate"
        raise InputError("utilization", 100 * max(shares), rule)
    crowds = tuple(
        Crowd(
            kind.volunteers * run.gpus_each,
            kind.peak_flops,
            share,
            min(run.hours, 24.0),
            kind.watts,
            run.dollars_per_hour,
        )
        for kind, share in zip(run.kinds, shares, strict=True)
    )
    flops_per_day = sum(crowd.flops_per_day for crowd in crowds)
    tokens_per_second = flops_per_day / SECONDS_PER_DAY / work.model
    message = message_bytes(subject, run)
    peers = [Connection(run.up * 1e6, run.down * 1e6, run.round_trip / 1000)] * run.online
    rhythm = Rhythm(
        run.target_batch * run.local_steps * subject.sequence_length / tokens_per_second,
        exchange_seconds(message, peers, run.way),
        run.overlap,
    )
    # those who wait are there as long as those who compute
    share = rhythm.computing_share
    slowed = tuple(replace(crowd, utilization=crowd.utilization * share) for crowd in crowds)
    return Forecast(
        run,
        subject,
        work,
        shares,
        tokens_per_second,
        message,
        max(loads(message, peers, run.way), key=lambda load: load.sent + load.received),
        rhythm,
        run_cost(
            work.model * run.billion_tokens * 1e9,
            slowed,
            overhead=run.overhead,
            kilograms_per_kwh=run.kilograms_per_kwh,
        ),
    )


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """One speed-up, switched on after those before it.

    Attributes:
        field: the option that it changes.
        is_on: whether the run uses it.
        after: the forecast with it and those before it; without it where it is off.
        toggled: the run with it switched the other way.
    """

    field: str
    is_on: bool
    after: Forecast
    toggled: Run


# each speed-up of the paper's list, and local steps: its option, the value without it, a usual one
_SPEED_UPS: Final[tuple[tuple[str, Any, Any], ...]] = (
    ("target_batch", SMALL_BATCH, 4096),
    ("compression", Compression.NONE, Compression.EIGHT),
    ("sharing_groups", None, SHARING_GROUPS),
    ("local_steps", 1, 30),
    ("overlap", False, True),
)


def speed_ups(model: str, run: Run) -> tuple[Forecast, list[SpeedUp]]:
    """The run without any speed-up, and with one after the other.

    Raises:
        InputError: as `forecast`.
    """
    subject = subject_of(model, run)
    can_share = subject.shared > SHARING_GROUPS
    listed = [item for item in _SPEED_UPS if item[0] != "sharing_groups" or can_share]
    without: dict[str, Any] = {
        field: subject.shared if field == "sharing_groups" else plain for field, plain, _ in listed
    }
    if run.target_batch < SMALL_BATCH:
        without["target_batch"] = run.target_batch
    chosen = {field: _value(run, subject, field) for field in without}
    now = replace(run, **without)
    first = after = forecast(model, now)
    found = []
    for field, _, usual in listed:
        is_on = chosen[field] != without[field]
        if is_on:
            now = replace(now, **{field: chosen[field]})
            after = forecast(model, now)
        other = without[field] if is_on else usual
        found.append(SpeedUp(field, is_on, after, replace(run, **{field: other})))
    return first, found


def _value(run: Run, subject: Subject, field: str) -> Any:
    return subject.groups if field == "sharing_groups" else getattr(run, field)
