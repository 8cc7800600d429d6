"""Docstrings become sections, no word lost; what a layer keeps is as published and measured."""

from calculator import allocator, states
from calculator.catalog import SOURCES
from templates.pages.formulas.layer_formulas import rows
from templates.pieces.docstrings import chapters, link_sources


def test_a_formula_keeps_its_equation_words_and_sources() -> None:
    formulas = {f"{f.module}.{f.name}": f for chapter in chapters() for f in chapter.formulas}
    formula = formulas["calculator.states.state_bytes"]
    assert formula.summary == "Bytes of the optimizer's states of all weights."
    assert [equation.count("<math ") for equation in formula.equations] == [1]
    assert "LAMB" in " ".join(formula.words)
    assert formula.sources == "[bitsandbytes](#source-bitsandbytes)"


def test_every_function_with_a_source_is_a_formula() -> None:
    documented = (states, allocator)
    shown = {f"{f.module}.{f.name}" for chapter in chapters() for f in chapter.formulas}
    for module in documented:
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if own and "\n    Source: " in (getattr(value, "__doc__", None) or ""):
                assert f"{module.__name__}.{name}" in shown


def test_sources_are_linked_and_other_words_are_not() -> None:
    for key in SOURCES:
        assert (
            link_sources(f"{key} (page 3), another") == f"[{key}](#source-{key}) (page 3), another"
        )
    assert link_sources("a measurement of our own") == "a measurement of our own"


def test_layers_keep_the_published_and_measured_multiples_and_fused_attention_no_scores() -> None:
    by_title = {row.title: row for row in rows()}
    # Korthikanti et al. 2022, equation 1; 16 N are the statistics of two norms in fp32
    assert by_title["BERT Base"].eager[2] == "34 N·d + 5 Q + 16 N"
    # its GELU is written in plain operations: fitted on real PyTorch 2.13 and transformers 5.23
    # over many sizes, exact to the byte
    gpt2 = ("114 N·d + 9 Q + 16 N", "86 N·d + 7 Q + 16 N", "58 N·d + 5 Q + 16 N")
    assert by_title["GPT-2 Small"].eager == gpt2
    for title, row in by_title.items():
        assert title == "GPT-J 6B" or not any("Q" in formula for formula in row.fused)
