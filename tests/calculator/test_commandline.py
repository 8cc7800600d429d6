import argparse
import dataclasses
import shlex

from hypothesis import given
from hypothesis import strategies as st

from calculator.__main__ import build_parser
from calculator.catalog import GPUS, MODELS
from calculator.command import command_for
from calculator.commandline import add_plan_options, plan_from
from calculator.groups import ELSEWHERE, GROUPS, grouped
from calculator.plan import Plan
from tests.calculator.plans import Case, cases, examples


def test_help_has_every_option_in_one_group_with_its_choices_and_its_names_elsewhere() -> None:
    parser = argparse.ArgumentParser()
    add_plan_options(parser)
    text = parser.format_help()
    fields = [option.field for _, options in grouped(Plan.options()) for option in options]
    assert sorted(fields) == sorted(Plan.options())
    assert set(ELSEWHERE) <= set(fields)
    assert all(f"\n{group.title}:\n" in text for group in GROUPS)
    for option in Plan.options().values():
        assert option.flag in text
        assert all(name in text for name, _ in option.choices)
    assert "DeepSpeed: train_micro_batch_size_per_gpu" in " ".join(text.split())


def test_flags_that_take_no_value_say_yes_or_no() -> None:
    words = "--reversible --untied-embeddings", "--no-reversible --tied-embeddings"
    for said, text in zip((True, False), words, strict=True):
        arguments = build_parser().parse_args(["estimate", "gpt2-s", *text.split()])
        plan = Plan(reversible=said, tied_embeddings=not said)
        assert plan_from(arguments, MODELS["gpt2-s"]) == plan


@given(cases(catalog_only=True), st.sampled_from([*GPUS]))
@examples(40)
def test_the_command_of_a_plan_on_a_card_gives_it_back(case: Case, gpu: str) -> None:
    case = case.on(gpu)
    command = command_for(case.architecture, case.plan)
    *start, model = shlex.split(command)[:5]
    assert start == ["python", "-m", "calculator", "estimate"]
    arguments = build_parser().parse_args(shlex.split(command)[3:])
    assert arguments.model == model == case.architecture.name
    assert plan_from(arguments, case.architecture) == case.plan


def test_a_path_with_a_space_stays_one_word() -> None:
    model = dataclasses.replace(MODELS["gpt2-s"], name="my models/config.json")
    assert shlex.split(command_for(model, Plan()))[4] == "my models/config.json"
