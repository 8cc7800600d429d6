"""LoRA: the model's weights are frozen, and small adapters beside its linear layers are trained.

Counted is what peft's `get_peft_model` makes of the class: an adapter is two products, of `rank`
columns between, in 32 bits whatever the model's weights are in. Autocast does not cache 16-bit
copies of frozen weights, so each use makes one.

Under gradient checkpointing peft asks for the gradient of the token embeddings
(`enable_input_require_grads`), which reentrant checkpointing would be lost without; it is made and
kept to the end of the backward pass.

Source: lora, peft (tuners/lora/layer.py, tuners/tuners_utils.py, peft_model.py, utils/constants.py)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from calculator.autograd.graph import Parameter
from calculator.autograd.sizes import size
from calculator.errors import InputError
from calculator.layers.basic import Adapter, Embedding, Projection
from calculator.layers.convolution import Convolution
from calculator.layers.layer import Layer
from calculator.models.model import Model

RANK: Final = size("lora_rank")
ALL_LINEAR: Final = "all-linear"

_QUERY_VALUE = ("q_proj", "v_proj")
# What peft adapts of a type where it is given no `target_modules`.
DEFAULT_TARGETS: Final[dict[str, tuple[str, ...]]] = {
    "t5": ("q", "v"),
    "mt5": ("q", "v"),
    "bart": _QUERY_VALUE,
    "gpt2": ("c_attn",),
    "bloom": ("query_key_value",),
    "opt": _QUERY_VALUE,
    "gptj": _QUERY_VALUE,
    "gpt_neox": ("query_key_value",),
    "bert": ("query", "value"),
    "roberta": ("query", "value"),
    "xlm-roberta": ("query", "value"),
    "deberta-v2": ("query_proj", "value_proj"),
    "llama": _QUERY_VALUE,
    "mpt": ("Wqkv",),
    "falcon": ("query_key_value",),
    "codegen": ("qkv_proj",),
    "mistral": _QUERY_VALUE,
    "mixtral": _QUERY_VALUE,
    "phi": (*_QUERY_VALUE, "fc1", "fc2"),
    "gemma": _QUERY_VALUE,
    "gemma2": _QUERY_VALUE,
    "gemma3_text": _QUERY_VALUE,
    "qwen2": _QUERY_VALUE,
    "qwen3": _QUERY_VALUE,
}
# Types whose experts peft adapts by these names (those of their modules before transformers 5):
# it adds the product of each adapter's two matrices to the experts' weights, which is not counted.
_EXPERTS = ("gate", "gate_proj", "up_proj", "down_proj")
FUSED_EXPERTS: Final[dict[str, tuple[str, ...]]] = {
    "mixtral": ("gate", "w1", "w2", "w3"),
    "qwen3_moe": _EXPERTS,
    "qwen3_next": _EXPERTS,
    "qwen3_5_moe_text": _EXPERTS,
    "glm4_moe": _EXPERTS,
    "deepseek_v2": _EXPERTS,
    "deepseek_v3": _EXPERTS,
}


@dataclass(frozen=True, slots=True)
class Lora:
    """Adapters beside the layers whose names end in one of the `targets`, all others frozen.

    Without targets it is all linear layers but the output layer. Adapters may have `dropout`. The
    gradient of the token embeddings is `asked` for or not.
    """

    targets: tuple[str, ...]
    dropout: bool
    asked: bool

    def rewrite(self, layer: Layer) -> None:
        """Freeze a layer's weights, and put an adapter beside one that is meant."""
        for value in vars(layer).values():
            if isinstance(value, Parameter) and not isinstance(layer, Adapter):
                value.trained = False
        if isinstance(layer, Projection) and self.means(layer.name):
            layer.adapter = Adapter(layer.inputs, RANK, layer.outputs, self.dropout)
        if isinstance(layer, Embedding | Convolution) and layer.reads_input:
            layer.asked = self.asked

    def means(self, name: str) -> bool:
        """True if a linear layer of that name is adapted, by peft's rule."""
        return not self.targets or any(f".{name}".endswith(f".{each}") for each in self.targets)


def find_targets(asked: str | None, family: str, model: Model) -> str:
    """The layers that peft would adapt, in the form of `lora_targets`.

    Raises:
        InputError: for a name that no linear layer of the model has.
    """
    fused = FUSED_EXPERTS.get(family, ())
    names = sorted({name for name in linear_names(model) if name not in fused})
    if asked is not None and asked.lower() == ALL_LINEAR:
        if fused:
            rule = f"peft adapts experts too, which is not counted: must be of: {', '.join(names)}"
            raise InputError("lora_targets", asked, rule)
        return ALL_LINEAR
    if not names:
        raise InputError("lora", family, "needs a model that transformers has a class of")
    targets = DEFAULT_TARGETS.get(family, ()) if asked is None else split(asked)
    if not targets:
        rule = f"peft has no default for {family}: must be {ALL_LINEAR} or of: {', '.join(names)}"
        raise InputError("lora_targets", asked or "", rule)
    for target in targets:
        if not any(f".{name}".endswith(f".{target}") for name in names):
            rule = f"must be {ALL_LINEAR} or end names of linear layers: {', '.join(names)}"
            raise InputError("lora_targets", target, rule)
    return ",".join(targets)


def split(targets: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name for name in targets.replace(" ", ",").split(",") if name)


def linear_names(layer: object) -> Iterator[str]:
    """The names of all linear layers that an adapter can stand beside."""
    match layer:
        case Projection():
            yield layer.name
        case Layer():
            for value in vars(layer).values():
                yield from linear_names(value)
        case tuple():
            for item in layer:
                yield from linear_names(item)
        case _:
            pass
