"""Laws: every refusal of a plan for a model.

A law is what PyTorch, transformers, peft, bitsandbytes or arithmetic refuse, or what would change
nothing or train another model; each group of laws names its sources. What we could not count to the
byte so far is marked as such: a program may run it all the same.

`resolve` asks for the first law that a plan breaks, and `calculator.way_out` for the nearest plan
that breaks none.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple, assert_never

from calculator.architecture import Architecture
from calculator.autograd.dtypes import FLOAT32
from calculator.compose import changed_model
from calculator.errors import InputError
from calculator.layers.basic import Split
from calculator.models.model import CausalModel, LanguageModel, Model
from calculator.models.registry import build, type_of
from calculator.models.sparse import SparseDecoder
from calculator.optimizers.hidden import is_hidden
from calculator.optimizers.rule import rule_of
from calculator.parameters import parameter_tensors
from calculator.plan import (
    ActivationOffload,
    Attention,
    BaseBits,
    Checkpointing,
    ChunkedLoss,
    DataParallel,
    HalfFormat,
    Loop,
    LoraBias,
    Offload,
    Optimizer,
    PipelineSchedule,
    Plan,
    Precision,
    Update,
)
from calculator.presets import USUAL_RANK
from calculator.task import NO_TOKENS, OF_PAIRS, Task
from calculator.techniques.context_parallel import KERNELS, MOST_TURNS, chunks_of
from calculator.techniques.expert_parallel import divided_among
from calculator.techniques.fsdp import units_of
from calculator.techniques.lora import (
    ALL_LINEAR,
    EMBEDDINGS,
    HEAD,
    adapts_experts,
    names_of,
    plain_names,
    projections,
    split,
)
from calculator.techniques.pipeline import MOST_MICRO_BATCHES, part_of, stages_in
from calculator.techniques.task import BODY, has_idle, layers_in, parts_of
from calculator.techniques.tensor_parallel import (
    BYTES_OF_ROWS,
    DIVIDED,
    INNER,
    divided_in,
    side_of,
)
from calculator.techniques.turns import rounds_of

# why an optimizer updates no DTensors, which shards of weights and shares of layers are
ON_DTENSORS: Final = {
    Optimizer.ADAFACTOR: "PyTorch's Adafactor changes norms of parts in place, as DTensors do not",
    Optimizer.APOLLO: "APOLLO multiplies gradients by plain tensors, as DTensors do not",
    Optimizer.LAMB: "bitsandbytes does not update DTensors",
    Optimizer.LION: "bitsandbytes does not update DTensors",
}
FUSED: Final = (Optimizer.ADAM, Optimizer.MUON)  # whose fused update takes DTensors
FEWEST_TOKENS: Final = 3  # that a chunked loss has something to cut of

# whose states are which, by whether torch.optim has the optimizer
BITS_KEPT: Final = (
    "bitsandbytes keeps these states in 32 or 8 bits",
    "torch.optim keeps states in the format of what it updates, bitsandbytes in 32 or 8 bits",
)
AXES: Final = ("tensor_parallel", "expert_parallel", "pipeline_parallel", "context_parallel")
ONE_GPU: Final = {"gpus": 1, "data_parallel": DataParallel.DDP, **dict.fromkeys(AXES, 1)}


class Broken(NamedTuple):
    """An option and the rule that its value breaks; it may be ours alone.

    `out` has the options that a reader of the rule would change.
    """

    field: str
    rule: str
    is_law: bool = True
    out: Mapping[str, object] = MappingProxyType({})


class RefusedError(InputError):
    """A plan that breaks a law, or that is not counted."""

    def __init__(self, plan: Plan, broken: Broken) -> None:
        super().__init__(broken.field, getattr(plan, broken.field), broken.rule)
        self.is_law, self.out = broken.is_law, dict(broken.out)


Laws = Iterator[Broken]


def obey(plan: Plan, architecture: Architecture) -> None:
    """Refuse what cannot be, and what is not counted; `plan` is filled in.

    Raises:
        RefusedError: naming the option and the rule.
    """
    kind = type_of(architecture)
    for laws in _ALL:
        for broken in laws(plan, architecture, kind):
            raise RefusedError(plan, broken)


def _uncounted(field: str, rule: str) -> Broken:
    return Broken(field, rule, is_law=False)


def _must_be(value: str, field: str, rules: Mapping[str, bool]) -> Laws:
    """The option `field` must have that value for each of the rules that its own one breaks."""
    for rule, is_broken in rules.items():
        if is_broken:
            yield Broken(field, f"{rule}: must be {value}")


def _not_together(field: str, plan: Plan, others: Mapping[str, bool]) -> Laws:
    """The option `field`, a number of GPUs, beside each of the others that is in use."""
    for other, used in others.items():
        if used:
            beside = f"{other} = {getattr(plan, other)}"
            yield _uncounted(field, f"must be 1 beside {beside}: the two are not counted together")


def _of_class(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Values that the model's class has no code for.

    Source: transformers (modeling_utils.py, and each class's own file), torch
    (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, check_flash_attention_hardware_support)
    """
    name = architecture.name
    target, most = plan.target_length, architecture.numbers.get("target_positions")
    if target not in (None, architecture.target_length) and not kind.has_target:
        rule = f"{name} has no decoder of its own; only T5 has a target length"
        yield Broken("target_length", rule)
    if most and target and target > most:
        rule = f"must be at most {most:,}: {name}'s decoder has no more positions"
        yield Broken("target_length", rule)
    kind.check_length(architecture, plan.sequence_length)
    kernels = kind.kernels_of(
        architecture, plan.precision is not Precision.FP32, plan.sequence_length
    )
    if plan.attention not in kernels:
        rule = f"{name} in {plan.precision} has code for: {', '.join(kernels)}"
        yield Broken("attention", rule)
    if plan.attention is Attention.FLASH and plan.card.predates_ampere:
        rule = "needs compute capability 8.0, and this card's is lower: must be sdpa"
        yield Broken("attention", rule, out={"attention": Attention.SDPA})
    if plan.checkpointing is Checkpointing.SELECTIVE and not kind.has_attention_core:
        rule = f"{name}'s class has no code that computes attention alone again"
        others = "none" if kind.plain_layers else "none or full"
        yield Broken("checkpointing", f"{rule}: must be {others}")
    if plan.checkpointing.is_of_layers and kind.plain_layers:
        yield Broken("checkpointing", f"{name}'s class has no checkpoints of layers: must be none")
    if plan.tied_embeddings is False and not kind.can_untie:
        yield Broken("tied_embeddings", f"{name}'s class always ties its embeddings: must be true")
    if plan.dropout and not kind.has_dropout:
        yield Broken("dropout", f"{name} has no dropout: must be 0")
    yield from _of_shared_layers(plan, architecture, kind)
    if plan.gpus > 1 and not kind.counted:
        rule = f"{name} is counted on one GPU only: must be 1"
        yield Broken("gpus", rule, is_law=False, out=ONE_GPU)


def _of_shared_layers(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Groups of layers with the same weights: at most one a layer, and of layers of one kind."""
    layers, groups = architecture.shared_layers, plan.sharing_groups
    if groups > max(architecture.layers, architecture.decoder_layers):
        rule = f"{architecture.name} has {layers} layers to share: must be from 1 to {layers}"
        yield Broken("sharing_groups", rule)
    kinds = ", ".join(sorted(set(architecture.pattern)))
    own = min(architecture.sharing_groups or layers, layers)
    if architecture.sharing_groups and kind.counted and groups != own:
        rule = f"{architecture.name}'s class shares its layers itself: must be {own}"
        yield Broken("sharing_groups", rule)
    if groups < layers and groups != own and len(set(architecture.pattern)) > 1:
        rule = f"{architecture.name} has layers of several kinds ({kinds}), which differ"
        yield Broken("sharing_groups", f"{rule} in more than their weights")


def _of_the_mesh(plan: Plan, _: Architecture, __: type[Model]) -> Laws:
    """Numbers of GPUs, and what needs another GPU beside it."""
    shared = plan.sharing_gpus
    if plan.gpus % shared and plan.expert_parallel == 1:
        rule = (
            f"{shared:,} GPUs share the model: must be a multiple of {shared:,}; without it, it is "
            "their product"
        )
        yield Broken("gpus", rule, out={"gpus": plan.gpus // shared * shared or shared})
    if plan.replicas == 1 and plan.data_parallel is not DataParallel.DDP:
        rule = "one GPU has nothing to share: must be ddp, or gpus at least 2"
        yield Broken("data_parallel", rule, out={"gpus": 2 * plan.sharing_gpus})
    if plan.cpu_offload and not plan.is_sharded:
        rule = "only shards are kept in RAM: must be false, or data_parallel fsdp or zero2"
        out = {"data_parallel": DataParallel.FSDP, "gpus": max(2, plan.gpus)}
        yield Broken("cpu_offload", rule, out=out)


def _of_adapters(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Adapters that peft and bitsandbytes refuse, or would do nothing with.

    Source: lora, qlora, peft (tuners/lora/layer.py, utils/other.py), bitsandbytes
    """
    if not plan.lora:
        if plan.quantization is not BaseBits.NONE:
            rule = "4-bit weights cannot be trained: must be none without a LoRA rank"
            yield Broken("quantization", rule, out={"lora": USUAL_RANK})
        return
    if plan.reversible:
        yield Broken("lora", "peft adapts no reversible layers: must be 0")
    if plan.lora_targets == ALL_LINEAR and plan.task in kind.heads:
        model = build(architecture, architecture.tied_embeddings)
        if kind.heads[plan.task](model).is_adapted:
            rule = f"peft adapts the head for {plan.task} too, of which it trains a copy, and stops"
            names = ",".join(sorted({*names_of(model, plan.task)} - {*kind.fused_experts}))
            out = {"lora_targets": names}
            yield Broken("lora_targets", f"{rule}: must name layers", out=out)
    has = {EMBEDDINGS: plan.task not in NO_TOKENS, HEAD: _has_language_head(plan, kind)}
    for name in split(plan.lora_modules or ""):
        if name not in has:
            yield Broken("lora_modules", f"must be of: {EMBEDDINGS}, {HEAD}")
        elif not has[name]:
            yield Broken("lora_modules", f"the model for {plan.task} has no {name}: leave it out")
    if plan.lora_dropout and adapts_experts(plan.lora_targets or "", kind):
        names = ",".join(plain_names(build(architecture, architecture.tied_embeddings)))
        rule = f"peft adds to experts' weights without dropout: must be 0, or {names} the targets"
        yield Broken("lora_dropout", rule)


def _of_tasks(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Heads that a type has no class of, parts that a model lacks, and steps that train nothing.

    Source: transformers (modeling_layers.py), torch (Tensor.requires_grad)
    """
    if plan.task is not kind.own_task:
        if plan.task not in kind.heads:
            known = ", ".join([kind.own_task, *kind.heads])
            yield Broken("task", f"{architecture.name} is counted for: {known}")
        yield from _whole_only("task", plan)
    if plan.task is Task.AUDIO and architecture.has("use_weighted_layer_sum"):
        rule = "use_weighted_layer_sum keeps every layer's output: counted without it"
        yield _uncounted("task", rule)
    if plan.task in OF_PAIRS:
        yield from _of_pairs(plan, architecture, kind)
    if plan.mini_batch_size:
        yield from _of_mini_batches(plan)
    if plan.freeze:
        yield from _of_frozen_parts(plan, architecture, kind)


def _has_language_head(plan: Plan, kind: type[Model]) -> bool:
    """True if the task is to predict tokens, by one output layer."""
    return issubclass(kind, LanguageModel) and plan.task is Task.LANGUAGE


def _whole_only(field: str, plan: Plan) -> Laws:
    """Axes along which only whole language models are counted; `field` makes it another model."""
    axes = {
        "expert_parallel": plan.expert_parallel > 1,
        "pipeline_parallel": plan.pipeline_parallel > 1,
        "context_parallel": plan.context_parallel > 1,
        "sequence_parallel": plan.sequence_parallel,
    }
    for axis, used in axes.items():
        if used:
            given = f"{field} {getattr(plan, field)}"
            off = "false" if axis == "sequence_parallel" else "1"
            rule = f"counted of whole language models only: must be {off} with {given}"
            yield _uncounted(axis, rule)


def _of_pairs(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Half a pair, two rewards, and weights that get no gradient."""
    if plan.batch_size % 2:
        rule = f"two sequences are a pair of task {plan.task}: must be a multiple of 2"
        yield Broken("batch_size", rule)
    if plan.task is Task.REWARD and plan.labels != 1:
        yield Broken("labels", "a reward is one number: must be 1")
    if plan.task is not Task.EMBEDDING:
        return
    if BODY in parts_of(plan):
        yield Broken("freeze", "an embedding model is its body: nothing would be trained")
    tensors = parameter_tensors(architecture, plan) if has_idle(plan, kind) else ()
    if plan.replicas > 1 and not plan.is_sharded and any(each.idle for each in tensors):
        rule = f"{architecture.name}'s pooler gets no gradient, and DDP stops after such a step"
        yield Broken("gpus", f"{rule}: must be 1")


def _of_mini_batches(plan: Plan) -> Laws:
    """GradCache without pairs to divide.

    Source: sentence_transformers (losses/CachedMultipleNegativesRankingLoss.py)
    """
    field, none = "mini_batch_size", {"mini_batch_size": 0}
    if plan.task is not Task.EMBEDDING:
        yield Broken(field, "divides the pairs of task embedding: must be 0", out=none)
    elif plan.mini_batch_size >= plan.batch_size // 2:
        rule = f"must be 0, or less than the {plan.batch_size // 2:,} pairs that it divides"
        yield Broken(field, rule, out=none)
    if plan.all_gpus > 1:
        yield _uncounted(field, "counted on one GPU only: must be 0 on several")
    if plan.gradient_scaler:
        yield _uncounted(field, "not counted beside a gradient scaler: must be 0")


def _of_frozen_parts(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    numbers, most = layers_in(parts_of(plan)), architecture.layers + architecture.decoder_layers
    if not kind.can_freeze:
        rule = f"frozen parts of {architecture.name}'s type are not counted yet: leave it out"
        yield _uncounted("freeze", rule)
    if numbers and max(numbers) >= most:
        yield Broken("freeze", f"{architecture.name} has layers 0 to {most - 1}")
    if plan.lora:
        rule = "LoRA freezes the whole model already: leave it out"
        yield Broken("freeze", rule, out={"freeze": None})
    if plan.reversible or plan.sharing_groups < architecture.shared_layers:
        rule = "reversible layers, and layers that share weights, are trained as a whole"
        yield Broken("freeze", f"{rule}: leave it out")
    yield from _whole_only("freeze", plan)


def _of_optimizers(plan: Plan, _: Architecture, __: type[Model]) -> Laws:
    """States and updates that no class has, and what needs gradients that are gone.

    Source: torch (optim, amp/grad_scaler.py), bitsandbytes (optim, functional.py), inbackward
    """
    rule_of_states = rule_of(plan)
    bits = rule_of_states.bits(plan)
    if plan.optimizer_bits not in bits:
        allowed = " or ".join(map(str, bits))
        kept = rule_of_states.needs[0] or BITS_KEPT[bool(rule_of_states.torch)]
        yield Broken("optimizer_bits", f"{kept}: must be {allowed}", out={"optimizer_bits": None})
    if plan.update not in rule_of_states.updates:
        yield Broken("update", rule_of_states.needs[1])
    if plan.paged_optimizer:
        yield from _of_pages(plan)
    if plan.update_in_backward:
        rules = {
            "gradient accumulation needs the gradients that this frees": plan.rounds > 1,
            "offload updates all weights at the end": plan.offload is not Offload.NONE,
            "fp32 master weights are updated at the end": plan.has_master_weights,
        }
        yield from _must_be("false", "update_in_backward", rules)
        if plan.optimizer in (Optimizer.MUON, Optimizer.APOLLO):
            rule = f"is not counted with {plan.optimizer}, whose matrices need more: must be false"
            yield _uncounted("update_in_backward", rule)
    if plan.gradient_scaler:
        yield from _of_scaler(plan)


def _of_pages(plan: Plan) -> Laws:
    pages = plan.optimizer in (Optimizer.ADAM, Optimizer.LION)
    rules = {
        f"bitsandbytes pages the states of AdamW and Lion, not of {plan.optimizer}": not pages,
        "offload keeps and updates all states in RAM": plan.offload is not Offload.NONE,
        "bitsandbytes does not update shards": plan.is_sharded,
        "bitsandbytes does not update DTensors": plan.divides_layers,
    }
    yield from _must_be("false", "paged_optimizer", rules)


def _of_scaler(plan: Plan) -> Laws:
    if plan.format is HalfFormat.BF16:
        rule = "gradients of bf16 need no scale: must be false, or the format fp16"
        yield Broken("gradient_scaler", rule)
    freed = "divides all gradients before the update, and update_in_backward has freed them"
    yield from _must_be("false", "gradient_scaler", {freed: plan.update_in_backward})
    if plan.shares_states:
        rule = f"is not counted beside data_parallel = {plan.data_parallel}: must be false"
        yield _uncounted("gradient_scaler", rule)
    if plan.offload is not Offload.NONE:
        rule = "is not counted beside offload, whose copies in RAM are updated: must be false"
        yield _uncounted("gradient_scaler", rule)


def _of_recomputing(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Checkpoints, their inputs in RAM, and losses in chunks.

    Source: checkpointing, save_on_cpu, linear_cross_entropy, transformers (modeling_utils.py,
    _set_gradient_checkpointing)
    """
    if plan.checkpointing is Checkpointing.OPERATIONS:
        if not kind.counted:
            rule = f"by operation is not counted with {architecture.name}: must be none or full"
            yield _uncounted("checkpointing", rule)
        shared = plan.sharing_groups < architecture.shared_layers
        rules = {
            "by operation keeps results, which reversible layers do not": plan.reversible,
            "by operation fails in PyTorch where layers share autocast's copies of weights": (
                shared and plan.precision is Precision.AMP
            ),
        }
        yield from _must_be("none or full", "checkpointing", rules)
    if plan.checkpoint_every > 1:
        rules = {
            "chooses among layers that keep something, which reversible ones do not": (
                plan.reversible
            ),
            f"is an option of transformers, which has no class of {architecture.name}": (
                not kind.counted
            ),
        }
        yield from _must_be("1", "checkpoint_every", rules)
    if plan.chunked_loss is not ChunkedLoss.NONE:
        few = f"has nothing to cut for fewer than {FEWEST_TOKENS} tokens"
        rules = {
            "replaces a language model's loss": not _has_language_head(plan, kind),
            few: plan.batch_size * plan.predicted_length < FEWEST_TOKENS,
            f"has no cap on logits, which {architecture.name} has": architecture.has("final"),
        }
        yield from _must_be("none", "chunked_loss", rules)
    if plan.activation_offload is not ActivationOffload.NONE:
        yield from _of_moved_inputs(plan, architecture, kind)


def _of_moved_inputs(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    if plan.checkpointing is not Checkpointing.FULL:
        rule = "is counted with full checkpointing only: must be none"
        yield _uncounted("activation_offload", rule)
    if plan.reversible:
        rule = "has nothing to move from reversible layers, which keep no inputs: must be none"
        yield Broken("activation_offload", rule)
    if plan.sequence_parallel and plan.activation_offload is ActivationOffload.PINNED:
        rule = "PyTorch copies no DTensors, which parts of tokens are, to pinned RAM: not pinned"
        out = {"activation_offload": ActivationOffload.PAGEABLE}
        yield Broken("activation_offload", rule, out=out)
    if kind.layers_get_mask and plan.attention is Attention.EAGER:
        rule = f"of {architecture.family} would move eager attention's mask too, not counted"
        yield _uncounted("activation_offload", f"{rule}: must be none")


def _of_replicas(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """DistributedDataParallel, and ZeRO's first stage beside it.

    Source: ddp, zero, torch (nn/parallel/distributed.py, distributed/c10d/reducer.cpp,
    distributed/optim/zero_redundancy_optimizer.py)
    """
    if plan.replicas == 1 or plan.is_sharded:
        return
    if plan.update_in_backward:
        rule = "DDP's buckets keep the gradients that this frees: must be false, or with fsdp"
        yield Broken("update_in_backward", rule)
    if kind.unused and not plan.tied_embeddings and not plan.lora:
        rule = (
            f"{architecture.name} without tied embeddings has a {kind.unused} that gets no "
            "gradient; DDP stops after a step with such a weight: must be 1"
        )
        yield Broken("gpus", rule)
    if kind.unread_part and any(each.idle for each in parameter_tensors(architecture, plan)):
        what = f"{architecture.name}'s {kind.unread_part}"
        rule = f"{what} gets no gradient, and DDP stops after such a step"
        out = {"data_parallel": DataParallel.FSDP}
        yield Broken("data_parallel", f"{rule}: must be fsdp or zero2", out=out)
    if architecture.has("layerdrop"):
        rule = (
            f"{architecture.name} leaves out layers at random, and DDP stops after a step with "
            "weights that got no gradient: must be fsdp or zero2, or encoder_layerdrop and "
            "decoder_layerdrop 0 in its config.json"
        )
        yield Broken("data_parallel", rule, out={"data_parallel": DataParallel.FSDP})
    if not plan.shares_states:
        return
    if plan.precision is Precision.MIXED and not plan.lora:
        rule = (
            "ZeroRedundancyOptimizer updates the model's own weights and shares no fp32 copies: "
            "with zero1 it must be amp, half or fp32"
        )
        yield Broken("precision", rule)
    rule = "ZeroRedundancyOptimizer updates the model's own weights, and no copies in RAM"
    yield from _must_be("none", "offload", {rule: plan.offload is not Offload.NONE})


def _of_shards(plan: Plan, architecture: Architecture, _: type[Model]) -> Laws:
    """FSDP2's shards.

    Source: fsdp2, bitsandbytes (its updates take plain tensors; nn/modules.py, Linear4bit)
    """
    if not plan.is_sharded:
        return
    if plan.quantization is not BaseBits.NONE and plan.precision is Precision.MIXED:
        rule = "FSDP would cast packed weights as numbers; with shards it must be half or fp32"
        yield Broken("precision", rule)
    if plan.quantization is not BaseBits.NONE:
        yield from _of_packed_shards(plan, architecture)
    if plan.lora_bias is not LoraBias.NONE:
        units = units_of(changed_model(architecture, plan), plan.half)
        # bitsandbytes brings biases beside packed weights into the format of what comes in
        follows = plan.quantization is not BaseBits.NONE and plan.precision is Precision.AMP
        own = plan.half if plan.weight_bytes == 2 or follows else FLOAT32
        if any(len({each.dtype or own for each in unit.trained}) > 1 for unit in units):
            rule = "fully_shard wants one format of all that is trained in a layer"
            yield Broken("lora_bias", f"{rule}, and adapters have 32 bits: must be none")
    if plan.sharing_groups < architecture.shared_layers and not architecture.sharing_groups:
        rule = "fully_shard takes a module once, and layers that share weights are one"
        yield Broken("sharing_groups", f"{rule}: must be {architecture.shared_layers}")
    if plan.offload is not Offload.NONE:
        out = {"offload": Offload.NONE, "cpu_offload": True}
        yield Broken("offload", "shards go to RAM by cpu_offload: must be none", out=out)


def _of_packed_shards(plan: Plan, architecture: Architecture) -> Laws:
    """Packed weights that fill no whole elements of the format that they are stored in.

    Source: bitsandbytes (backends/default/ops.py, backends/cuda/ops.py, quantize_4bit)
    """
    for each in parameter_tensors(architecture, plan):
        odd = -(-each.elements // 2) % (each.packed // 2 or 1)
        if odd:
            rule = (
                f"bitsandbytes packs a weight of {each.elements:,} elements, and its bytes do not "
                f"fill the {each.packed // 2} of each element that it stores for FSDP: must be none"
            )
            yield Broken("quantization", rule, out={"quantization": BaseBits.NONE})


def _of_ring(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Sequences that a ring cannot divide.

    Source: context_parallel, torch (distributed/tensor/experimental/_context_parallel)
    """
    parts = plan.context_parallel
    if parts == 1:
        return
    if plan.replicas % parts:
        rule = f"must divide the {plan.replicas:,} GPUs; set gpus to {parts:,}, or a multiple"
        yield Broken("context_parallel", rule)
    if parts > MOST_TURNS:
        yield _uncounted("context_parallel", f"must be at most {MOST_TURNS}")
    if plan.sequence_length % chunks_of(plan):
        rule = (
            f"each of {parts:,} GPUs has two chunks of a sequence: must be a multiple of "
            f"{chunks_of(plan):,}"
        )
        yield Broken("sequence_length", rule)
    rules = {
        "PyTorch balances the chunks of causal attention alone": not issubclass(kind, CausalModel),
        "linear attention needs the state of the tokens before it": kind.has_chunks,
        "the ring is made of flash attention, which needs compute capability 8.0": (
            plan.card.predates_ampere
        ),
        "knows no windows of attention shorter than the sequence": (
            kind.windowed(architecture, plan.sequence_length)
        ),
        "the ring is made of flash attention, which this class or its heads do not fit": (
            Attention.FLASH not in kind.kernels_of(architecture, True, plan.sequence_length)
        ),
    }
    yield from _must_be("1", "context_parallel", rules)
    if plan.attention not in KERNELS:
        rule = "the ring is made of sdpa's kernels; others see one GPU's tokens: must be 1, or sdpa"
        yield Broken("context_parallel", rule, out={"attention": Attention.SDPA})
    if plan.precision is Precision.FP32:
        rule = "PyTorch's ring fails in 32 bits, for which it has no flash kernel: must be 1"
        yield Broken("context_parallel", rule, out={"precision": Precision.AMP})


def _of_stages(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Layers and micro-batches that no schedule of a pipeline has.

    Source: pipeline, torch (distributed/pipelining/schedules.py, amp/grad_scaler.py)
    """
    gpus, count = plan.pipeline_parallel, plan.accumulation
    if gpus == 1:
        return
    if not issubclass(kind, CausalModel):
        rule = "stages are counted of causal language models: must be 1"
        yield _uncounted("pipeline_parallel", rule)
    if plan.loop is not Loop.TRAINER:
        rule = "a pipeline's schedule gets the outputs, not the training loop: must be trainer"
        yield Broken("loop", rule)
    if plan.gradient_scaler:
        rule = "PyTorch's scaler stops on stages before the last, which have no loss: must be false"
        yield Broken("gradient_scaler", rule, out={"gradient_scaler": False})
    yield from _of_places(plan, architecture)
    yield from _of_reading(plan, architecture, kind)
    if count > MOST_MICRO_BATCHES:
        rule = f"micro-batches in a pipeline: must be at most {MOST_MICRO_BATCHES}"
        yield _uncounted("accumulation", rule)
    yield from _of_schedules(plan)
    others = {
        "expert_parallel": plan.expert_parallel > 1,
        "sequence_parallel": plan.sequence_parallel,
        "update_in_backward": plan.update_in_backward,
        "reversible": plan.reversible,
    }
    yield from _not_together("pipeline_parallel", plan, others)


def _of_places(plan: Plan, architecture: Architecture) -> Laws:
    """Several stages on a GPU where a schedule has one, and stages without layers."""
    own, schedule = plan.pipeline_stages, plan.pipeline_schedule
    several = schedule is PipelineSchedule.INTERLEAVED
    if several != (own > 1):
        many = "has several stages on each GPU: must be at least 2"
        rule = many if several else "has one stage on each GPU: must be 1"
        yield Broken("pipeline_stages", f"{schedule} {rule}")
    if architecture.layers < plan.pipeline_parallel * own:
        most = architecture.layers // own
        if not most:
            yield Broken("pipeline_stages", f"each has a layer, of {architecture.layers:,}")
        yield Broken("pipeline_parallel", f"each stage has a layer: must be at most {most:,}")


def _of_reading(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Layers that read what other stages have."""
    if issubclass(kind, CausalModel):
        parts = (part_of(architecture, plan, rank) for rank in range(plan.pipeline_parallel))
        stages = chain(*(stages_in(part, plan) for part in parts))
        if found := next(filter(None, map(kind.reads_others, stages)), ""):
            yield Broken("pipeline_parallel", f"{found}: must be 1")


def _of_schedules(plan: Plan) -> Laws:
    """Numbers of micro-batches that a schedule cannot order."""
    gpus, count = plan.pipeline_parallel, plan.accumulation
    match plan.pipeline_schedule:
        case PipelineSchedule.GPIPE:
            return
        case PipelineSchedule.ONE_FORWARD_ONE_BACKWARD:
            if count < gpus:
                rule = f"1f1b needs a micro-batch for each of {gpus:,} stages: must be at least"
                yield Broken("accumulation", f"{rule} {gpus}")
        case PipelineSchedule.INTERLEAVED:
            rounds = rounds_of(plan)
            if count % rounds:
                rule = (
                    f"interleaved on {gpus:,} GPUs takes {count:,} micro-batches in {rounds:,} "
                    f"equal rounds: must be a multiple of {rounds:,}"
                )
                yield Broken("accumulation", rule)
        case other:
            assert_never(other)


def _of_shares(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Layers that tensor parallelism cannot divide.

    Source: tensor_parallel, torch (distributed/tensor/parallel/style.py), transformers
    (distributed/tensor_parallel.py)
    """
    gpus, numbers = plan.tensor_parallel, architecture.numbers
    if gpus == 1:
        return
    if kind.whole_layers:
        yield Broken("tensor_parallel", f"{kind.whole_layers}: must be 1")
    uneven = [
        f"{numbers[name]:,} {DIVIDED[name]}"
        for name in divided_in(kind)
        if numbers.get(name, 0) % gpus
    ]
    if uneven:
        yield Broken("tensor_parallel", f"must divide the {' and the '.join(uneven)}")
    width = numbers.get(INNER, 0) // gpus * plan.weight_bytes
    if width % BYTES_OF_ROWS:
        rule = f"an expert's share has rows of {width:,} bytes; PyTorch takes multiples of 16"
        yield Broken("tensor_parallel", rule)
    yield from _beside_shares(plan, architecture, kind)


def _beside_shares(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Options beside which shares of layers fail or are not counted.

    Source: tensor_parallel, torch (distributed/tensor/parallel/ddp.py, utils/checkpoint.py), peft
    """
    if plan.replicas > 1 and not plan.is_sharded:
        rule = (
            "DistributedDataParallel makes new parameters of split weights in every forward pass, "
            "and the optimizer has the first ones: must be fsdp or zero2 beside tensor_parallel"
        )
        yield Broken("data_parallel", rule, out={"data_parallel": DataParallel.FSDP})
    yield from _of_fused_experts(plan, kind)
    early = (
        "beside tensor_parallel PyTorch ends the recomputation of a layer {} sum has arrived, and "
        "never frees that: must be {}"
    )
    if plan.checkpointing is Checkpointing.FULL and kind.is_side_by_side(architecture):
        rule = early.format(
            "whose two halves read one input before the first half's", "none or operations"
        )
        yield Broken("checkpointing", rule)
    if plan.checkpointing.is_of_layers and _adapts_last_sum(plan, architecture):
        rule = early.format("with an adapter beside its last product before that one's", "none")
        yield Broken("checkpointing", rule, out={"checkpointing": Checkpointing.NONE})
    others = {
        # of split tokens RowwiseParallel makes DTensors, to which no plain tensors are added
        "lora": bool(plan.lora) and plan.sequence_parallel,
        # nobody cuts the rows of packed weights
        "quantization": plan.quantization is not BaseBits.NONE,
    }
    if plan.optimizer is Optimizer.MUON and plan.is_sharded:
        others["optimizer"] = True  # PyTorch gathers its shards of shares in other ways
    yield from _not_together("tensor_parallel", plan, others)


def _of_fused_experts(plan: Plan, kind: type[Model]) -> Laws:
    if plan.lora and adapts_experts(plan.lora_targets or "", kind):
        names = ", ".join(kind.fused_experts)
        rule = f"peft adds plain tensors to experts, whose shares are DTensors: leave out {names}"
        yield Broken("lora_targets", rule)


def _adapts_last_sum(plan: Plan, architecture: Architecture) -> bool:
    """True if an adapter stands beside the last product of a layer that GPUs sum."""
    stacks = changed_model(architecture, plan).stacks() if plan.lora else ()
    blocks = (projections(kind) for _, stack in stacks for kind in stack.kinds)
    summed = ([each for each in found if side_of(each) is Split.ROWS] for found in blocks)
    return any(found and found[-1].adapter is not None for found in summed)


def _of_split_tokens(plan: Plan, _: Architecture, kind: type[Model]) -> Laws:
    """Sequence parallelism beside tensor parallelism.

    Source: tensor_parallel, torch (distributed/tensor/parallel/style.py), torchtitan
    """
    gpus = plan.tensor_parallel
    if not plan.sequence_parallel:
        return
    if gpus == 1:
        rule = "one GPU has all tokens: must be false, or tensor_parallel at least 2"
        yield Broken("sequence_parallel", rule)
    if kind.whole_tokens:
        yield Broken("sequence_parallel", f"{kind.whole_tokens}: must be false")
    if plan.reversible:
        rule = "reversible layers are counted with whole sequences: must be false"
        yield _uncounted("sequence_parallel", rule)
    if plan.sequence_length % gpus:
        rule = f"{gpus:,} GPUs do not divide {plan.sequence_length:,} tokens evenly: must be false"
        yield Broken("sequence_parallel", rule)


def _of_experts(plan: Plan, architecture: Architecture, kind: type[Model]) -> Laws:
    """Experts that GPUs cannot have apart.

    Source: expert_parallel, transformers (distributed/expert_parallel.py, distributed/mixin.py)
    """
    gpus = plan.expert_parallel
    if gpus == 1:
        return
    if not architecture.has("experts"):
        yield Broken("expert_parallel", "the model has no experts: must be 1")
    uneven = [
        f"{number:,} {name}"
        for name, number in divided_among(architecture, plan).items()
        if number % gpus
    ]
    if uneven:
        yield Broken("expert_parallel", f"must divide the {' and the '.join(uneven)}")
    shared = issubclass(kind, SparseDecoder) and kind.mixture(architecture).shared is not None
    if shared and plan.is_sharded and plan.checkpointing is Checkpointing.OPERATIONS:
        rule = (
            "FSDP does less around experts when a layer is computed again, and PyTorch stops at "
            "what it then misses, as a layer of all tokens stands beside them: must be none or full"
        )
        yield Broken("checkpointing", rule, out={"checkpointing": Checkpointing.FULL})
    yield from _of_fused_experts(plan, kind)
    others = {
        "data_parallel": plan.replicas > 1 and not plan.is_sharded,
        "tensor_parallel": plan.tensor_parallel > 1,
        "pipeline_parallel": plan.pipeline_parallel > 1,
        # transformers finds no module for the output layer's weight
        "tied_embeddings": bool(plan.tied_embeddings),
    }
    yield from _not_together("expert_parallel", plan, others)


def _of_dtensors(plan: Plan, architecture: Architecture, _: type[Model]) -> Laws:
    """Updates that DTensors do not have, which shards of weights and shares of layers are.

    Source: measured; bitsandbytes (its updates take plain tensors), torch (distributed/tensor/_ops)
    """
    if not (plan.is_sharded or plan.divides_layers):
        return
    where = "fsdp or zero2" if plan.is_sharded else "shares of layers"
    if plan.optimizer in ON_DTENSORS:
        yield Broken("optimizer", f"{ON_DTENSORS[plan.optimizer]}: not with {where}")
    if plan.optimizer_bits != plan.own_bits:
        what = "shards" if plan.is_sharded else "DTensors"
        rule = f"bitsandbytes does not update {what}: must be {plan.own_bits} with {where}"
        yield Broken("optimizer_bits", rule)
    if plan.optimizer is Optimizer.MUON and plan.is_sharded:
        yield from _of_few_rows(plan, architecture)
    if plan.update is Update.FUSED and plan.optimizer not in FUSED:
        rule = f"PyTorch has no fused {plan.optimizer} of DTensors: must be foreach or loop"
        yield Broken("update", rule)


def _of_few_rows(plan: Plan, architecture: Architecture) -> Laws:
    """Matrices of which some GPU has no row: Muon's update of such shards has nowhere to go."""
    tensors = (each for each in parameter_tensors(architecture, plan) if each.trained)
    fewest = min((each.shape[0] for each in tensors if is_hidden(each)), default=plan.replicas)
    if fewest < plan.replicas:
        rule = (
            f"PyTorch's Muon updates no shards of {fewest:,} rows on {plan.replicas:,} GPUs: "
            f"must be at most {fewest * plan.sharing_gpus:,} with it"
        )
        yield Broken("gpus", rule, out={"gpus": fewest * plan.sharing_gpus})


_ALL: Final = (
    _of_the_mesh,
    _of_class,
    _of_adapters,
    _of_tasks,
    _of_optimizers,
    _of_recomputing,
    _of_replicas,
    _of_shards,
    _of_dtensors,
    _of_ring,
    _of_stages,
    _of_shares,
    _of_split_tokens,
    _of_experts,
)
