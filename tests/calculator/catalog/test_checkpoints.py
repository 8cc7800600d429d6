"""Published checkpoints, held against transformers' own classes on the meta device."""

import importlib
import json
from functools import lru_cache
from importlib.util import find_spec

import pytest

from calculator.catalog import MODELS, find_model, groups
from calculator.catalog.checkpoints import CHECKPOINTS, Checkpoint
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.parameters import count_parameters
from calculator.plan import Plan
from calculator.resolution import resolve

# what people train of a type, where it is not the class of a causal language model
CLASSES = {
    "bart": "BartForConditionalGeneration",
    "bert": "BertForMaskedLM",
    "deberta-v2": "DebertaV2ForMaskedLM",
    "distilbert": "DistilBertForMaskedLM",
    "modernbert": "ModernBertForMaskedLM",
    "mt5": "MT5ForConditionalGeneration",
    "roberta": "RobertaForMaskedLM",
    "t5": "T5ForConditionalGeneration",
    "vit": "ViTForImageClassification",
    "whisper": "WhisperForConditionalGeneration",
    "xlm-roberta": "XLMRobertaForMaskedLM",
}


@lru_cache(maxsize=256)
def real_parameters(kind: str, config: str) -> int:
    """Elements in the real class's weights, which take no memory on the meta device."""
    torch, transformers = map(importlib.import_module, ("torch", "transformers"))
    values = transformers.AutoConfig.for_model(kind, **json.loads(config))
    with torch.device("meta"):
        if kind in CLASSES:
            model = getattr(transformers, CLASSES[kind])(values)
        else:
            model = transformers.AutoModelForCausalLM.from_config(values)
    return sum(item.numel() for item in model.parameters())


@pytest.mark.skipif(not find_spec("transformers"), reason="the classes are in transformers")
@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")  # of the libraries, which are not ours
def test_the_parameters_are_those_of_the_real_class() -> None:
    found = {
        name: real_parameters(checkpoint.kind, json.dumps(dict(checkpoint.config)))
        for name, checkpoint in CHECKPOINTS.items()
    }
    assert found == {name: checkpoint.parameters for name, checkpoint in CHECKPOINTS.items()}


def counted() -> list[Checkpoint]:
    offered = {model.name for models in groups().values() for model in models}
    return [checkpoint for checkpoint in CHECKPOINTS.values() if checkpoint.name in offered]


def test_there_are_at_least_100_checkpoints_beside_the_models_of_old() -> None:
    assert len(CHECKPOINTS) >= 100
    assert not CHECKPOINTS.keys() & MODELS.keys()
    for name, checkpoint in CHECKPOINTS.items():
        assert checkpoint.name == name
        assert name.count("/") == 1


def test_a_checkpoint_that_is_offered_is_counted_exactly() -> None:
    for checkpoint in counted():
        model = find_model(checkpoint.name)
        assert (model.name, model.title) == (checkpoint.name, checkpoint.title)
        counts = count_parameters(model, resolve(model, Plan()))
        assert counts == checkpoint.parameters, checkpoint.name
        assert estimate(model).gpu.total > 0


def test_every_checkpoint_is_of_a_type_with_code_and_offered() -> None:
    assert {checkpoint.name for checkpoint in counted()} == set(CHECKPOINTS)


def test_a_type_without_code_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = Checkpoint("someone/new", "New", "warp", 1, {})
    monkeypatch.setitem(CHECKPOINTS, made_up.name, made_up)  # type: ignore[misc]
    with pytest.raises(InputError, match=r"model = .* type warp, .* cannot count yet"):
        find_model(made_up.name)


def test_the_six_families_of_old_come_first_in_the_list() -> None:
    found = groups()
    assert list(found)[:6] == ["BERT", "T5", "GPT-2", "GPT-3", "GPT-J", "DALL-E"]
    names = [model.name for models in found.values() for model in models]
    assert len(names) == len(set(names))
    assert set(MODELS) <= set(names)
    titles = [model.title for models in found.values() for model in models]
    assert len(titles) == len(set(titles))


def test_a_checkpoint_lists_no_key_that_changes_nothing() -> None:
    idle = {"model_type", "architectures", "dtype", "rms_norm_eps"}
    for name, checkpoint in CHECKPOINTS.items():
        assert not checkpoint.config.keys() & idle, name
