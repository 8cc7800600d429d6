from importlib import import_module
from pkgutil import iter_modules

import pytest

from calculator import techniques
from calculator.catalog import find_model
from calculator.compose import EFFECTS, changed_model, changes_of
from calculator.layers.layer import parameters_of
from calculator.plan import Plan
from calculator.resolution import resolve
from calculator.techniques.lora import Lora, projections
from calculator.techniques.quantization import Quantization
from calculator.techniques.tensor_parallel import TensorParallel


def test_every_technique_with_an_effect_is_composed_once() -> None:
    names = (each.name for each in iter_modules(techniques.__path__))
    modules = (import_module(f"{techniques.__name__}.{name}") for name in names)
    effects = [module.EFFECT for module in modules if hasattr(module, "EFFECT")]
    assert len(effects) == len(EFFECTS)
    assert all(effect in EFFECTS for effect in effects)


SPLIT = {"gpus": 4, "tensor_parallel": 2, "data_parallel": "fsdp"}


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({"lora": 8, "quantization": "nf4"}, [Quantization, Lora]),
        ({"lora": 8, **SPLIT}, [TensorParallel, Lora]),
    ],
)
def test_layers_are_changed_in_one_order(options: dict[str, object], kinds: list[type]) -> None:
    model = find_model("meta-llama/Llama-3.2-1B")
    plan = resolve(model, Plan.parse(options))
    assert [type(change) for change in changes_of(model, plan)] == kinds


def test_an_adapter_is_divided_as_the_layer_beside_it() -> None:
    model = find_model("meta-llama/Llama-3.2-1B")
    plan = resolve(model, Plan.parse({"lora": 8, **SPLIT}))
    adapted = [each for each in projections(changed_model(model, plan)) if each.adapter]
    assert adapted
    for each in adapted:
        weights = parameters_of(each.adapter) if each.adapter else ()
        assert each.split is not None
        assert any(weight.is_split for weight in weights)
