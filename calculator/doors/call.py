"""The calls of a Python file that configure a training, read and never run."""

import ast
from collections.abc import Iterator
from typing import Final

from calculator.doors.names import COMPUTED, PARSERS, Names

# classes of transformers, TRL and peft, by how their names end
_CONFIGURATIONS: Final = (
    *("TrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "RewardConfig"),
    *("ORPOConfig", "CPOConfig"),
)
_TRAINERS: Final = ("SFTTrainer", "DPOTrainer", "RewardTrainer", "GRPOTrainer")
_PARTS: Final = ("LoraConfig", "BitsAndBytesConfig")
_PEFT: Final = {
    "r": "lora_r",
    "target_modules": "lora_target_modules",
    "modules_to_save": "lora_modules_to_save",
    "bias": "lora_bias",
}
_MODEL: Final = "model_name_or_path"
_MODEL_NAMES: Final = ("pretrained_model_name_or_path", "model_name", "model_id", _MODEL)
# what a class of a model adds to it
_HEADS: Final = {
    "SequenceClassification": "sequence",
    "TokenClassification": "tokens",
    "QuestionAnswering": "questions",
    "AudioClassification": "audio",
}
# sentence-transformers' model, and its loss that compares pairs, which has a cached form
_MODEL_OF_SENTENCES: Final = "SentenceTransformer"
_SENTENCES: Final = ("MultipleNegativesRankingLoss", _MODEL_OF_SENTENCES)
# arguments of `from_pretrained` that say nothing beside the calls that made them, or are no keys
_LEFT_OUT: Final = ("config", "quantization_config", *_MODEL_NAMES)
# fields of a program's own arguments that are the library's
_FIELDS: Final = (
    *("per_device_train_batch_size", "gradient_accumulation_steps", "gradient_checkpointing"),
    *("optim", "bf16", "fp16", "max_length", "max_seq_length", "model_max_length", "deepspeed"),
)
_UNSLOTH: Final = ("FastLanguageModel", "FastModel", "FastVisionModel")
Found = dict[str, object]


def read_calls(text: str) -> Found:
    """The arguments of the calls that configure a training, by name; ``class`` names the classes.

    Names, the program's own arguments and the fields of its classes stand for the values that the
    file gives them; what is computed is `COMPUTED`, and `BY_CARD` what depends on the card.

    >>> read_calls("args = SFTConfig('out', bf16=True); peft = LoraConfig(r=rank)")
    {'class': 'SFTConfig,LoraConfig', 'bf16': True, 'lora_r': '(computed)'}

    Raises:
        SyntaxError: for a text that is no Python.
    """
    tree = ast.parse(text)
    reader = _Reader(Names(tree))
    for node in sorted(_nodes(tree), key=lambda node: node.lineno):
        if isinstance(node, ast.ClassDef):
            reader.declared(node)
        else:
            reader.call(node)
    return reader.all()


def _nodes(tree: ast.Module) -> Iterator[ast.Call | ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call | ast.ClassDef))


class _Reader:
    """The arguments read so far; `usual` are those that count where no call says otherwise."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.classes: list[str] = []
        self.found: Found = {}
        self.usual: Found = {}

    def all(self) -> Found:
        """Everything, or nothing for a file that configures no training."""
        if not self.classes:
            return {}
        if any("per_device" in key for key in self.found) or self._has(_CONFIGURATIONS):
            self.usual.pop("per_device_train_batch_size", None)
        if self.found.keys() & {"max_length", "max_seq_length"}:
            self.usual.pop("max_length", None)
        return {"class": ",".join(dict.fromkeys(self.classes)), **self.usual, **self.found}

    def _has(self, titles: tuple[str, ...]) -> bool:
        return any(title in titles for title in self.classes)

    def declared(self, node: ast.ClassDef) -> None:
        """A class of the program that adds arguments to one of a library: their defaults."""
        base = next(filter(None, (_ending(base, _CONFIGURATIONS) for base in node.bases)), None)
        if base is None:
            return
        self.classes.append(base)
        for item in node.body:
            match item:
                case ast.AnnAssign(target=ast.Name(id=name)) if name in _FIELDS:
                    self.usual[name] = self.names.field(name)

    def call(self, node: ast.Call) -> None:
        """A call, if it is one that matters."""
        known = (*_CONFIGURATIONS, *_TRAINERS, *_PARTS)
        title = _ending(node.func, known)
        if title is not None:
            self.classes.append(title)
            self._arguments(node, title)
        elif _ending(node.func, PARSERS):
            found = (_ending(one, _CONFIGURATIONS) for one in _elements(node.args))
            self.classes += filter(None, found)
        elif title := _ending(node.func, _SENTENCES):
            self._sentences(node, title)
        else:
            self._other(node)

    def _arguments(self, node: ast.Call, title: str) -> None:
        given = self.names.keywords(node)
        if title in _TRAINERS:
            self._trainer(given)
            return
        if title == "LoraConfig" and _last(node.func) != title:
            self.found["adapter_class"] = _last(node.func)
        for name, value in given.items():
            self.found[_PEFT.get(name, name) if title == "LoraConfig" else name] = value

    def _trainer(self, given: Found) -> None:
        model = given.get("model")
        if isinstance(model, str) and model != COMPUTED:
            self.found.setdefault(_MODEL, model)
        for name in ("max_seq_length", "max_length"):
            if isinstance(given.get(name), int):
                self.found.setdefault(name, given[name])

    def _other(self, node: ast.Call) -> None:
        match node.func:
            case ast.Attribute(attr="from_pretrained", value=owner):
                self._load(node, _last(owner))
            case ast.Attribute(attr="get_peft_model", value=ast.Name(id=name)) if name in _UNSLOTH:
                self.classes.append("LoraConfig")
                for key, value in self.names.keywords(node).items():
                    self.found[_PEFT.get(key, key)] = value
            case ast.Attribute(attr="gradient_checkpointing_enable"):
                self.found["gradient_checkpointing"] = True
            case ast.Name(id="prepare_model_for_kbit_training"):
                given = self.names.keywords(node).get("use_gradient_checkpointing", True)
                if given is True:
                    self.found["gradient_checkpointing"] = True
            case func if _last(func).lower().endswith("tokenizer"):
                self._tokens(self.names.keywords(node), "max_length")
            case func if _last(func) == "DataLoader":
                size = self.names.keywords(node).get("batch_size")
                if isinstance(size, int) and size > 1:
                    self.usual.setdefault("per_device_train_batch_size", size)

    def _sentences(self, node: ast.Call, title: str) -> None:
        if title == _MODEL_OF_SENTENCES:
            if node.args:
                self.found.setdefault(_MODEL, self.names.value(node.args[0]))
            return
        self.classes.append(title)
        self.found["head"] = "embedding"
        if _last(node.func).startswith("Cached"):
            self.found["mini_batch_size"] = self.names.keywords(node).get("mini_batch_size", 32)

    def _tokens(self, given: Found, name: str) -> None:
        if isinstance(given.get(name), int):
            self.usual.setdefault("max_length", given[name])

    def _load(self, node: ast.Call, owner: str) -> None:
        given = self.names.keywords(node)
        first = self.names.value(node.args[0]) if node.args else COMPUTED
        named = (first, *(given[name] for name in _MODEL_NAMES if name in given))
        model = next((one for one in named if isinstance(one, str) and one != COMPUTED), COMPUTED)
        if "Tokenizer" in owner or "Processor" in owner:
            self._tokens(given, "model_max_length")
            if model != COMPUTED:
                self.usual.setdefault(_MODEL, model)
            return
        is_model = owner.startswith("AutoModel") or "For" in owner or owner.endswith("Model")
        if not is_model or owner.startswith(("Peft", "AutoPeft")):
            return
        if "from_pretrained" in self.classes and self.found.get(_MODEL, COMPUTED) != COMPUTED:
            return  # a second one is loaded for something else
        self.classes.append("from_pretrained")
        if model != COMPUTED or _MODEL not in self.usual:
            self.found[_MODEL] = model
        if owner in _UNSLOTH:
            self.found.setdefault("load_in_4bit", True)
            self.classes.append("unsloth")
        for ending, head in _HEADS.items():
            if owner.endswith(ending):
                self.found["head"] = head
        if given.get("num_labels") == COMPUTED:  # by the data; a head of any usual number is small
            del given["num_labels"]
        self.found |= {name: it for name, it in given.items() if name not in _LEFT_OUT}


def _elements(args: list[ast.expr]) -> list[ast.expr]:
    """Arguments, or the elements of the first one if it is a list."""
    match args:
        case [ast.Tuple(elts=elements) | ast.List(elts=elements), *_]:
            return elements
        case _:
            return args


def _last(node: ast.expr) -> str:
    """The last part of a name with dots."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _ending(node: ast.expr, titles: tuple[str, ...]) -> str | None:
    """The title that a name ends in."""
    name = _last(node)
    return next((title for title in titles if name.endswith(title)), None)
