"""LoRA: the model's weights are frozen, and small adapters beside its linear layers are trained.

Counted is what peft's `get_peft_model` makes of the class: an adapter is two products, of `rank`
columns between, in 32 bits whatever the model's weights are in. Autocast does not cache 16-bit
copies of frozen weights, so each use makes one.

Under gradient checkpointing transformers and peft ask for the gradient of the embeddings
(`enable_input_require_grads`), which reentrant checkpointing would be lost without; it is made and
kept to the end of the backward pass.

Trained beside them may be biases, and whole copies of the token embeddings and the output layer,
whose frozen originals stay in memory; all of these in the format of the model's weights. Embeddings
that were tied are two tables then, and encoder and decoder read a copy each.

Experts whose weights peft finds under the names that their layers had before transformers 5 are
adapted by what is added to the weights themselves, for each expert; so is their router.

Under FSDP's `mixed` the adapters are shards of 32 bits like all weights, and gathered in 16.

Source: lora, peft (tuners/lora/layer.py, tuners/tuners_utils.py, peft_model.py, utils/constants.py,
utils/other.py, utils/transformers_weight_conversion.py)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, assert_never

from calculator.architecture import Architecture
from calculator.autograd.graph import Parameter
from calculator.autograd.sizes import size
from calculator.errors import InputError
from calculator.layers.basic import Adapter, Embedding, Projection
from calculator.layers.convolution import Convolution
from calculator.layers.experts import Experts, Router
from calculator.layers.heads import OUTPUTS, TaskHead
from calculator.layers.layer import Layer, parameters_of
from calculator.models.model import LanguageModel, Model
from calculator.models.registry import type_of
from calculator.plan import BaseBits, LoraBias, Plan, Precision
from calculator.task import Task
from calculator.techniques.effect import Answer, Effect

RANK: Final = size("lora_rank")
ALL_LINEAR: Final = "all-linear"

# Layers of which a whole copy can be trained.
EMBEDDINGS: Final = "embed_tokens"
HEAD: Final = "lm_head"


@dataclass(frozen=True, slots=True)
class Lora:
    """Adapters beside the layers whose names end in one of the `targets`, all others frozen.

    Without targets it is all linear layers but the output layer. Adapters may have `dropout`. The
    gradient of the token embeddings is `asked` for or not. Some biases are trained, and copies of
    `whole` layers. Adapters that `follow` the model are in the format of its weights. Of a model
    with `fused` experts, those are the names of router, gate, up and down.
    """

    targets: tuple[str, ...]
    dropout: bool
    asked: bool
    bias: LoraBias = LoraBias.NONE
    whole: tuple[str, ...] = ()
    follow: bool = False
    fused: tuple[str, ...] = ()

    def rewrite(self, layer: Layer) -> None:
        """Freeze a layer's weights, and put an adapter beside one that is meant."""
        if isinstance(layer, Adapter):
            return
        idle = self._freeze(layer)
        self._adapt(layer)
        if idle and isinstance(layer, Projection) and layer.adapter is not None:
            for parameter in parameters_of(layer.adapter):
                parameter.trained, parameter.idle = False, True
        if isinstance(layer, Embedding | Convolution) and layer.reads_input:
            layer.asked = self.asked and EMBEDDINGS not in self.whole
        if isinstance(layer, Embedding) and layer.reads_input and EMBEDDINGS in self.whole:
            layer.copies = tuple(
                Parameter(layer.weight.shape, table=True) for _ in range(layer.readers)
            )
        if isinstance(layer, TaskHead):
            for name in layer.saved:
                _save_whole(layer, name)
        if isinstance(layer, LanguageModel) and HEAD in self.whole:
            layer.head_copy = Parameter(layer.head.weight.shape, table=True)
            if layer.head_bias is not None:
                layer.head_bias.trained = False
                vars(layer)["original_head_bias"] = layer.head_bias
                layer.head_bias = Parameter(layer.head_bias.shape)

    def _freeze(self, layer: Layer) -> bool:
        """Freeze a layer's own weights; true if some would have got no gradient anyway."""
        own = {name: item for name, item in vars(layer).items() if isinstance(item, Parameter)}
        was_idle = any(item.idle for item in own.values())
        for name, item in own.items():
            item.trained, item.idle = item.trained and self.trains(layer, name), False
        return was_idle

    def _adapt(self, layer: Layer) -> None:
        """Put an adapter beside the layer's weights, if they are meant."""
        router, gate, _, down = (self.adapts(name) for name in self.fused or [""] * 4)
        match layer:
            case Projection() if self.means(layer.name):
                sizes = layer.inputs, RANK, layer.outputs
                layer.adapter = Adapter(*sizes, self.dropout, self.follow, layer.split)
            case Router() if self.fused and router:
                layer.adapt(RANK, self.follow)
            case Experts() if self.fused:
                layer.adapt(RANK, self.follow, gate, down)
            case _:
                pass

    def trains(self, layer: Layer, name: str) -> bool:
        """True if a weight of that name stays trained in a layer: some are biases."""
        match self.bias:
            case LoraBias.NONE:
                return False
            case LoraBias.ALL:
                return name in ("bias", "head_bias")
            case LoraBias.LORA_ONLY:
                return name == "bias" and isinstance(layer, Projection) and self.means(layer.name)
            case other:
                assert_never(other)

    def means(self, name: str) -> bool:
        """True if a linear layer of that name is adapted, by peft's rule."""
        return not (name in OUTPUTS or _ends(name, self.fused)) and self.adapts(name)

    def adapts(self, name: str) -> bool:
        """True if a name is among the targets, or all are."""
        return not self.targets or _ends(name, self.targets)


def _ends(name: str, targets: Iterable[str]) -> bool:
    """True if a module's path ends in one of the targets."""
    return any(f".{name}".endswith(f".{each}") for each in targets)


def _save_whole(head: TaskHead, name: str) -> None:
    """Train a copy of a classifier, whose frozen original stays, as peft does by itself.

    Source: peft (peft_model.py, PeftModelForSequenceClassification; utils/other.py,
    ModulesToSaveWrapper)
    """
    original = vars(head)[name]
    vars(head)[f"original_{name}"] = original
    vars(head)[name] = replace(original)


@lru_cache(maxsize=512)  # a search asks of one model hundreds of times
def find_targets(asked: str | None, family: str, model: Model, task: Task) -> str:
    """The layers that peft would adapt, in the form of `lora_targets`.

    Where a task has another head, nothing of the model's own is there.

    Raises:
        InputError: for a name that no linear layer of the model has.
    """
    if not model.counted:
        raise InputError("lora", family, "needs a model that transformers has a class of")
    names = sorted({*names_of(model, task)} | {*model.fused_experts})
    if asked is not None and asked.lower() == ALL_LINEAR:
        return ALL_LINEAR
    targets = model.lora_targets if asked is None else split(asked)
    if not targets:
        rule = f"peft has no default for {family}: must be {ALL_LINEAR} or of: {', '.join(names)}"
        raise InputError("lora_targets", asked or "", rule)
    for target in targets:
        if not any(_ends(name, (target,)) for name in names):
            rule = f"must be {ALL_LINEAR} or end names of linear layers: {', '.join(names)}"
            raise InputError("lora_targets", target, rule)
    _, gate, up, _ = (name in targets for name in model.fused_experts or [""] * 4)
    if gate != up:
        both = " and ".join(model.fused_experts[1:3])
        rule = f"experts have {both} in one weight: must have both of them or none"
        raise InputError("lora_targets", asked or "", rule)
    return ",".join(targets)


def names_of(model: Model, task: Task) -> list[str]:
    """Names of the linear layers that peft may adapt where a task has a head of its own."""
    head = model.heads[task](model) if task in model.heads else None
    replaced = model.language_head if head else ()
    parts = tuple(value for name, value in vars(model).items() if name not in replaced)
    return sorted({each.name for each in projections((*parts, head))} - {*OUTPUTS})


def adapts_experts(targets: str, model: type[Model]) -> bool:
    """True if adapters are added to weights of the experts or their router."""
    meant = targets == ALL_LINEAR or {*split(targets)} & {*model.fused_experts}
    return bool(model.fused_experts and meant)


def adaptable(model: Model) -> str:
    """All linear layers, by name where `all-linear` would mean experts that peft fuses."""
    return ",".join(plain_names(model)) if model.fused_experts else ALL_LINEAR


def plain_names(model: Model) -> list[str]:
    """Names of the linear layers outside of experts."""
    return sorted(linear_names(model) - {*model.fused_experts})


def split(targets: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name for name in targets.replace(" ", ",").split(",") if name)


def projections(layer: object) -> Iterator[Projection]:
    """All linear layers that an adapter can stand beside."""
    match layer:
        case Projection():
            yield layer
        case Layer():
            for value in vars(layer).values():
                yield from projections(value)
        case tuple():
            for item in layer:
                yield from projections(item)
        case _:
            pass


def linear_names(model: Model) -> set[str]:
    """Their names."""
    return {each.name for each in projections(model)}


def _asks(architecture: Architecture, plan: Plan) -> bool:
    """True if the inputs of the first layer ask for a gradient.

    transformers' checkpoints ask for that of token embeddings, and peft for that of whatever a
    model with whole weights reads.

    Source: transformers (modeling_utils.py, activation_checkpointing_enable), peft (peft_model.py)
    """
    packed = plan.quantization is not BaseBits.NONE
    return plan.checkpointing.is_of_layers and not (packed and type_of(architecture).fixed_length)


def _layers(architecture: Architecture, plan: Plan) -> Iterator[Lora]:
    yield Lora(
        () if plan.lora_targets == ALL_LINEAR else split(plan.lora_targets),
        dropout=plan.lora_dropout > 0,
        asked=_asks(architecture, plan),
        bias=plan.lora_bias,
        whole=split(plan.lora_modules) if plan.lora_modules else (),
        follow=plan.is_sharded and plan.precision is Precision.MIXED,
        fused=type_of(architecture).fused_experts,
    )


def _notes(answer: Answer) -> Iterator[str]:
    plan = answer.plan
    yield (
        f"Adapters on {plan.lora_targets.replace(',', ', ')}. As in peft, the adapters, their "
        "gradients and their states are in 32 bits, whatever the format of the model's weights."
    )
    if plan.lora_bias is not LoraBias.NONE:
        yield f"Trained biases, and their states, are in {plan.weight_bytes * 8} bits."
    if plan.lora_modules:
        yield (
            f"Trained in full: {plan.lora_modules.replace(',', ', ')}, as copies in "
            f"{plan.weight_bytes * 8} bits beside the frozen originals, which stay in memory."
        )
    if _asks(answer.architecture, plan):
        yield (
            "With checkpointing, transformers requires a gradient of the input embeddings "
            "(enable_input_require_grads); we count it."
        )


EFFECT: Final = Effect(used=lambda plan: plan.lora > 0, layers=_layers, notes=_notes)
