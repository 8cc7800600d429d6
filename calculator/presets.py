"""Full training, LoRA and QLoRA with the options that tutorials set beside them.

Unsloth's notebooks train adapters of rank 16 beside all linear layers with `adamw_8bit` and
gradient checkpointing, in bf16 where the card computes it and else in fp16; peft's guide to
quantization packs the frozen weights in nf4 with packed scales. Full training has the same
optimizer and checkpointing here, and keeps its weights in 32 bits.

Source: unsloth, peft
"""

from collections.abc import Mapping
from typing import Final, assert_never

from calculator.architecture import Architecture
from calculator.cards import Card
from calculator.choice import Choice
from calculator.errors import unknown_name
from calculator.models.registry import build, type_of
from calculator.plan import BaseBits, Checkpointing, DataParallel, Optimizer, Plan, Precision
from calculator.techniques.lora import adaptable

FIELD: Final = "preset"
USUAL_RANK: Final = 16


class Preset(Choice):
    """Full training, or adapters beside frozen weights."""

    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"

    @property
    def label(self) -> str:
        """Its name for people."""
        return {"full": "Full", "lora": "LoRA", "qlora": "QLoRA"}[self]

    @property
    def words(self) -> str:
        """The options that it sets, in a sentence."""
        shared = "8-bit AdamW and gradient checkpointing"
        match self:
            case Preset.FULL:
                return f"Trains every weight: 16-bit autocast, {shared}."
            case Preset.LORA:
                return f"Trains adapters of rank {USUAL_RANK} on 16-bit weights, with {shared}."
            case Preset.QLORA:
                return f"Trains adapters of rank {USUAL_RANK} on 4-bit weights, with {shared}."
            case other:
                assert_never(other)


# fields that a preset sets; when another preset is chosen, what was chosen for them goes
FIELDS: Final = (
    *("precision", "gradient_scaler", "optimizer", "optimizer_bits", "paged_optimizer"),
    *("checkpointing", "lora", "lora_targets", "quantization"),
)
_SHARDS: Final = (DataParallel.FSDP, DataParallel.ZERO2)
# what a preset sets for the sake of another field goes where that field has another value
_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "optimizer": ("optimizer_bits",),
    "precision": ("gradient_scaler",),
    "lora": ("lora_targets", "quantization"),
    "data_parallel": ("optimizer_bits",),  # bitsandbytes does not update shards
}


def preset_named(given: object) -> Preset | None:
    """The preset of that name; None where none is given.

    Raises:
        InputError: for a name that no preset has.
    """
    if given in (None, ""):
        return None
    if given not in list(Preset):
        raise unknown_name(FIELD, given, Preset)
    return Preset(str(given))


def preset_of(plan: Plan) -> Preset:
    """The preset of the kind of training that a plan is."""
    if not plan.lora:
        return Preset.FULL
    return Preset.LORA if plan.quantization is BaseBits.NONE else Preset.QLORA


def options_with(
    preset: Preset | None, architecture: Architecture, card: Card, given: Mapping[str, object]
) -> dict[str, object]:
    """The options that were given, beside those of a preset that they do not replace."""
    if preset is None:
        return dict(given)
    options = _options(preset, architecture, card)
    asked = {name: value for name, value in given.items() if value not in (None, "")}
    changed = Plan.parse({name: asked[name] for name in _BESIDE if name in asked})
    own = {"optimizer": Optimizer.ADAM, "lora": 0, **options}
    own["data_parallel"] = (
        DataParallel.DDP if changed.data_parallel in _SHARDS else changed.data_parallel
    )
    for name, others in _BESIDE.items():
        if name in asked and _is_other(getattr(changed, name), own[name]):
            options = {field: value for field, value in options.items() if field not in others}
    return {**options, **asked}


def _is_other(value: object, own: object) -> bool:
    """True for another optimizer or format; of ranks, where one of both is no rank."""
    return bool(value) != bool(own) if isinstance(value, int) else value != own


def _options(preset: Preset, architecture: Architecture, card: Card) -> dict[str, object]:
    """All options of a preset; a class without gradient checkpointing does without."""
    can_not = type_of(architecture).plain_layers
    recomputed = Checkpointing.NONE if can_not else Checkpointing.FULL
    always = {"optimizer_bits": 8, "checkpointing": recomputed}
    match preset:
        case Preset.FULL:
            scaled = {"gradient_scaler": True} if card.predates_ampere else {}
            return {"precision": Precision.AMP, **scaled, **always}
        case Preset.LORA:
            targets = adaptable(build(architecture, architecture.tied_embeddings))
            adapters = {"lora": USUAL_RANK, "lora_targets": targets}
            return {"precision": Precision.HALF, **always, **adapters}
        case Preset.QLORA:
            packed = {"quantization": BaseBits.NF4_DOUBLE}
            return {**_options(Preset.LORA, architecture, card), **packed}
        case other:
            assert_never(other)


def plan_with(architecture: Architecture, card: Card, given: Mapping[str, object]) -> Plan:
    """The plan of options, of which one may name a preset, on a card.

    Raises:
        InputError: if an option does not accept its value.
    """
    options = {name: value for name, value in given.items() if name != FIELD}
    preset = preset_named(given.get(FIELD))
    return Plan.parse(options_with(preset, architecture, card, options)).on(card)


def beside(
    preset: Preset | None, architecture: Architecture, plan: Plan, card: Card
) -> dict[str, object] | None:
    """The options to give beside a preset so that they make the plan; None where none do."""
    if preset is None:
        return plan.changed()
    given: dict[str, object] = {}
    for fields in (_BESIDE, Plan.options()):
        base = Plan.parse(options_with(preset, architecture, card, given))
        given |= {n: getattr(plan, n) for n in fields if getattr(plan, n) != getattr(base, n)}
    made = Plan.parse(options_with(preset, architecture, card, given))
    return given if made.on(plan.card) == plan and None not in given.values() else None
