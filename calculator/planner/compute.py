"""Computation of a training run: time, utilization, energy, carbon and money."""

from dataclasses import dataclass
from enum import StrEnum

from calculator.errors import InputError
from calculator.planner.checks import check_count, check_not_negative, check_positive, check_share

SECONDS_PER_DAY = 86_400


class Recomputation(StrEnum):
    """Part of the forward pass that the backward pass recomputes."""

    NONE = "none"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs of training on one token.

    Attributes:
        weights: products with weights, forward and backward.
        attention: products of queries with keys and of probabilities with values.
        recomputed: FLOPs that checkpointing repeats.
    """

    weights: int
    attention: int
    recomputed: int

    @property
    def model(self) -> int:
        """FLOPs that the model needs, however it is trained; MFU counts these."""
        return self.weights + self.attention

    @property
    def hardware(self) -> int:
        """FLOPs that the hardware executes; HFU counts these."""
        return self.model + self.recomputed


def work_per_token(
    parameters: int,
    layers: int,
    width: int,
    sequence_length: int,
    recomputation: Recomputation = Recomputation.NONE,
) -> Work:
    r"""FLOPs of training a decoder on one token.

    $$6 N + 12 \, l \, d \, s$$

    with N the parameters used per token (of a mixture of experts: the active ones), l the
    layers, d the width of all heads together and s the sequence length: 2 FLOPs per parameter
    forward, 4 backward, and the same for both products of attention, of which none is left out for
    the causal mask. Full recomputation adds a third: one more forward pass.

    Valid for dense and mixture-of-experts decoders with full attention; norms, activations and the
    softmax are not counted.

    At 1,007 tokens per second, MPT 70B on an H100 reaches a printed MFU of 41.25%:

    >>> work = work_per_token(64_862_437_376, layers=80, width=8192, sequence_length=2048)
    >>> f"{utilization(work.model, 515_636 / 512, 989.5e12):.2%}"
    '41.25%'

    Source: llm-foundry (scripts/train/benchmarking, 'MFU')

    Raises:
        InputError: if a value is not a whole number of at least 1.
    """
    check_count(parameters=parameters, layers=layers, width=width, sequence_length=sequence_length)
    weights = 6 * parameters
    attention = 12 * layers * width * sequence_length
    match recomputation:
        case Recomputation.NONE:
            recomputed = 0
        case Recomputation.FULL:
            recomputed = (weights + attention) // 3
    return Work(weights, attention, recomputed)


def utilization(flops_per_token: float, tokens_per_second: float, peak_flops: float) -> float:
    r"""The fraction of a GPU's peak rate that useful FLOPs take.

    $$F \, t / p$$

    with F the FLOPs per token, t the tokens per second and GPU, and p the GPU's peak in FLOP/s. It
    is MFU with `Work.model` and HFU with `Work.hardware`.

    Source: llm-foundry (scripts/train/benchmarking, 'MFU and HFU')

    Raises:
        InputError: for values that are not above 0, and for a share above 1, which no hardware
            reaches: then a figure is wrong or counts something else.
    """
    check_positive(
        flops_per_token=flops_per_token, tokens_per_second=tokens_per_second, peak_flops=peak_flops
    )
    share = flops_per_token * tokens_per_second / peak_flops
    if share > 1:
        raise InputError(
            "tokens_per_second",
            tokens_per_second,
            f"would take {share:.1%} of the peak rate; no GPU computes more than 100%, so the "
            "throughput, the FLOPs per token or the peak rate is wrong",
        )
    return share


def utilization_of_run(
    total_flops: float, gpus: int, days: float, peak_flops: float, *, field: str = "days"
) -> float:
    """The fraction of the peak rate that a whole run used.

    Args:
        total_flops: FLOPs of all tokens.
        gpus: number of GPUs that ran all the time.
        days: how long the run took.
        peak_flops: the peak rate of one GPU in FLOP/s.
        field: the field that an error names.

    Raises:
        InputError: for values that are not above 0, and where the run would need more than 100%.
    """
    check_positive(total_flops=total_flops, days=days, peak_flops=peak_flops)
    check_count(gpus=gpus)
    share = total_flops / (gpus * days * SECONDS_PER_DAY * peak_flops)
    if share > 1:
        raise InputError(
            field,
            days,
            f"would take {share:.1%} of the peak rate; no GPU computes more than 100%, so the "
            "tokens, the parameters, the number of GPUs or the time is another than stated",
        )
    return share


def training_days(total_flops: float, gpus: int, flops_per_second: float) -> float:
    """Days that a run takes at an achieved rate.

    Args:
        total_flops: FLOPs of the run, counted the same way as the rate.
        gpus: number of GPUs.
        flops_per_second: achieved rate of one GPU in FLOP/s.

    Raises:
        InputError: if a value is not above 0.
    """
    check_positive(total_flops=total_flops, flops_per_second=flops_per_second)
    check_count(gpus=gpus)
    return total_flops / (gpus * flops_per_second) / SECONDS_PER_DAY


def megatron_parameters(layers: int, width: int, vocabulary: int, sequence_length: int) -> int:
    r"""Parameters of a GPT as Narayanan et al. count them.

    $$12 \, l \, h^2 \left(1 + \frac{13}{12 h} + \frac{V + s}{12 \, l \, h}\right)$$

    with l the layers, h the width, V the vocabulary and s the sequence length.

    >>> round(megatron_parameters(96, 12288, 51_200, 2048) / 1e9, 1)  # printed: 174.6 billion
    174.6

    Source: narayanan (equation 2)

    Raises:
        InputError: if a value is not a whole number of at least 1.
    """
    check_count(layers=layers, width=width, vocabulary=vocabulary, sequence_length=sequence_length)
    return 12 * layers * width**2 + 13 * layers * width + (vocabulary + sequence_length) * width


def megatron_flops(
    sequences: int,
    sequence_length: int,
    layers: int,
    width: int,
    vocabulary: int,
    recomputation: Recomputation = Recomputation.FULL,
) -> int:
    r"""FLOPs that the hardware executes for a batch of a GPT, as Narayanan et al. count them.

    $$96 \, B \, s \, l \, h^2 \left(1 + \frac{s}{6 h} + \frac{V}{16 \, l \, h}\right)$$

    with B the sequences of a batch, s the sequence length, l the layers, h the width and V the
    vocabulary, under full recomputation; without it, the layers' terms are three quarters of that.
    The head is never recomputed: its term is counted once forward and twice backward.

    Source: narayanan (equation 3)

    Raises:
        InputError: if a value is not a whole number of at least 1.
    """
    check_count(sequences=sequences, sequence_length=sequence_length)
    check_count(layers=layers, width=width, vocabulary=vocabulary)
    tokens = sequences * sequence_length
    passes = 4 if recomputation is Recomputation.FULL else 3
    layer_flops = passes * layers * (24 * width**2 + 4 * width * sequence_length)
    return tokens * (layer_flops + 6 * width * vocabulary)


def energy_mwh(gpu_hours: float, watts: float, overhead: float = 1.1) -> float:
    """Electric energy of a run in MWh.

    Args:
        gpu_hours: hours of all GPUs together.
        watts: power of one GPU.
        overhead: the data center's energy over that of its GPUs (PUE); 1.1 in the LLaMA papers.

    Source: llama (table 15)

    Raises:
        InputError: if a value is below 0 or the overhead below 1.
    """
    check_not_negative(gpu_hours=gpu_hours, watts=watts)
    if not overhead >= 1:
        raise InputError("overhead", overhead, "must be at least 1")
    return gpu_hours * watts * overhead / 1e6


def carbon_tonnes(megawatt_hours: float, kilograms_per_kwh: float = 0.385) -> float:
    """Tonnes of CO2 equivalent of an amount of energy.

    Args:
        megawatt_hours: energy.
        kilograms_per_kwh: intensity of the grid; 0.385, the mean of the US, in the LLaMA papers.

    >>> round(carbon_tonnes(energy_mwh(1_720_320, 400)), 2)  # Llama 2 70B, printed: 291.42
    291.42

    Source: llama (table 15)

    Raises:
        InputError: for values below 0.
    """
    check_not_negative(megawatt_hours=megawatt_hours, kilograms_per_kwh=kilograms_per_kwh)
    return megawatt_hours * kilograms_per_kwh


class FailureRate(StrEnum):
    """Conversion of a monthly failure rate to a daily one."""

    THIRTIETH = "thirtieth"  # a thirtieth of the monthly rate
    COMPOUNDED = "compounded"  # 30 days in a row survive with the month's chance
    CALENDAR = "calendar"  # a month of 365/12 days


def daily_failure_rate(monthly: float, convention: FailureRate = FailureRate.COMPOUNDED) -> float:
    """The chance that one GPU fails within a day.

    Args:
        monthly: the chance within a month, between 0 and 1.
        convention: how a month becomes days; the results differ in the third digit.

    Raises:
        InputError: if the rate is not between 0 and 1.
    """
    check_share(monthly=monthly)
    match convention:
        case FailureRate.THIRTIETH:
            return monthly / 30
        case FailureRate.COMPOUNDED:
            return 1 - float((1 - monthly) ** (1 / 30))
        case FailureRate.CALENDAR:
            return 1 - float((1 - monthly) ** (12 / 365))


def failure_odds(daily: float, gpus: int, days: float = 1.0) -> float:
    r"""The chance that at least one of several GPUs fails.

    $$1 - (1 - p)^{n d}$$

    with p the chance of one GPU and day, n the GPUs and d the days; failures are independent.

    >>> round(failure_odds(0.1, 2), 2)  # 1 - 0.9 * 0.9
    0.19

    Raises:
        InputError: for a chance that is not between 0 and 1, or no GPU.
    """
    check_share(daily=daily)
    check_count(gpus=gpus)
    check_not_negative(days=days)
    return 1 - float((1 - daily) ** (gpus * days))


@dataclass(frozen=True, slots=True)
class Crowd:
    """GPUs of one kind that compute for a run, all day or some hours of it.

    Attributes:
        gpus: their number.
        peak_flops: peak rate of one in FLOP/s, in the format that the run computes in.
        utilization: share of the peak rate that model FLOPs reach, MFU.
        hours_per_day: hours that each of them computes on an average day.
        watts: power of one while it computes.
        dollars_per_hour: price of one hour; 0 for volunteers.
    """

    gpus: int
    peak_flops: float
    utilization: float
    hours_per_day: float = 24.0
    watts: float = 0.0
    dollars_per_hour: float = 0.0

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            InputError: for a value that a crowd cannot have.
        """
        check_count(gpus=self.gpus)
        check_positive(peak_flops=self.peak_flops)
        check_share(utilization=self.utilization)
        check_positive(utilization=self.utilization, hours_per_day=self.hours_per_day)
        check_not_negative(watts=self.watts, dollars_per_hour=self.dollars_per_hour)
        if self.hours_per_day > 24:
            raise InputError("hours_per_day", self.hours_per_day, "must be at most 24")

    @property
    def flops_per_day(self) -> float:
        """Model FLOPs of all of them on an average day."""
        return self.gpus * self.peak_flops * self.utilization * self.hours_per_day * 3600


@dataclass(frozen=True, slots=True)
class RunCost:
    """Cost of a run.

    Attributes:
        flops: model FLOPs of the run.
        days: calendar days.
        gpu_hours: hours of all GPUs together.
        megawatt_hours: electric energy, the data center's overhead included.
        carbon_tonnes: tonnes of CO2 equivalent.
        dollars: the price of the GPU hours.
    """

    flops: float
    days: float
    gpu_hours: float
    megawatt_hours: float
    carbon_tonnes: float
    dollars: float


def run_cost(
    total_flops: float,
    crowds: tuple[Crowd, ...],
    *,
    overhead: float = 1.1,
    kilograms_per_kwh: float = 0.385,
) -> RunCost:
    """Time, energy, carbon and money of a run that several kinds of GPUs share.

    Args:
        total_flops: model FLOPs of the run.
        crowds: who computes; all of them from the first day to the last.
        overhead: energy of the site over that of its GPUs (PUE).
        kilograms_per_kwh: intensity of the grid.

    Raises:
        InputError: if there is no crowd or a value is not above 0.
    """
    check_positive(total_flops=total_flops)
    if not crowds:
        raise InputError("crowds", "", "must name at least one kind of GPU")
    days = total_flops / sum(crowd.flops_per_day for crowd in crowds)
    hours = [crowd.gpus * crowd.hours_per_day * days for crowd in crowds]
    energy = sum(
        energy_mwh(spent, crowd.watts, overhead) for spent, crowd in zip(hours, crowds, strict=True)
    )
    return RunCost(
        flops=total_flops,
        days=days,
        gpu_hours=sum(hours),
        megawatt_hours=energy,
        carbon_tonnes=carbon_tonnes(energy, kilograms_per_kwh),
        dollars=sum(
            spent * crowd.dollars_per_hour for spent, crowd in zip(hours, crowds, strict=True)
        ),
    )
