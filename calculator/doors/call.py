"""The calls of a Python file that configure a training, read and never run."""

import ast
from collections.abc import Iterator
from typing import Final

COMPUTED: Final = "(computed)"
# classes of transformers, TRL and peft, by how their names end, and what their arguments are called
# where another class has the same
_CONFIGURATIONS: Final = ("TrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig")
_OTHERS: Final = ("RewardConfig", "ORPOConfig", "LoraConfig", "BitsAndBytesConfig")
_TRAINERS: Final = ("SFTTrainer", "DPOTrainer", "RewardTrainer", "GRPOTrainer")
_RENAMED: Final = {
    ("LoraConfig", "r"): "lora_r",
    ("LoraConfig", "target_modules"): "lora_target_modules",
    ("LoraConfig", "modules_to_save"): "lora_modules_to_save",
    ("LoraConfig", "bias"): "lora_bias",
}


def read_calls(text: str) -> dict[str, object]:
    """The arguments of the calls that configure a training, by name; ``class`` names the classes.

    A name that the file gives one plain value stands for it, and so does the default of an argument
    of the program's own; what is computed is `COMPUTED`.

    >>> read_calls("args = SFTConfig('out', bf16=True); peft = LoraConfig(r=rank)")
    {'class': 'SFTConfig,LoraConfig', 'bf16': True, 'lora_r': '(computed)'}

    Raises:
        SyntaxError: for a text that is no Python.
    """
    tree = ast.parse(text)
    names = dict(_plain_names(tree))
    found: dict[str, object] = {}
    classes = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        title = _title(call)
        if title is None:
            continue
        classes.append(title)
        if title == "from_pretrained" and call.args:
            found["model_name_or_path"] = _value(call.args[0], names)
        for item in call.keywords:
            if item.arg is None:
                continue
            value = _value(item.value, names)
            if title in _TRAINERS:
                if item.arg == "model" and isinstance(value, str) and value != COMPUTED:
                    found.setdefault("model_name_or_path", value)
            elif not (title == "from_pretrained" and item.arg in ("config", "quantization_config")):
                found[_RENAMED.get((title, item.arg), item.arg)] = value
    return {"class": ",".join(dict.fromkeys(classes)), **found} if classes else {}


def _title(call: ast.Call) -> str | None:
    """The class of a call that matters; ``from_pretrained`` for the one that loads a model."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name != "from_pretrained":
            known = (*_CONFIGURATIONS, *_OTHERS, *_TRAINERS)
            return next((title for title in known if name.endswith(title)), None)
        case ast.Attribute(attr="from_pretrained", value=ast.Name(id=name)):
            is_model = name.startswith("AutoModel") or "For" in name or name.endswith("Model")
            return "from_pretrained" if is_model else None
    return None


def _plain_names(tree: ast.Module) -> Iterator[tuple[str, object]]:
    """Names with a plain value; with a dot before them those of arguments and of fields."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value)):
                yield f".{name}", value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(keywords=given)):
                yield from _default(name, given)
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=flags, keywords=given):
                for flag in flags:
                    if isinstance(flag, ast.Constant):
                        yield from _default(str(flag.value).lstrip("-").replace("-", "_"), given)


def _default(name: str, given: list[ast.keyword]) -> Iterator[tuple[str, object]]:
    for item in given:
        if item.arg == "default" and isinstance(item.value, ast.Constant):
            yield f".{name}", item.value.value


def _value(node: ast.expr, names: dict[str, object]) -> object:
    match node:
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Attribute(attr=attribute, value=ast.Name(id="torch")):
            return attribute
        case ast.Attribute(attr=attribute) if f".{attribute}" in names:
            return names[f".{attribute}"]
    try:
        return ast.literal_eval(node)
    except ValueError:
        return COMPUTED
