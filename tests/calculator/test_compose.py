from importlib import import_module
from pkgutil import iter_modules

from calculator import techniques
from calculator.compose import EFFECTS


def test_every_technique_with_an_effect_is_composed_once() -> None:
    names = (each.name for each in iter_modules(techniques.__path__))
    modules = (import_module(f"{techniques.__name__}.{name}") for name in names)
    effects = [module.EFFECT for module in modules if hasattr(module, "EFFECT")]
    assert len(effects) == len(EFFECTS)
    assert all(effect in EFFECTS for effect in effects)
