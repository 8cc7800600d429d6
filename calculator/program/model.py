"""The part of a program that loads the model and changes it as the plan says."""

from typing import Final

from calculator.architecture import Architecture
from calculator.autograd.mode import Attention, Checkpointing
from calculator.models.model import CausalModel
from calculator.models.registry import build, type_of
from calculator.plan import BaseBits, DataParallel, HalfFormat, LoraBias, Plan, Precision
from calculator.program.origin import Origin
from calculator.program.pairs import compare_pairs
from calculator.program.saving import (
    KEPT_RESULTS,
    compute_loss_in_chunks,
    keep_inputs_in_ram,
)
from calculator.program.text import TORCH, Import, Piece, call, indented, joined, keywords, quoted
from calculator.task import Task, class_for
from calculator.techniques.lora import ALL_LINEAR, HEAD, split
from calculator.techniques.lora import EMBEDDINGS as EMBEDDED
from calculator.techniques.task import BODY, EMBEDDINGS, layers_in, parts_of

TRANSFORMERS: Final = "transformers"
# transformers' automatic class by the end of the name of the class that is counted
AUTOMATIC: Final = {
    "WhisperForConditionalGeneration": "AutoModelForSpeechSeq2Seq",
    "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForImageClassification": "AutoModelForImageClassification",
    "ForAudioClassification": "AutoModelForAudioClassification",
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForTokenClassification": "AutoModelForTokenClassification",
    "ForQuestionAnswering": "AutoModelForQuestionAnswering",
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "Model": "AutoModel",
}
# classes that write text have a cache of keys and values, which training has no use for
WITH_CACHE: Final = (
    *("AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForSpeechSeq2Seq"),
)
WEIGHTS_BESIDE: Final = "# The folder with this config.json and the pretrained weights."


def automatic_class(architecture: Architecture, plan: Plan) -> str:
    """The automatic class whose model is the one that is counted."""
    counted = class_for(plan.task, type_of(architecture).counted)
    return next(name for ending, name in AUTOMATIC.items() if counted.endswith(ending))


def implementation(architecture: Architecture, plan: Plan) -> str:
    """transformers' name of the attention; a class without `sdpa` has eager code."""
    if has_own_flash(architecture, plan):
        return "flash_attention_2"
    has_sdpa = Attention.EFFICIENT in type_of(architecture).kernels
    return "eager" if plan.attention is Attention.EAGER or not has_sdpa else "sdpa"


def has_own_flash(architecture: Architecture, plan: Plan) -> bool:
    """True if flash attention is that of the flash-attn package, which is given the window."""
    windowed = type_of(architecture).windowed(architecture, plan.sequence_length)
    return plan.attention is Attention.FLASH and windowed


def shares_layers(architecture: Architecture, plan: Plan) -> bool:
    """True if layers use other layers' weights."""
    return plan.sharing_groups < architecture.shared_layers


def half_type(plan: Plan) -> str:
    """The 16-bit format as torch names it."""
    return "torch.float16" if plan.format is HalfFormat.FP16 else "torch.bfloat16"


def weight_type(plan: Plan) -> str:
    """The format of the weights as torch names it; those in 4 bits are made from 16."""
    packed = plan.quantization is not BaseBits.NONE and plan.precision is not Precision.FP32
    return half_type(plan) if plan.weight_bytes == 2 or packed else "torch.float32"


def load_model(origin: Origin, plan: Plan, trainer: bool = False) -> Piece:
    """The model with everything of the plan that changes it.

    Trainer itself puts it on its device and checkpoints layers, but can't keep results of some.
    """
    architecture = origin.architecture
    pieces = [_made(origin, plan) if _is_new(origin, plan) else _loaded(origin, plan)]
    if shares_layers(architecture, plan) and not architecture.sharing_groups:
        pieces.append(_share(architecture, plan))
    if plan.freeze:
        pieces.append(_freeze(architecture, plan))
    moves_later = trainer or plan.is_sharded or plan.all_gpus > plan.replicas
    if not moves_later and plan.quantization is BaseBits.NONE:
        pieces.append(Piece(('model.to("cuda")',)))
    if not trainer:
        pieces.append(Piece(("model.train()",)))
    match plan.checkpointing:
        case Checkpointing.FULL if not trainer:
            pieces.append(_checkpoint_layers(plan))
        case Checkpointing.OPERATIONS:
            pieces.append(KEPT_RESULTS + _checkpoint_layers(plan))
        case Checkpointing.SELECTIVE:
            pieces.append(_checkpoint_attention(architecture, plan))
        case _:
            pass
    stacks = Piece() if shares_layers(architecture, plan) else _stacks(architecture)
    pieces.append(keep_inputs_in_ram(plan, stacks))
    if plan.lora:
        pieces.append(_adapt(architecture, plan))
    pieces.append(compute_loss_in_chunks(type_of(architecture), plan))
    pieces.append(compare_pairs(plan, half_type(plan)))
    return joined(pieces)


def _is_new(origin: Origin, plan: Plan) -> bool:
    """True for a model without pretrained weights, or one that they do not fit."""
    architecture = origin.architecture
    if plan.tied_embeddings != architecture.tied_embeddings or shares_layers(architecture, plan):
        return True
    return not origin.hub and not (origin.path and plan.lora)


def _changes(origin: Origin, plan: Plan) -> dict[str, str]:
    """Keys of the model's configuration that the plan changes, with their values as text."""
    architecture = origin.architecture
    found = {}
    if automatic_class(architecture, plan) in WITH_CACHE:
        found["use_cache"] = "False"
    if _has_other_head(architecture, plan):
        found |= _labels(architecture, plan)
    if plan.dropout != architecture.dropout:
        found |= dict.fromkeys(origin.dropouts, quoted(plan.dropout))
    if plan.tied_embeddings != architecture.tied_embeddings:
        found["tie_word_embeddings"] = quoted(plan.tied_embeddings)
    return found


def _has_other_head(architecture: Architecture, plan: Plan) -> bool:
    return plan.task is not type_of(architecture).own_task


def _labels(architecture: Architecture, plan: Plan) -> dict[str, str]:
    """The number of labels; causal classes look for the last token that is no padding."""
    found = {}
    if plan.task not in (Task.QUESTIONS, Task.EMBEDDING):
        found["num_labels"] = quoted(plan.labels)
    if isinstance(build(architecture, architecture.tied_embeddings), CausalModel):
        found["pad_token_id"] = "0"
    return found


def _freeze(architecture: Architecture, plan: Plan) -> Piece:
    """No gradients for the parts that are not trained."""
    parts = parts_of(plan)
    lines = ["frozen = [model.base_model]" if BODY in parts else "frozen = []"]
    if EMBEDDINGS in parts:
        lines += [
            'embeddings = getattr(model.base_model, "embeddings", model.get_input_embeddings())',
            "frozen.append(embeddings)",
            'for name in ("wpe", "embed_positions"):',
            "    if hasattr(model.base_model, name):",
            "        frozen.append(getattr(model.base_model, name))",
        ]
    numbers = layers_in(parts)
    if numbers:
        lines.append("layers = [layer for layers in stacks for layer in layers]")
        lines.append(f"frozen += [layers[number] for number in {numbers}]")
    lines += ["for part in frozen:", "    part.requires_grad_(False)"]
    return (_stacks(architecture) if numbers else Piece()) + Piece(tuple(lines))


def _own_class(origin: Origin, plan: Plan) -> str:
    """The class by which pretrained weights are loaded."""
    kind = type_of(origin.architecture)
    return (
        class_for(plan.task, kind.counted)
        if kind.is_inner
        else automatic_class(origin.architecture, plan)
    )


def _loaded(origin: Origin, plan: Plan) -> Piece:
    name = _own_class(origin, plan)
    lines = [] if origin.hub else [WEIGHTS_BESIDE]
    imports: list[Import] = [TORCH, (TRANSFORMERS, name)]
    arguments = {
        "dtype": weight_type(plan),
        "attn_implementation": quoted(implementation(origin.architecture, plan)),
        **_changes(origin, plan),
    }
    if plan.quantization is not BaseBits.NONE:
        imports.append((TRANSFORMERS, "BitsAndBytesConfig"))
        lines = [*_pack(plan), *lines]
        arguments["quantization_config"] = "quantization"
    words = [quoted(origin.hub or origin.folder), *keywords(arguments)]
    return Piece((*lines, *call(f"model = {name}.from_pretrained", words)), tuple(imports))


def _pack(plan: Plan) -> list[str]:
    kind = plan.quantization.partition("-")[0]
    arguments = {
        "load_in_4bit": "True",
        "bnb_4bit_quant_type": quoted(kind),
        "bnb_4bit_use_double_quant": quoted(plan.quantization.is_double),
        "bnb_4bit_compute_dtype": weight_type(plan),
    }
    if plan.is_sharded:
        arguments["bnb_4bit_quant_storage"] = weight_type(plan)
    if plan.task in {*TYPES_OF_PEFT, Task.REWARD}:  # the head is trained whole
        arguments["llm_int8_skip_modules"] = '["classifier", "qa_outputs", "score"]'
    return call("quantization = BitsAndBytesConfig", keywords(arguments))


def _made(origin: Origin, plan: Plan) -> Piece:
    """A model with random weights, from its configuration."""
    name = automatic_class(origin.architecture, plan)
    changes = keywords(_changes(origin, plan))
    imports: list[Import] = [TORCH, (TRANSFORMERS, name)]
    if (origin.hub or origin.path) and _own_class(origin, plan) != name:
        source = f"{_own_class(origin, plan)}.config_class.from_pretrained"
        imports.append((TRANSFORMERS, _own_class(origin, plan)))
        words = [quoted(origin.hub or origin.path)]
    else:
        imports.append((TRANSFORMERS, "AutoConfig"))
        source, words = "AutoConfig.from_pretrained", [quoted(origin.hub or origin.path)]
        if not (origin.hub or origin.path):
            source, changes = "AutoConfig.for_model", []
            words = _values(origin, _changes(origin, plan))
    arguments = {
        "dtype": weight_type(plan),
        "attn_implementation": quoted(implementation(origin.architecture, plan)),
    }
    return Piece(
        (
            "# A new model with random weights.",
            *call(f"config = {source}", [*words, *changes]),
            *call(f"model = {name}.from_config", ["config", *keywords(arguments)]),
        ),
        tuple(imports),
    )


def _values(origin: Origin, changes: dict[str, str]) -> list[str]:
    """Every key of the configuration, with the changes of the plan."""
    values = dict(origin.values)
    kind = quoted(values.pop("model_type"))
    return [kind, *keywords({key: quoted(value) for key, value in values.items()} | changes)]


def _stacks(architecture: Architecture) -> Piece:
    """All lists of layers."""
    plain = type_of(architecture).plain_layers
    imports: list[Import] = [TORCH]
    test = f"type(layer).__name__ == {quoted(plain)}"
    if not plain:
        imports.append(("transformers.modeling_layers", "GradientCheckpointingLayer"))
        test = "isinstance(layer, GradientCheckpointingLayer)"
    lines = (
        "stacks = [",
        "    module",
        "    for module in model.modules()",
        "    if isinstance(module, torch.nn.ModuleList)",
        f"    and all({test} for layer in module)",
        "]",
    )
    return Piece(lines, tuple(imports))


def _share(architecture: Architecture, plan: Plan) -> Piece:
    groups = plan.sharing_groups
    source = f"index % {groups}" if groups > 1 else "0"
    lines = (
        "for layers in stacks:",
        f"    for index in range({groups}, len(layers)):",
        f"        layers[index] = layers[{source}]",
    )
    return _stacks(architecture) + Piece(lines)


def _checkpoint_layers(plan: Plan) -> Piece:
    keeps = plan.checkpointing is Checkpointing.OPERATIONS
    given = '"use_reentrant": False' + keeps * ', "context_fn": kept_results'
    arguments = [f"gradient_checkpointing_kwargs={{{given}}}"]
    if plan.checkpoint_every > 1:
        arguments.append(f"every_n_layers={plan.checkpoint_every}")
    return Piece(tuple(call("model.gradient_checkpointing_enable", arguments)))


CHECKPOINT: Final[Import] = ("torch.utils.checkpoint", "checkpoint")


def _checkpoint_attention(architecture: Architecture, plan: Plan) -> Piece:
    """Recompute scores, softmax and weighted sum, by the hook that the class has for it."""
    if Attention.EFFICIENT not in type_of(architecture).kernels:
        own = (
            "for module in model.modules():",
            '    if hasattr(module, "_attn"):',
            "        module._attn = partial(checkpoint, module._attn, use_reentrant=False)",
        )
        return Piece(own, (("functools", "partial"), CHECKPOINT))
    name = implementation(architecture, plan)
    if name == "eager":
        core = "sys.modules[type(model).__module__].eager_attention_forward"
    else:
        core = 'AttentionInterface()["sdpa"]'
    lines = (
        f"attention = {core}",
        "",
        "",
        "def recomputed(module, *arguments, **options):",
        "    return checkpoint(attention, module, *arguments, use_reentrant=False, **options)",
        "",
        "",
        'AttentionInterface.register("recomputed", recomputed)',
        f'AttentionMaskInterface.register("recomputed", AttentionMaskInterface()["{name}"])',
        'model.set_attn_implementation("recomputed")',
    )
    imports: tuple[Import, ...] = (
        CHECKPOINT,
        (TRANSFORMERS, "AttentionInterface"),
        (TRANSFORMERS, "AttentionMaskInterface"),
        *((("sys", ""),) if name == "eager" else ()),
    )
    return Piece(lines, imports)


# the kinds of models for which peft trains the classifier, too
TYPES_OF_PEFT: Final = {
    Task.SEQUENCE: "SEQ_CLS",
    Task.AUDIO: "SEQ_CLS",
    Task.TOKENS: "TOKEN_CLS",
    Task.QUESTIONS: "QUESTION_ANS",
}


TABLES: Final = {
    EMBEDDED: "model.get_input_embeddings()",
    HEAD: "model.get_output_embeddings()",
}


def _adapt(architecture: Architecture, plan: Plan) -> Piece:
    """Adapters by peft; the base model is frozen."""
    lines: list[str] = []
    imports: list[Import] = [("peft", "LoraConfig"), ("peft", "get_peft_model")]
    if plan.quantization is not BaseBits.NONE and plan.weight_bytes > 2:
        imports.append(("peft", "prepare_model_for_kbit_training"))
        lines += call(
            "model = prepare_model_for_kbit_training",
            ["model", "use_gradient_checkpointing=False"],
        )
    arguments = {"r": quoted(plan.lora), "target_modules": quoted(_targets(plan))}
    if plan.task in TYPES_OF_PEFT:
        arguments["task_type"] = quoted(TYPES_OF_PEFT[plan.task])
    if plan.lora_dropout:
        arguments["lora_dropout"] = quoted(plan.lora_dropout)
    if plan.lora_bias is not LoraBias.NONE:
        arguments["bias"] = quoted(plan.lora_bias.value)
    if plan.lora_modules:
        kind, asked = type_of(architecture), split(plan.lora_modules)
        shared = EMBEDDED in asked and kind.has_target and not kind.fixed_length
        tables = [TABLES[name] for name in asked if not (shared and name == EMBEDDED)]
        lines += [
            f"tables = [{', '.join(tables)}]",
            "copied = [name for name, module in model.named_modules() if module in tables]",
        ]
        if shared:  # encoder and decoder read the table under this name
            lines.append(f"copied.append({quoted(EMBEDDED)})")
        arguments["modules_to_save"] = "copied"
    lines += call("adapters = LoraConfig", keywords(arguments))
    lines.append("model = get_peft_model(model, adapters)")
    return Piece(tuple(lines), tuple(imports))


def _targets(plan: Plan) -> str | tuple[str, ...]:
    return ALL_LINEAR if plan.lora_targets == ALL_LINEAR else split(plan.lora_targets)


def shard(architecture: Architecture, plan: Plan) -> Piece:
    """FSDP2 by layer and for the rest."""
    policy: tuple[str, ...] = ()
    imports: list[Import] = [("torch.distributed.fsdp", "fully_shard")]
    given = ['mesh=gpus["data"]'] if plan.sharing_gpus > 1 else []
    if plan.precision is Precision.MIXED:
        imports.append(("torch.distributed.fsdp", "MixedPrecisionPolicy"))
        words = [f"param_dtype={half_type(plan)}", "reduce_dtype=torch.float32"]
        policy = tuple(call("policy = MixedPrecisionPolicy", words))
        given.append("mp_policy=policy")
    if plan.data_parallel is DataParallel.ZERO2:
        given.append("reshard_after_forward=False")
    if plan.cpu_offload:
        imports.append(("torch.distributed.fsdp", "CPUOffloadPolicy"))
        policy = (*policy, "offload = CPUOffloadPolicy()")
        given.append("offload_policy=offload")
    rest = call("fully_shard", ["model", *given])
    if plan.pipeline_stages > 1:
        rest = ["for part in model:", *indented(call("fully_shard", ["part", *given]))]
    lines = (
        *policy,
        "for layers in stacks:",
        "    for layer in layers:",
        *indented(indented(call("fully_shard", ["layer", *given]))),
        *rest,
    )
    return _stacks(architecture) + Piece(lines, tuple(imports))
