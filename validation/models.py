"""Real models without weights: transformers' classes from a config's values, and our own."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
import transformers
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import OffloadWrapper
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.models.auto import modeling_auto

from calculator.errors import InputError, one_line
from calculator.models.keys import declared
from calculator.models.registry import TYPES
from calculator.plan import Attention, HalfFormat, Plan
from validation import text_to_image
from validation.configuration import Configuration
from validation.reversible import make_reversible
from validation.subject import Subject
from validation.tasks import freeze, head_of, labels_of, set_task, task_class

LAYERS: Final = (GradientCheckpointingLayer, OffloadWrapper)
OnLogits = Callable[[torch.Tensor], None]
Watch = Callable[[OnLogits], AbstractContextManager[None]]

# what people train of a type: the first of these in which transformers has a class of it
TRAINED = (
    modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING,
    modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    modeling_auto.MODEL_FOR_MASKED_LM_MAPPING,
    modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING,
    modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING,
)


@dataclass(frozen=True, slots=True)
class Task:
    """A model with its loss, and one micro-batch; `watch` calls back when the logits exist.

    The loss has `kept` some tensors from step to step.
    """

    model: nn.Module
    watch: Watch
    inputs: dict[str, torch.Tensor]
    kept: Callable[[], Iterable[torch.Tensor]] = tuple


def build_task(configuration: Configuration, device: str) -> Task:
    """The real class at its real size with random inputs on the device."""
    subject, plan = configuration.subject, configuration.asked
    weight_type = _weight_type(configuration)
    given = configuration.plan.but(task=plan.task, labels=plan.labels)
    with torch.device(device):
        if subject.is_ours:
            return _text_to_image(configuration, weight_type)
        model = _build_model(subject, given, weight_type, _missing_positions(subject, plan))
        inputs = _inputs(model, plan, weight_type, configuration.padding)
    _share(plan, model)
    freeze(model, plan, layer_lists(model))
    if plan.reversible:
        make_reversible(model)
    model.train()
    return Task(model, watcher_of(model), inputs)


def check_model(configuration: Configuration) -> None:
    """Refuse what the model's class has no code for.

    Raises:
        InputError: naming the option and the rule.
    """
    subject, plan = configuration.subject, configuration.asked
    if subject.is_ours:
        text_to_image.check(configuration.architecture, plan)
    elif plan.reversible:
        known = TYPES.get(subject.kind)
        if known is None or not known.has_reversible_class:
            raise InputError("reversible", True, f"{subject.name} has no reversible class")


def _text_to_image(configuration: Configuration, weight_type: torch.dtype) -> Task:
    architecture, plan = configuration.architecture, configuration.asked
    common = {
        "attn_implementation": "eager" if plan.attention is Attention.EAGER else "sdpa",
        "use_cache": False,
        "dtype": weight_type,
        "tie_word_embeddings": plan.tied_embeddings,
    }
    model = text_to_image.build(architecture, plan, common)
    model.train()
    watch = partial(text_to_image.watch, model)
    return Task(model, watch, text_to_image.inputs(architecture, plan))


def half_type(plan: Plan) -> torch.dtype:
    """The 16-bit format of a resolved plan."""
    return torch.float16 if plan.format is HalfFormat.FP16 else torch.bfloat16


def _weight_type(configuration: Configuration) -> torch.dtype:
    if configuration.asked.weight_bytes == 2:
        return half_type(configuration.asked)
    return torch.float32


def _missing_positions(subject: Subject, plan: Plan) -> int:
    """Rows that a table of positions lacks for the longer of a step's sequences."""
    shape = subject.counted
    if isinstance(shape, InputError) or not shape.positions:
        return 0
    return max(0, max(plan.sequence_length, plan.target_length or 0) - shape.positions)


def _build_model(subject: Subject, plan: Plan, weight_type: torch.dtype, positions: int) -> Any:
    """The class that people train; what the plan leaves open is the config's own."""
    own: dict[str, Any] = {"use_cache": False, "dtype": weight_type}
    known = TYPES.get(subject.kind)
    if plan.tied_embeddings is not None and (known is None or known.can_untie):
        own["tie_word_embeddings"] = plan.tied_embeddings
    if plan.dropout is not None and subject.dropouts:
        own |= dict.fromkeys(subject.dropouts, plan.dropout)
    config = _config(subject, own)
    if positions:
        key = declared(TYPES[subject.kind], "length")[0]
        setattr(config, key, getattr(config, key) + positions)
    if plan.dropout is not None and not subject.dropouts:
        for key in [key for key, value in vars(config).items() if _is_dropout(key, value)]:
            setattr(config, key, plan.dropout)
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = config.pad_token_id = 0
    if known is not None:
        set_task(config, plan, plan.task is known.own_task)
    real = _class_of(subject, config, plan)
    eager = plan.attention is Attention.EAGER or not real._supports_sdpa
    config._attn_implementation = "eager" if eager else "sdpa"
    model = real._from_config(config)
    _keep_wide(model)
    return model


def _keep_wide(model: nn.Module) -> None:
    """Buffers that `from_pretrained` keeps in 32 bits whatever the weights are, brought there."""
    wide = getattr(model, "_keep_in_fp32_modules_strict", ())
    for path, buffer in list(model.named_buffers()):
        parent, _, name = path.rpartition(".")
        if name in wide:
            setattr(model.get_submodule(parent), name, buffer.float())


def _config(subject: Subject, own: dict[str, Any]) -> Any:
    """Transformers' configuration of the type.

    Raises:
        InputError: for a type that it does not know, or a value that it refuses.
    """
    values = {key: value for key, value in subject.values.items() if key != "model_type"}
    try:
        return transformers.AutoConfig.for_model(subject.kind, **{**values, **own})
    except Exception as error:  # whatever a class's own checks raise
        raise InputError("model", subject.name, one_line(str(error), 200)) from None


def _is_dropout(key: str, value: object) -> bool:
    return "drop" in key and not key.startswith("classifier_dropout") and isinstance(value, float)


def _class_of(subject: Subject, config: Any, plan: Plan) -> Any:
    """The class that the calculator counts, else the one that people train."""
    known = TYPES.get(subject.kind)
    if known is not None:
        return task_class(subject, plan)
    for mapping in TRAINED:
        if type(config) in mapping:
            return mapping[type(config)]
    rule = f"transformers has no class of {subject.kind} with a loss that the oracle knows"
    raise InputError("model", subject.name, rule)


def _share(plan: Plan, model: Any) -> None:
    """Layer i becomes the very module of layer i modulo the number of groups."""
    for layers in layer_lists(model):
        for index in range(plan.sharing_groups or len(layers), len(layers)):
            layers[index] = layers[index % plan.sharing_groups]


def layer_lists(model: nn.Module) -> list[nn.ModuleList]:
    """The model's stacks of layers."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    config: Any = getattr(model, "config", None)
    known = TYPES.get(config.model_type) if config else None
    plain = known.plain_layers if known else ""
    return [item for item in lists if item and _is_layer(item[0], plain)]


def _is_layer(module: nn.Module, plain: str) -> bool:
    return isinstance(module, LAYERS) or type(module).__name__ == plain


def watcher_of(model: Any) -> Watch:
    """A hook that runs when the last module before the loss has made the logits."""
    return partial(watch, head_of(model))


@contextmanager
def watch(head: nn.Module, on_logits: OnLogits) -> Iterator[None]:
    """Call back when a module has made the logits."""
    handle = head.register_forward_hook(lambda _module, _inputs, logits: on_logits(logits))
    try:
        yield
    finally:
        handle.remove()


def _inputs(
    model: Any, plan: Plan, weight_type: torch.dtype, padding: bool
) -> dict[str, torch.Tensor]:
    """One micro-batch of what the class reads: token ids, pixels or a spectrogram; and labels."""
    config, batch = model.config, plan.batch_size
    match model.main_input_name:
        case "pixel_values":
            shape = (batch, config.num_channels, config.image_size, config.image_size)
            pixels = torch.zeros(shape, dtype=weight_type)
            return {"pixel_values": pixels, "labels": torch.randint(0, config.num_labels, (batch,))}
        case "input_features":
            frames = 2 * config.max_source_positions
            inputs = {
                "input_features": torch.zeros(
                    (batch, config.num_mel_bins, frames), dtype=weight_type
                )
            }
        case _:
            size = (batch, plan.sequence_length)
            tokens = min(
                config.vocab_size, getattr(config, "vocab_size_per_layer_input", config.vocab_size)
            )
            inputs = {"input_ids": torch.randint(0, tokens, size)}
            if padding:
                inputs["attention_mask"] = torch.ones(size, dtype=torch.int64)
    return inputs | labels_of(config, plan)
