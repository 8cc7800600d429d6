import json
import time
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.catalog import find_gpu
from calculator.clock.answer import TIMED_NOTE
from calculator.command import command_for
from calculator.hf_config import from_config
from calculator.page.answer import answer
from calculator.page.states import DEFAULT_GPU
from calculator.plan import Plan
from calculator.planner.run import Run
from calculator.protocol import handle
from tests.calculator.plans import Case, ask, can_run, cases, examples

# the card that the page shows first
ON_A_T4 = cases(catalog_only=True).filter(lambda case: can_run(case, find_gpu(DEFAULT_GPU)))


def params(case: Case) -> dict[str, Any]:
    """The form's state as the page sends it: texts."""
    texts = {name: str(value) for name, value in case.plan.changed().items()}
    return {"model": case.architecture.name, **texts}


@given(ON_A_T4)
@examples(4)
def test_an_answer_keeps_every_rule(case: Case) -> None:
    value, shown = ask("answer", **params(case))["value"], case.on(DEFAULT_GPU)
    assert value["report"] == shown.judged.as_json()
    assert ask("estimate", **params(case))["value"] == case.judged.as_json()
    a_glance_says_nothing_else(value, ask("glance", **params(case))["value"])
    assert value["command"] == command_for(shown.architecture, shown.plan)
    used = {saving["option"] for saving in value["savings"]}
    assert ("reversible" in used) == case.resolved.reversible
    time_and_evidence_are_the_command_lines_sentences(value, shown)
    what_is_called_refused_is_refused_for_that_reason(value, params(case))
    assert ask("answer", **dict(parse_qsl(value["query"])))["value"] == value


def a_glance_says_nothing_else(whole: dict[str, Any], glance: dict[str, Any]) -> None:
    early, late = glance["verdict"], whole["verdict"]
    assert early is None or early["state"] == late["state"]
    figures, every = (
        {path: text for path, text in value["figures"].items() if not path.startswith("verdict")}
        for value in (glance, whole)
    )
    assert figures.items() <= every.items()
    both = glance.keys() - {"report", "baseline", "monitor", "verdict", "figures"}
    assert {name: glance[name] for name in both} == {name: whole[name] for name in both}


def time_and_evidence_are_the_command_lines_sentences(value: dict[str, Any], case: Case) -> None:
    report = case.report
    untimed = [note for note in report.notes if note.startswith(TIMED_NOTE)]
    assert [value["time"]] == ([report.seconds.words] if report.seconds else untimed)
    assert value["evidence"] == report.evidence.words
    assert [*value["notes"], *untimed] == list(report.notes)  # nothing is said twice


def what_is_called_refused_is_refused_for_that_reason(
    value: dict[str, Any], asked: dict[str, Any]
) -> None:
    for field, rules in value["refused"].items():
        for choice, rule in rules.items():
            error = ask("answer", **{**asked, field: choice})["error"]
            assert (error["field"], error["rule"]) == (field, rule)


@given(ON_A_T4, ON_A_T4)
@examples(3)
def test_what_is_pinned_stands_in_the_second_column(shown: Case, other: Case) -> None:
    pin = answer(params(other))["pin"]
    value = answer({**params(shown), "pin": pin})
    other = other.on(DEFAULT_GPU)
    assert value["baseline"] == other.report.as_json() | {"gpu": value["baseline"]["gpu"]}
    assert value["baseline"]["gpu"]["peak"] == other.report.gpu.total
    assert value["report"] == answer(params(shown))["report"]
    assert value["beside"]["title"] == "Pinned"
    assert answer(dict(parse_qsl(value["query"]))) == value


def test_a_pin_is_read_beside_the_questions_config_json_and_named_if_it_cannot_be() -> None:
    given = {"config": json.dumps(GIVEN)}
    pin = answer({**given, "batch_size": "3"})["pin"]
    value = answer({**given, "pin": pin})
    assert value["baseline"]["plan"]["batch_size"] == 3
    for other in (pin, "model=nothing", "batch_size=0", "what=ever"):
        assert ask("answer", pin=other)["error"]["field"] == "pin", other
    assert ask("answer", pin="model=t5-small&x")["kind"] == "result"


GIVEN = {"model_type": "gpt2", "n_layer": 3, "n_embd": 96, "n_head": 6, "vocab_size": 1009}


@pytest.mark.parametrize("method", ["answer", "estimate"])
def test_a_config_json_stands_for_a_model(method: str) -> None:
    value = ask(method, config=json.dumps(GIVEN), batch_size="2")["value"]
    case = Case(from_config(GIVEN, "config.json"), Plan(batch_size=2))
    if method == "answer":
        assert value["query"] == "batch_size=2"  # the page keeps the config in the fragment
        assert value["command"].startswith("python -m calculator estimate config.json")
        case, value = case.on(DEFAULT_GPU), value["report"]
    assert value == case.judged.as_json()


@pytest.mark.parametrize(
    ("text", "named", "rule"),
    [
        ("{", "config.json", "Expecting property name"),
        ('{"model_type": "gpt2", "n_layer": 0}', "n_layer = 0", "whole number"),
    ],
)
def test_a_mistake_in_a_config_json_is_named_beside_its_field(
    text: str, named: str, rule: str
) -> None:
    error = ask("answer", config=text)["error"]
    assert (error["type"], error["field"], error["value"]) == ("InputError", "config", named)
    assert rule in error["rule"]
    assert error["message"].isprintable()


def test_only_choices_that_no_other_option_would_allow_are_called_refused() -> None:
    asked = {"model": "gpt2-s", "gpus": "4", "data_parallel": "fsdp"}
    sharded, alone = answer(asked)["refused"], answer({"model": "gpt2-s"})["refused"]
    assert [*sharded["optimizer_bits"]] == ["8"]
    assert "does not update shards" in sharded["optimizer_bits"]["8"]
    assert "true" in sharded["paged_optimizer"]
    assert "optimizer_bits" not in alone
    assert "data_parallel" not in alone  # more GPUs allow it, which the refusal offers


BAD = [
    ({"model": "gpt3-3b-v2"}, "model", "gpt3-3b"),
    ({"gpu": "rtx3095"}, "gpu", "rtx-3090"),
    ({"gpu_memory": "0"}, "gpu_memory", "above 0"),
    ({"gpu_memory": "inf"}, "gpu_memory", "above 0"),
    ({"gpu_memory": "much"}, "gpu_memory", "above 0"),
    ({"batch_size": "0"}, "batch_size", "from 1"),
    ({"sharing_groups": "99"}, "sharing_groups", "36 layers"),
    ({"target_length": "5"}, "target_length", "only T5"),
    ({"batchsize": "2"}, "option", "did you mean 'batch_size'?"),
]


@pytest.mark.parametrize("method", ["answer", "advise", "estimate"])
@pytest.mark.parametrize(("given", "field", "rule"), BAD)
def test_a_bad_value_gets_an_error_of_field_value_and_rule(
    method: str, given: dict[str, Any], field: str, rule: str
) -> None:
    if method == "estimate" and field.startswith("gpu"):
        field = rule = "option"
    found = ask(method, **given)
    assert found.keys() == {"id", "kind", "error"}
    assert (found["id"], found["kind"]) == (7, "error")
    keys = {"type", "field", "message", "value", "rule"}
    assert found["error"].keys() - {"way_out"} == keys
    assert (found["error"]["type"], found["error"]["field"]) == ("InputError", field)
    assert rule in found["error"]["message"]


NONSENSE = [
    ("", "request", "must be JSON"),
    ("{", "request", "must be JSON"),
    ("null", "request", "must be an object"),
    ("[" * 100_000, "request", "must not nest"),
    ('{"id":' * 100_000, "request", "must not nest"),
    ('{"id": 1, "method": "answer", "params": ' + "[" * 60 + "]" * 60 + "}", "params", "object"),
    (" " * 4_000_001, "request", "at most 4,000,000 characters"),
    ('{"id": NaN}', "request", "no such number"),
    ('{"id": 1e999}', "request", "below"),
    ('{"id": 1.5}', "id", "must be a whole number"),
    ('{"id": [1]}', "id", "must be a whole number"),
    ('{"id": "' + "a" * 101 + '"}', "id", "at most 100 characters"),
    ("{}", "method", "must be one of"),
    ('{"id": 1, "method": null}', "method", "must be one of"),
    ('{"id": 1, "method": "handle"}', "method", "must be one of"),
    ('{"id": 1, "method": "answer", "params": 3}', "params", "must be an object"),
    ('{"id": 1, "method": "answer", "params": [1]}', "params", "must be an object"),
    ('{"id": 1, "method": "answer", "params": {"model": ["gpt2-l"]}}', "model", "must be text"),
    ('{"id": 1, "method": "answer", "params": {"gpu": {"a": 1}}}', "gpu", "must be text"),
    ('{"id": 1, "method": "answer", "params": {"gpu_memory": []}}', "gpu_memory", "above 0"),
    ('{"id": 1, "method": "answer", "params": {"batch_size": [1]}}', "batch_size", "one value"),
]


@pytest.mark.parametrize(("text", "field", "rule"), NONSENSE, ids=lambda value: value[:60])
def test_a_question_that_makes_no_sense_gets_an_error_that_names_the_mistake(
    text: str, field: str, rule: str
) -> None:
    error = strict(handle(text))["error"]
    assert (error["type"], error["field"]) == ("InputError", field)
    assert rule in error["message"]
    assert error["message"].isprintable()
    assert len(error["message"]) < 1200


def strict(text: str) -> Any:
    """JSON as a browser reads it: without NaN and Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
FIELDS = [
    *Plan.options(), "model", "config", "gpu", "gpu_memory", "pin", *Run.options(),
]  # fmt: skip
LIKELY = st.sampled_from(
    [
        *("gpt2-s", "t5-small", "dalle-together", "gpt3-175b", "t4", "half", "adafactor", "full"),
        *("eager", "hand", "collude", "median", "8", "16", "1e6", "0", "-1", "1000", 0, 1, 2, 1024),
        *(True, False, 1e-320, 1e300, [8, 4, 1], [1e-320, 0, 20], [{"x": 1, "y": 1e6}]),
    ]
)
QUESTIONS = st.fixed_dictionaries(
    {},
    optional={
        "id": VALUES,
        "method": st.sampled_from(["answer", "advise", "estimate", "plan"]) | VALUES,
        "params": st.dictionaries(st.sampled_from(FIELDS), LIKELY | VALUES, max_size=5) | VALUES,
    },
)


@given(QUESTIONS | VALUES)
@examples(150)
def test_any_question_gets_a_result_or_an_error_of_one_line(question: Any) -> None:
    began = time.process_time()
    found = strict(handle(json.dumps(question)))
    assert time.process_time() - began < 1
    assert found["kind"] in ("result", "error")
    if found["kind"] == "error":
        assert found["error"]["type"] == "InputError"
        assert found["error"]["message"].isprintable()
        assert len(found["error"]["message"]) < 1200


@pytest.mark.parametrize(
    "mistake", [TypeError, ValueError, KeyError, AttributeError, OverflowError]
)
def test_a_mistake_of_ours_is_not_blamed_on_the_visitor(
    mistake: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise mistake("unsupported operand")

    monkeypatch.setattr("calculator.page.answer.read_state", fail)
    error = ask("answer")["error"]
    assert (error["type"], error["field"]) == ("InternalError", None)
    assert "unsupported operand" not in error["message"]
    assert "unsupported operand" in capsys.readouterr().err  # the trace is for us
