"""What is measured: a model of the catalog, a plan, and what only a measurement can choose."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from calculator.architecture import Architecture
from calculator.catalog import MODELS
from calculator.errors import InputError, unknown_name
from calculator.techniques import OPTIONS, Plan, ResolvedPlan, resolve


@dataclass(frozen=True, slots=True)
class Configuration:
    """One measurement's input.

    `layers` replaces the number of layers of each stack; `padding` gives the model an attention
    mask; `half_type` is the 16-bit format, which changes no size.
    """

    model: str
    plan: Plan
    layers: int | None = None
    padding: bool = False
    half_type: str = "bfloat16"

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise unknown_name("model", self.model, MODELS)

    @property
    def architecture(self) -> Architecture:
        """The model's shape, with `layers` applied."""
        found = MODELS[self.model]
        if self.layers is None:
            return found
        decoder = self.layers if found.decoder_layers else 0
        return replace(found, layers=self.layers, decoder_layers=decoder)

    @property
    def resolved(self) -> ResolvedPlan:
        """The plan with the model's own values filled in.

        Raises:
            InputError: for a plan that this model cannot run.
        """
        resolved = resolve(self.architecture, self.plan)
        positions = self.architecture.positions
        if positions and resolved.sequence_length > positions:
            rule = f"{self.model} has {positions} positions"
            raise InputError("sequence_length", resolved.sequence_length, rule)
        return resolved

    def as_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as JSON."""
        plain = Plan()
        options = {
            name: value
            for name, value in asdict(self.plan).items()
            if value != getattr(plain, name)
        }
        own = {
            item.name: getattr(self, item.name)
            for item in fields(self)[2:]
            if getattr(self, item.name) != item.default
        }
        return {"model": self.model, **options, **own}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        options = {name: value for name, value in row.items() if name in OPTIONS}
        own = {name: row[name] for name in ("layers", "padding", "half_type") if name in row}
        return cls(row["model"], Plan.parse(options), **own)

    @property
    def command(self) -> str:
        """The options that make this measurement again."""
        words = [self.model]
        for name, value in self.as_dict().items():
            flag = "--" + name.replace("_", "-")
            match value:
                case True:
                    words.append(flag)
                case False:
                    words.append(
                        "--untied-embeddings" if name == "tied_embeddings" else "--no-" + flag[2:]
                    )
                case _ if name != "model":
                    words += [flag, str(value)]
        return " ".join(words)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The design's options and the measurement's own."""
    parser.add_argument("model")
    for option in OPTIONS.values():
        match option.kind:
            case "flag" if option.field == "tied_embeddings":
                parser.add_argument(option.flag, action="store_true", default=None)
                parser.add_argument(
                    "--untied-embeddings",
                    dest="tied_embeddings",
                    action="store_false",
                    default=None,
                )
            case "flag":
                parser.add_argument(
                    option.flag, action=argparse.BooleanOptionalAction, default=None
                )
            case _:
                parser.add_argument(option.flag, help=option.help)
    parser.add_argument("--layers", type=int, help="layers of each stack, instead of the model's")
    parser.add_argument("--padding", action="store_true", help="give the model an attention mask")
    parser.add_argument("--half-type", choices=("bfloat16", "float16"), default="bfloat16")


def from_arguments(arguments: argparse.Namespace) -> Configuration:
    """The configuration that a command line asks for."""
    options = {name: getattr(arguments, name) for name in OPTIONS}
    return Configuration(
        arguments.model,
        Plan.parse(options),
        arguments.layers,
        arguments.padding,
        arguments.half_type,
    )


def parse(words: Sequence[str]) -> Configuration:
    """A configuration from the words of `Configuration.command`."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    return from_arguments(parser.parse_args(words))
