"""Verdicts that the calculator's page shows before Python: what Python says afterwards."""

import pytest

from calculator.cards import CARDS
from calculator.catalog import known_shape
from calculator.page.answer import answer
from calculator.page.states import read_state
from calculator.planner.need import bounds, judged, need_of
from calculator.presets import FIELD, Preset
from templates.pages.calculator import first
from templates.pages.index import fit

# those of Home and of two servers, and others: Turing, Blackwell, AMD's, Apple's
COMPUTED = (*fit.CARDS, *first.IN_DATA_CENTERS)
OTHERS = ("rtx-2080-ti", "rtx-5060-laptop", "mi300x", "m4-pro-24")


def by_card(verdicts: first.Verdicts, preset: Preset) -> dict[str, tuple[str, str]]:
    """A preset's verdicts with each card in its sum."""
    return {
        name: (state, words.format(card=CARDS[name].short, memory=first.gibibytes(CARDS[name])))
        for state, words, names in verdicts[preset.value]
        for name in names
    }


@pytest.mark.parametrize("model", ["gpt2-l", "meta-llama/Llama-3.2-3B"])
def test_the_verdicts_of_homes_models_are_pythons_words(model: str) -> None:
    verdicts = first.verdicts_of(model)
    for preset in Preset:
        shown = by_card(verdicts, preset)
        for card in COMPUTED:
            said = answer({"model": model, "gpu": card, FIELD: preset.value})["verdict"]
            assert shown[card] == (said["state"], said["sum"]), (preset, card)


# the first three have the largest shares of free segments among the catalog's models
@pytest.mark.parametrize(
    "model",
    [
        *("intfloat/multilingual-e5-small", "Salesforce/codegen-350M-mono", "google/gemma-3-270m"),
        *("google/bert_uncased_L-2_H-128_A-2", "Qwen/Qwen2.5-7B", "google-t5/t5-3b"),
    ],
)
def test_other_models_have_pythons_verdict_within_the_bounds(model: str) -> None:
    verdicts = first.verdicts_of(model)
    for preset in filter(verdicts.get, Preset):
        shown = by_card(verdicts, preset)
        assert len(shown) > 0.75 * len(CARDS)
        for card in map(CARDS.__getitem__, ("t4", "rtx-4090", "h100", *OTHERS)):
            state = {"model": model, "gpu": card.name, FIELD: preset.value}
            architecture, plan, _ = read_state(state)
            report = judged(architecture, plan)
            need = need_of(report)
            if card.name in shown:
                assert shown[card.name][0] == need.verdict(card.memory), (preset, card)
            least, most = bounds(report.plan, report.gpu.total)
            assert least <= need.low <= need.high <= most, (preset, card)


def test_a_name_that_the_list_lacks_has_its_shapes_key() -> None:
    names = first.shapes()["names"]
    assert names["llama3.18b"] == "meta-llama/Llama-3.1-8B"
    for key, name in names.items():
        assert known_shape(key) == name
