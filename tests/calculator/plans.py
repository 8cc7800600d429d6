"""Models and plans that hypothesis draws: every one of them is one that the calculator takes."""

import json
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import assume, settings
from hypothesis import strategies as st

from calculator.architecture import Architecture
from calculator.cards import Card
from calculator.catalog import MODELS, find_gpu, find_model
from calculator.estimate import estimate
from calculator.models.registry import type_of
from calculator.optimizers.registry import rule_named
from calculator.plan import Attention, Optimizer, Plan, Precision
from calculator.planner.need import Need, judged, need_of
from calculator.protocol import handle
from calculator.report import Report
from calculator.resolution import default_length, refusal, resolve


@dataclass(frozen=True)
class Case:
    """A model, perhaps with fewer layers than the catalog's, and a plan that it can have."""

    architecture: Architecture
    plan: Plan

    @property
    def resolved(self) -> Plan:
        return resolve(self.architecture, self.plan)

    @property
    def report(self) -> Report:
        return estimate(self.architecture, self.plan)

    @property
    def judged(self) -> Report:
        return judged(self.architecture, self.plan)

    @property
    def need(self) -> Need:
        return need_of(self.judged)

    def on(self, gpu: str) -> "Case":
        return Case(self.architecture, self.plan.on(find_gpu(gpu)))

    def but(self, **options: Any) -> "Case":
        return Case(self.architecture, replace(self.plan, **options))


def case_of(model: str, words: str = "", **options: Any) -> Case:
    """A model by its name, under options that stand in one line and others."""
    return Case(find_model(model), Plan.parse({**options_of(words), **options}))


def options_of(words: str) -> dict[str, str]:
    """Options that stand in one line: "gpus=4 precision=half"."""
    return dict(word.split("=") for word in words.split())


def ask(method: str, **params: object) -> Any:
    """The protocol's answer to a page."""
    return json.loads(handle(json.dumps({"id": 7, "method": method, "params": params})))


def advise(**params: object) -> Any:
    """The whole advice to a page, asked for until it is done."""
    while not (found := ask("advise", **params)["value"])["done"]:
        pass
    return found


def names(field: str) -> list[str]:
    return [name for name, _ in Plan.options()[field].choices]


def attention_kernels(
    architecture: Architecture, precision: Precision, length: int | None = None
) -> list[Attention]:
    """The kernels that a model's class can run at a length; default: `default_length`."""
    length = length or default_length(architecture)
    return [*type_of(architecture).kernels_of(architecture, precision != Precision.FP32, length)]


@st.composite
def architectures(draw: st.DrawFn, catalog_only: bool = False) -> Architecture:
    """A model of the catalog, with 2 to 12 layers in each stack unless `catalog_only`."""
    model = draw(st.sampled_from(list(MODELS.values())))
    if catalog_only:
        return model
    layers = draw(st.integers(2, 12))
    return replace(model, layers=layers, decoder_layers=layers if model.decoder_layers else 0)


@st.composite
def cases(draw: st.DrawFn, catalog_only: bool = False, **fixed: Any) -> Case:
    """Any model under any plan; `fixed` options are not drawn."""
    model = draw(architectures(catalog_only))
    options: dict[str, Any] = {
        "batch_size": draw(st.integers(1, 6)),
        "accumulation": draw(st.integers(1, 3)),
        **{name: draw(st.sampled_from(names(name))) for name in _FREE},
        **draw(_lengths(model)),
        **draw(_update(fixed.get("optimizer"))),
        "sharing_groups": draw(st.none() | st.integers(1, model.layers)),
        "reversible": draw(st.sampled_from([None, True, False])),
        **fixed,
    }
    if options["checkpointing"] == "operations" and not _can_keep_results(model, options):
        options["checkpointing"] = "full"
    kernels = attention_kernels(model, Precision(options["precision"]))
    options.setdefault("attention", draw(st.sampled_from(kernels)))
    return Case(model, Plan(**options))


_FREE = ("precision", "checkpointing", "offload")


def _can_keep_results(model: Architecture, options: dict[str, Any]) -> bool:
    """False for our own model, reversible layers, and copies of weights that layers share."""
    shared = (options["sharing_groups"] or model.layers) < model.layers
    copied = shared and options["precision"] == "amp"
    return model.family != "dalle" and not options["reversible"] and not copied


@st.composite
def _lengths(draw: st.DrawFn, model: Architecture) -> dict[str, Any]:
    """Lengths, dropout and tying; our text-to-image transformer has its own."""
    if model.family == "dalle":
        return {}
    lengths = {"sequence_length": draw(st.integers(1, 700))}
    if model.family == "t5":
        lengths["target_length"] = draw(st.integers(1, 700))
    tied = draw(st.sampled_from([None, True, *([False] if type_of(model).can_untie else [])]))
    return {**lengths, "dropout": draw(st.sampled_from([None, 0.0, 0.1])), "tied_embeddings": tied}


@st.composite
def _update(draw: st.DrawFn, optimizer: str | None) -> dict[str, Any]:
    """An optimizer with bits and an implementation that it has."""
    chosen = Optimizer(optimizer or draw(st.sampled_from(names("optimizer"))))
    rule = rule_named(chosen)
    own = rule.bits(Plan(optimizer_bits=32))
    bits = draw(st.sampled_from([None, *(own if len(own) > 1 else ())]))
    update = draw(st.sampled_from([str(each) for each in rule.updates]))
    return {"optimizer": chosen, "optimizer_bits": bits, "update": update}


def can_run(case: Case, gpu: Card) -> bool:
    return not gpu.predates_ampere or case.plan.attention is not Attention.FLASH


def examples(number: int) -> settings:
    """Number of cases for a property."""
    return settings(max_examples=number)


# one type with every division, one with experts, and two with some
DIVIDED = (
    "meta-llama/Llama-3.2-1B",
    "mistralai/Mixtral-8x7B-v0.1",
    "openai-community/gpt2",
    "google-t5/t5-small",
)


@st.composite
def cases_on_several(draw: st.DrawFn) -> Case:
    """A model of few layers on 2 to 8 GPUs, in one of the ways to train it there."""
    model = find_model(draw(st.sampled_from(DIVIDED)))
    layers = draw(st.integers(2, 6))
    model = replace(model, layers=layers, decoder_layers=layers if model.decoder_layers else 0)
    shards = draw(st.sampled_from(["ddp", "ddp", "zero1", "fsdp", "zero2"]))
    options: dict[str, Any] = {
        "gpus": draw(st.sampled_from([2, 3, 4, 8])),
        "data_parallel": shards,
        "precision": draw(st.sampled_from(["half", "fp32", "mixed", "amp"])),
        "batch_size": draw(st.integers(1, 3)),
        "accumulation": draw(st.integers(1, 3)),
        "checkpointing": draw(st.sampled_from(["none", "full"])),
        "sequence_length": draw(st.sampled_from([256, 500, 511])),
        "context_parallel": draw(st.sampled_from([1, 1, 2])),
    }
    if refusal(model, Plan(**options)):
        options |= {"data_parallel": "ddp", "context_parallel": 1}
    assume(refusal(model, Plan(**options)) is None)
    return Case(model, Plan(**options))
