"""Docstrings become sections, and none of their words is lost."""

from calculator import allocator, states
from calculator.autograd import operations
from calculator.catalog import SOURCES
from templates.pieces.docstrings import chapters, draw_equation, link_sources, summaries


def test_a_formula_keeps_its_equation_words_and_sources() -> None:
    formulas = {f"{f.module}.{f.name}": f for chapter in chapters() for f in chapter.formulas}
    formula = formulas["calculator.states.state_bytes"]
    assert formula.summary == "Bytes of the optimizer's states of all weights."
    assert [equation.count("<math ") for equation in formula.equations] == [1]
    assert "LAMB" in " ".join(formula.words)
    assert formula.sources == "[bitsandbytes](#source-bitsandbytes)"


def test_an_equation_that_may_scroll_is_reached_by_the_keyboard() -> None:
    assert 'tabindex="0"' in draw_equation(" + ".join("abcdefghijklmnop"))
    assert "tabindex" not in draw_equation("a + b")


def test_every_function_with_a_source_is_a_formula() -> None:
    documented = (states, allocator)
    shown = {f"{f.module}.{f.name}" for chapter in chapters() for f in chapter.formulas}
    for module in documented:
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if own and "\n    Source: " in (getattr(value, "__doc__", None) or ""):
                assert f"{module.__name__}.{name}" in shown


def test_every_operation_has_a_summary() -> None:
    rows = dict(summaries(operations))
    assert {"add", "softmax", "dropout", "layer_norm"} <= rows.keys()
    assert all(rows.values())


def test_sources_are_linked_and_other_words_are_not() -> None:
    for key in SOURCES:
        assert (
            link_sources(f"{key} (page 3), another") == f"[{key}](#source-{key}) (page 3), another"
        )
    assert link_sources("a measurement of our own") == "a measurement of our own"
