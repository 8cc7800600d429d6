import argparse
import dataclasses
import shlex

import pytest
from hypothesis import given

from calculator.__main__ import build_parser
from calculator.catalog import MODELS
from calculator.command import command_for
from calculator.commandline import add_plan_options, plan_from
from calculator.plan import Plan
from tests.calculator.plans import Case, cases, examples


def parsed(words: list[str]) -> Plan:
    parser = argparse.ArgumentParser()
    add_plan_options(parser)
    return plan_from(parser.parse_args(words), MODELS["gpt2-s"])


def test_every_option_is_on_the_command_line() -> None:
    parser = argparse.ArgumentParser()
    add_plan_options(parser)
    text = parser.format_help()
    for option in Plan.options().values():
        assert option.flag in text
        assert all(name in text for name, _ in option.choices)


@pytest.mark.parametrize(
    ("words", "plan"),
    [
        ("--batch-size 4 --precision half", {"batch_size": 4, "precision": "half"}),
        ("--optimizer-bits=8", {"optimizer_bits": 8}),
        ("--reversible", {"reversible": True}),
        ("--no-reversible", {"reversible": False}),
        ("--tied-embeddings", {"tied_embeddings": True}),
        ("--untied-embeddings", {"tied_embeddings": False}),
        ("--dropout 0", {"dropout": 0.0}),
    ],
)
def test_words_mean_what_they_say(words: str, plan: dict[str, object]) -> None:
    assert parsed(words.split()) == Plan.parse(plan)


@given(cases(catalog_only=True))
@examples(40)
def test_the_command_of_a_plan_gives_it_back(case: Case) -> None:
    command = command_for(case.architecture, case.plan)
    *start, model = shlex.split(command)[:5]
    assert start == ["python", "-m", "calculator", "estimate"]
    arguments = build_parser().parse_args(shlex.split(command)[3:])
    assert arguments.model == model == case.architecture.name
    assert plan_from(arguments, case.architecture) == case.plan


def test_a_path_with_a_space_stays_one_word() -> None:
    model = dataclasses.replace(MODELS["gpt2-s"], name="my models/config.json")
    assert shlex.split(command_for(model, Plan()))[4] == "my models/config.json"
