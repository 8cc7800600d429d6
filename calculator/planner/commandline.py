"""The planner's commands: ``plan``, ``compute``, ``communicate`` and ``scale``."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from calculator.catalog import find_gpu
from calculator.commandline import add_options
from calculator.errors import InputError, unknown_name
from calculator.planner.communicate import Connection, Rhythm, Way, exchange_seconds, loads
from calculator.planner.compute import Crowd, Recomputation, run_cost, work_per_token
from calculator.planner.forecast import forecast
from calculator.planner.option import Option
from calculator.planner.run import Run
from calculator.planner.scale import cerebras_loss, compute_optimal
from calculator.planner.words import in_words

COMPUTE: Final = (
    Option("parameters", "parameters that a token meets; of experts the active ones", whole=True),
    Option("layers", "layers", whole=True),
    Option("width", "width of all heads together", whole=True),
    Option("sequence_length", "tokens in a sequence", "2048", whole=True),
    Option("tokens", "tokens of the whole run"),
    Option("gpus", "number of GPUs", "1", whole=True),
    Option("peak_tflops", "peak rate of one GPU in TFLOP/s, in the format of the run", "0"),
    Option("utilization", "share of the peak that model FLOPs reach (MFU)", "0.4"),
    Option("hours_per_day", "hours that each GPU computes a day", "24"),
    Option("watts", "power of one GPU", "0"),
    Option("dollars_per_hour", "price of one GPU hour", "0"),
    Option("overhead", "energy of the site over that of its GPUs (PUE)", "1.1"),
    Option("kilograms_per_kwh", "kg of CO2 equivalent per kWh of the grid", "0.385"),
)
COMMUNICATE: Final = (
    Option("parameters", "parameters whose gradients are exchanged", whole=True),
    Option("bits", "bits per parameter; with sparse exchanges less than 1", "8"),
    Option("peers", "number of volunteers", "8", whole=True),
    Option("up", "upload rate in Mbit/s", "20"),
    Option("down", "download rate in Mbit/s", "100"),
    Option("round_trip", "milliseconds to another volunteer and back", "100"),
    Option("computing_seconds", "seconds of computing between two exchanges", "60"),
)
SCALE: Final = (Option("flops", "budget of the run in FLOPs"),)


def add_numbers(parser: argparse.ArgumentParser, options: Iterable[Option]) -> None:
    """Add options to a command."""
    for option in options:
        default = "" if option.default is None else f"; default: {option.default}"
        flag = "--" + option.field.replace("_", "-")
        parser.add_argument(flag, metavar="NUMBER", help=f"{option.help}{default}")


def add_planner_commands(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the planner's commands to the command line."""
    plan = commands.add_parser("plan", help="what a run of volunteers takes")
    plan.add_argument(
        "model", nargs="?", default="", help="a name from `models`; else --parameters and others"
    )
    add_options(plan, Run.options().values())
    plan.add_argument("--json", action="store_true", help="print one JSON object")
    compute = _add(commands, "compute", "days, energy and money of a run", COMPUTE)
    compute.add_argument("--recomputation", metavar="CHOICE", help="none full; default: none")
    compute.add_argument(
        "--gpu",
        action="append",
        metavar="NAME[:NUMBER]",
        help="a card of the calculator's list, with its peak rate and power, instead of --gpus, "
        "--peak-tflops and --watts; several make a mixed crowd",
    )
    communicate = _add(commands, "communicate", "what an exchange costs", COMMUNICATE)
    communicate.add_argument("--way", metavar="CHOICE", help="all-reduce all-gather store round")
    communicate.add_argument(
        "--overlap", action="store_true", help="keep computing during an exchange"
    )
    _add(commands, "scale", "size and tokens for a budget", SCALE)


def _add(
    commands: "argparse._SubParsersAction[Any]", name: str, words: str, options: tuple[Option, ...]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=words)
    add_numbers(parser, options)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def run_planner(arguments: argparse.Namespace) -> str:
    """The text that a planner's command prints.

    Raises:
        InputError: for an option that is missing or that its field does not take.
    """
    given = vars(arguments)
    answer = COMMANDS[arguments.command](given)
    if arguments.json:
        return json.dumps(answer)
    return "\n".join(in_words(answer))


def _read(options: tuple[Option, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    return {option.field: option.read(given.get(option.field)) for option in options}


def _choice(field: str, given: str | None, kinds: type[Recomputation] | type[Way]) -> Any:
    names = [kind.value for kind in kinds]
    if given is None:
        return kinds(names[0])
    if given not in names:
        raise unknown_name(field, given, names)
    return kinds(given)


def _plan(given: Mapping[str, Any]) -> dict[str, Any]:
    return forecast(
        given["model"], Run.parse({name: given[name] for name in Run.options()})
    ).as_json()


def _compute(given: Mapping[str, Any]) -> dict[str, Any]:
    values = _read(COMPUTE, given)
    recomputation = _choice("recomputation", given.get("recomputation"), Recomputation)
    work = work_per_token(
        values["parameters"],
        values["layers"],
        values["width"],
        values["sequence_length"],
        recomputation,
    )
    cost = run_cost(
        work.model * values["tokens"],
        tuple(_crowds(values, given.get("gpu") or ())),
        overhead=values["overhead"],
        kilograms_per_kwh=values["kilograms_per_kwh"],
    )
    hardware = values["utilization"] * work.hardware / work.model
    if hardware > 1:
        rule = f"needs {hardware:.1%} of the hardware with recomputation; at most 100% is possible"
        raise InputError("utilization", values["utilization"], rule)
    return {
        "flops_per_token": work.model,
        "flops": cost.flops,
        "hardware_utilization": hardware,
        "days": cost.days,
        "gpu_hours": cost.gpu_hours,
        "megawatt_hours": cost.megawatt_hours,
        "carbon_tonnes": cost.carbon_tonnes,
        "dollars": cost.dollars,
    }


def _crowds(values: Mapping[str, Any], cards: Iterable[str]) -> Iterator[Crowd]:
    """The GPUs of the list that are named, else those that the numbers describe."""
    shared = values["utilization"], values["hours_per_day"]
    price = values["dollars_per_hour"]
    if not cards:
        if not values["peak_tflops"]:
            raise InputError("peak_tflops", "", "must be given, or cards of the list by --gpu")
        peak = values["peak_tflops"] * 1e12
        yield Crowd(values["gpus"], peak, *shared, values["watts"], price)
    for card in cards:
        name, _, number = card.partition(":")
        gpu = find_gpu(name)
        if not gpu.teraflops:
            raise InputError("gpu", name, "has no known peak rate; give --peak-tflops")
        count = Option("gpu", "NAME:NUMBER", "1", whole=True).read(number or None)
        yield Crowd(int(count), gpu.teraflops * 1e12, *shared, float(gpu.watts), price)


def _communicate(given: Mapping[str, Any]) -> dict[str, Any]:
    values = _read(COMMUNICATE, given)
    way = _choice("way", given.get("way"), Way)
    if values["peers"] < 1:
        raise InputError("peers", values["peers"], "must be at least 1")
    if not 0 < values["bits"] <= 32:
        raise InputError("bits", values["bits"], "must be above 0, at most 32")
    if values["peers"] > MOST_PEERS:
        raise InputError("peers", values["peers"], f"must be at most {MOST_PEERS}")
    link = Connection(values["up"] * 1e6, values["down"] * 1e6, values["round_trip"] / 1000)
    message = values["parameters"] * values["bits"] / 8
    peers = [link] * values["peers"]
    seconds = exchange_seconds(message, peers, way)
    rhythm = Rhythm(values["computing_seconds"], seconds, given["overlap"])
    load = loads(message, peers, way)[0]
    return {
        "message_bytes": round(message),
        "sent_bytes": round(load.sent),
        "received_bytes": round(load.received),
        "exchange_seconds": seconds,
        "computing_share": rhythm.computing_share,
        "sent_bytes_per_day": round(load.sent * rhythm.exchanges_per_day),
    }


def _scale(given: Mapping[str, Any]) -> dict[str, Any]:
    values = _read(SCALE, given)
    advice = compute_optimal(values["flops"])
    fewest, most = advice.parameters
    return {
        "parameters_at_20_tokens_each": round(advice.by_ratio.parameters),
        "tokens_at_20_tokens_each": round(advice.by_ratio.tokens),
        "fewest_parameters": round(fewest),
        "most_parameters": round(most),
        "pile_loss_by_cerebras_gpt": cerebras_loss(values["flops"]),
    }


MOST_PEERS: Final = 100_000
COMMANDS: Final[dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "plan": _plan,
    "compute": _compute,
    "communicate": _communicate,
    "scale": _scale,
}
