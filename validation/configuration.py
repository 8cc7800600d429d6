"""The measured configuration: a model, a plan, and options that only a measurement has."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Final, Self

from calculator.architecture import Architecture
from calculator.cards import CARDS, TODAY, Card, find_card
from calculator.errors import InputError
from calculator.plan import HalfFormat, Plan, Precision
from calculator.resolution import default_length, own_task, resolve
from validation.subject import Subject, find_subject

# the card whose kernels the simulated GPU has, unless another is named
COUNTED: Final = CARDS["a100-80"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """One measurement's input.

    `model` is a name of the catalog or the path of a config.json; `layers` replaces the number of
    layers of each stack; `padding` gives the model an attention mask.
    """

    model: str
    plan: Plan
    layers: int | None = None
    padding: bool = False

    def __post_init__(self) -> None:
        find_subject(self.model, self.layers)

    @property
    def subject(self) -> Subject:
        """The model, with `layers` applied."""
        return find_subject(self.model, self.layers)

    @property
    def architecture(self) -> Architecture:
        """The model's shape, with `layers` applied.

        Raises:
            InputError: for a model that the calculator cannot count yet.
        """
        return self.subject.architecture

    @property
    def card(self) -> Card:
        """The card whose kernels run: the plan's, or that of all rows that name none."""
        return COUNTED if self.plan.card == TODAY else self.plan.card

    @property
    def resolved(self) -> Plan:
        """The plan with the model's own values filled in, as far as the calculator knows them.

        Raises:
            InputError: for a plan that this model cannot run.
        """
        found = self.subject.counted
        if isinstance(found, InputError):
            return _uncounted(self.plan)
        return resolve(found, self.plan.on(self.card))

    @property
    def asked(self) -> Plan:
        """The plan with all that it leaves open filled in; what runs it may refuse is not asked."""
        found = self.subject.counted
        plan = self.plan.on(self.card)
        return _uncounted(plan) if isinstance(found, InputError) else completed(found, plan)

    def as_dict(self) -> dict[str, Any]:
        """Values that differ from the defaults, as JSON."""
        options = self.plan.changed()
        own = {
            item.name: getattr(self, item.name)
            for item in fields(self)[2:]
            if getattr(self, item.name) != item.default
        }
        gpu = {} if self.card == COUNTED else {"gpu": self.card.name}
        return {"model": self.model, **options, **own, **gpu}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        options = {name: value for name, value in row.items() if name in Plan.options()}
        own = {name: row[name] for name in ("layers", "padding") if name in row}
        card = find_card(row["gpu"]) if "gpu" in row else TODAY
        return cls(row["model"], Plan.parse(options).on(card), **own)

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


def completed(architecture: Architecture, plan: Plan) -> Plan:
    """The plan with the model's own values for all that it leaves open, and no rule asked."""
    scaled = plan.gradient_scaler and plan.precision is Precision.AMP
    narrow = HalfFormat.FP16 if scaled or plan.card.predates_ampere else HalfFormat.BF16
    most = max(architecture.layers, architecture.decoder_layers)
    groups = plan.sharing_groups or architecture.sharing_groups or most
    own = {
        "sequence_length": default_length(architecture),
        "target_length": architecture.target_length,
        "format": narrow,
        "task": own_task(architecture),
        "labels": architecture.labels,
        "optimizer_bits": plan.own_bits,
        "pipeline_stages": plan.own_stages,
        "reversible": architecture.reversible,
        "dropout": architecture.dropout,
        "tied_embeddings": architecture.tied_embeddings,
        "lora_dropout": 0.0,
    }
    left_open = {name: value for name, value in own.items() if getattr(plan, name) is None}
    if not plan.checkpointing.is_of_layers:
        left_open["checkpoint_every"] = 1
    groups = min(groups, architecture.shared_layers)
    return plan.but(sharing_groups=groups, gradient_scaler=scaled, **left_open)


def _uncounted(plan: Plan) -> Plan:
    """A plan for a model whose own values nobody knows yet; the real class's stay."""
    if not plan.sequence_length:
        rule = "must be given for a model that the calculator cannot count yet"
        raise InputError("sequence_length", "", rule)
    bits = plan.optimizer_bits or plan.own_bits
    return replace(plan, optimizer_bits=bits, reversible=bool(plan.reversible))


def add_options(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """The design's options and the measurement's own; the model may be `optional`."""
    words = "a name of the catalog, or the path of a config.json"
    if optional:
        words += "; without one, several steps that fit this machine go to a file to send in"
    parser.add_argument("model", nargs="?" if optional else None, help=words)
    for option in Plan.options().values():
        match option.kind:
            case "flag":
                name = option.field
                parser.add_argument(option.flag, dest=name, action="store_true", default=None)
                parser.add_argument(option.negative_flag, dest=name, action="store_false")
            case _:
                parser.add_argument(option.flag, help=option.help)
    parser.add_argument("--gpu", help="the card whose kernels the simulated GPU has")
    parser.add_argument("--layers", type=int, help="layers of each stack, instead of the model's")
    parser.add_argument("--padding", action="store_true", help="give the model an attention mask")


def from_arguments(arguments: argparse.Namespace) -> Configuration:
    """The configuration that a command line asks for."""
    options = {name: getattr(arguments, name) for name in Plan.options()}
    return Configuration(
        arguments.model,
        Plan.parse(options).on(find_card(arguments.gpu) if arguments.gpu else TODAY),
        arguments.layers,
        arguments.padding,
    )


def parse(words: Sequence[str]) -> Configuration:
    """A configuration from the words of `Configuration.command`."""
    return from_arguments(_parser().parse_args(words))


@cache
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser
