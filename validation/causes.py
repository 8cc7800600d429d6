"""Known differences between the code of a published measurement and what the calculator counts.

Each was read in the code that measured. If it is a single term, its bytes are computed too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from calculator.architecture import Architecture
from calculator.autograd.mode import Checkpointing
from calculator.autograd.sizes import number_of
from calculator.compose import changed_model
from calculator.estimate import estimate
from calculator.models.decoder import Decoder
from calculator.models.keys import declared
from calculator.models.registry import build, type_of
from calculator.peaks.outputs import cached_bytes
from calculator.peaks.prepare import mode_of, numbers_of
from calculator.plan import BaseBits, Plan, Precision
from calculator.report import Phase
from calculator.techniques.fsdp import units_of
from calculator.techniques.lora import ALL_LINEAR, linear_names
from validation import megatron

HALF: Final = 2  # bytes of a 16-bit element
CHUNK: Final = 128  # tokens of a sample
# names by which classes in transformers compute queries, keys and values, or gate and up, at once
ONE_PRODUCT: Final = frozenset(("query_key_value", "qkv_proj"))
GATE_AND_UP: Final = "gate_up_proj"
IN_STEPS: Final = "gelu_new"
FALCON: Final = "falcon"
# a 4-bit weight with its block's scale: 32 bits, or 8 with a 32-bit scale for 256 of them
NF4, NF4_DOUBLE = 0.5 + 4 / 64, 0.5 + 1 / 64 + 4 / (64 * 256)

_LITGPT = "https://github.com/Lightning-AI/litgpt/blob/26857050fe3ff627cd714fe92f5838f51a3d5efa/"
_TITAN = "https://github.com/pytorch/torchtitan/blob/9dec370ad26b5f8e9a7333a0e36165018262644b/"
_MEGATRON = (
    "https://github.com/NVIDIA/Megatron-LM/blob/23e00ed0963c35382dfe8a5a94fb3cda4d21e133/megatron/"
)
_ENGINE = "https://github.com/NVIDIA/TransformerEngine/blob/c188b533c/transformer_engine/pytorch/"
_TUNE = "https://github.com/pytorch/torchtune/blob/1814feb17/torchtune/modules/"


@dataclass(frozen=True, slots=True)
class Cause:
    """A difference: a name for a cell, a sentence, and where to read it.

    `size` gives the bytes that the code that measured holds beyond ours at the peak.
    """

    title: str
    words: str
    address: str = ""
    size: Callable[[Architecture, Plan], int] | None = None


def names_in(architecture: Architecture) -> frozenset[str]:
    """The names of the linear layers of the class that we count."""
    return frozenset(linear_names(build(architecture, architecture.tied_embeddings)))


def tokens_of(plan: Plan) -> int:
    """Tokens of a micro-batch."""
    return plan.batch_size * plan.sequence_length


def kept_inputs(architecture: Architecture, plan: Plan) -> int:
    """Bytes of the inputs of all 4-bit layers of a gated decoder that nothing else keeps.

    In each layer: both norms' outputs and the down projection's input. The output projection's
    input is attention's output, which attention keeps in any case.
    """
    if plan.quantization is BaseBits.NONE:
        return 0
    widths = 2 * architecture.hidden_size + architecture.feed_forward_size
    return HALF * tokens_of(plan) * widths * architecture.layers


def packed_head(architecture: Architecture, plan: Plan) -> int:
    """Bytes of an output layer in 4 bits beyond one in 16, and of its unpacked copies at the peak.

    For each chunk of tokens it is unpacked whole, to fp16 and then to bf16. When the last chunk's
    is, there are the scores of those before it, but not yet the loss, which may need more.
    """
    if plan.quantization is BaseBits.NONE:
        return 0
    packed = NF4_DOUBLE if plan.quantization.is_double else NF4
    weights = architecture.vocabulary_size * architecture.hidden_size
    return round(weights * (packed - HALF)) + _beyond_the_loss(architecture, plan)


def earlier_inputs(architecture: Architecture, plan: Plan) -> int:
    """Bytes of what the last micro-batch leaves until all scores of the next exist.

    They are the inputs of its 4-bit layers, and its scores in 32 bits, to which Lightning's
    Fabric widens what a model returns. In each layer there are four inputs: both norms' outputs,
    attention's, and the product in the middle.
    """
    if plan.quantization is BaseBits.NONE:
        return 0
    widths = 2 * architecture.hidden_size + architecture.attention_size
    inputs = (widths + architecture.feed_forward_size) * architecture.layers
    left = HALF * tokens_of(plan) * (inputs + 2 * architecture.vocabulary_size)
    return _beyond_the_loss(architecture, plan, left) - _beyond_the_loss(architecture, plan)


def _beyond_the_loss(architecture: Architecture, plan: Plan, left: int = 0) -> int:
    """Bytes by which the last unpacking, with `left` beside it, is above all that comes later."""
    rest, peak = _chunked(architecture, plan)
    unpacked = 2 * HALF * architecture.vocabulary_size * architecture.hidden_size
    before = HALF * (tokens_of(plan) - _chunk(plan)) * architecture.vocabulary_size
    return max(rest + unpacked + before + left - peak, 0)


def repeated_keys(architecture: Architecture, plan: Plan) -> int:
    """Bytes of keys and values that are copied for every head of their group."""
    groups = architecture.numbers.get("key_value_heads", architecture.heads)
    width = 2 * (architecture.heads - groups) * architecture.head_size
    return HALF * tokens_of(plan) * width * architecture.layers


def whole_queries(architecture: Architecture, plan: Plan) -> int:
    """Bytes of queries and keys that stay because the values are a view of the same product.

    Only without groups: with groups, the values are copied out of it. Some classes of transformers
    have one product too, and we count it.
    """
    grouped = architecture.numbers.get("key_value_heads", architecture.heads) != architecture.heads
    if grouped or ONE_PRODUCT & names_in(architecture):
        return 0
    width = 2 * architecture.attention_size
    return HALF * tokens_of(plan) * width * architecture.layers


def wide_adapters(architecture: Architecture, plan: Plan) -> int:
    """Bytes of the dropped-out inputs of adapters, in 16 bits beyond ours in 32.

    Each adapter keeps its input and a mask of a byte. peft has one for each of transformers'
    layers, LitGPT one for queries, keys and values together.
    """
    if not plan.lora:
        return 0
    theirs, ours = adapted(architecture, plan.lora_targets)
    elements = tokens_of(plan) * architecture.layers
    return elements * (theirs * (HALF + 1) - ours * (4 + 1))


def adapted(architecture: Architecture, targets: str) -> tuple[int, int]:
    """Widths of the adapters' inputs in a layer, together: LitGPT's, and those of peft."""
    width = architecture.hidden_size
    if targets != ALL_LINEAR:
        return width, width * len(targets.split(","))
    end = architecture.attention_size + architecture.feed_forward_size
    theirs = width * (3 if architecture.gated else 2) + end
    fused = GATE_AND_UP in names_in(architecture)
    return theirs, theirs - width if fused else theirs + 2 * width


def gelu_steps(architecture: Architecture, plan: Plan) -> int:
    """Bytes of one tensor per layer instead of the four that `gelu_new` keeps: x, x/2, tanh, +1."""
    kind = type_of(architecture)
    if not issubclass(kind, Decoder) or [IN_STEPS] not in declared(kind, "texts").values():
        return 0
    return -3 * HALF * tokens_of(plan) * architecture.feed_forward_size * architecture.layers


def masked_scores(architecture: Architecture, plan: Plan) -> int:
    """Bytes of attention's scores, which flash attention does not keep and Falcon's class does.

    With its mask, PyTorch's reference kernel computes them in 32 bits.
    """
    if architecture.family != FALCON:
        return 0
    scores = architecture.heads * tokens_of(plan) * plan.sequence_length * architecture.layers
    return -4 * scores


def scattered_product(architecture: Architecture, plan: Plan) -> int:
    """Bytes of the product of adapters on queries and values, which `index_copy` keeps.

    With adapters on the keys too, nothing is scattered.
    """
    if not plan.lora or plan.lora_targets == ALL_LINEAR:
        return 0
    groups = architecture.numbers.get("key_value_heads", architecture.heads)
    width = (architecture.heads + groups) * architecture.head_size
    return HALF * tokens_of(plan) * width * architecture.layers


def chunked_loss(architecture: Architecture, plan: Plan) -> int:
    """Bytes of scores and their logarithms, beyond ours.

    Both are in 32 bits, and so are the gradients of one chunk, twice. The peak cannot fall below
    that of backward or update.
    """
    return _chunked(architecture, plan)[1] - estimate(architecture, plan).gpu.total


def copied_head(architecture: Architecture, plan: Plan) -> int:
    """Bytes of the output layer's 16-bit copies beyond one: autocast keeps none that is frozen."""
    if plan.precision is not Precision.AMP or not plan.lora:
        return 0
    chunks = math.ceil(plan.sequence_length / CHUNK)
    return (chunks - 1) * HALF * architecture.vocabulary_size * architecture.hidden_size


def _chunked(architecture: Architecture, plan: Plan) -> tuple[int, int]:
    """Bytes at the loss without scores, and the peak with the loss in chunks."""
    report = estimate(architecture, plan)
    small = estimate(replace(architecture, vocabulary_size=2), plan)
    loss, without = report.phases[Phase.LOSS], small.phases[Phase.LOSS]
    own = loss.activations + loss.temporaries - without.activations - without.temporaries
    rest = loss.total - own
    theirs = 2 * 4 * (tokens_of(plan) + _chunk(plan)) * architecture.vocabulary_size
    others = (report.phases[phase].total for phase in (Phase.BACKWARD, Phase.UPDATE))
    return rest, max(rest + theirs, *others)


def _chunk(plan: Plan) -> int:
    """Tokens of a chunk of all samples."""
    return min(tokens_of(plan), CHUNK * plan.batch_size)


def softmax_input(architecture: Architecture, plan: Plan) -> int:
    """Bytes of the scores that go into attention's softmax, of every layer that is not run again.

    Under autocast softmax runs in 32 bits, as it does in 32-bit models.
    """
    scores = architecture.heads * tokens_of(plan) * plan.sequence_length
    layers = 1 if plan.checkpointing is Checkpointing.FULL else architecture.layers
    return mode_of(plan).weights.width * scores * layers


def own_streams(architecture: Architecture, plan: Plan) -> int:
    """Bytes of reduced gradients, and of the two largest units' gathered weights, before a copy."""
    if not plan.is_sharded:
        return 0
    gradients = estimate(architecture, plan).phases[Phase.UPDATE].gradients
    root, layer, *_ = gathered(architecture, plan)
    return gradients + root + layer


def last_layer(architecture: Architecture, plan: Plan) -> int:
    """Bytes of the last layer's weights, which stay whole."""
    return gathered(architecture, plan)[-1] if plan.is_sharded else 0


def gathered(architecture: Architecture, plan: Plan) -> list[int]:
    """Bytes of the flat weights of FSDP's units, the root's first."""
    units = units_of(changed_model(architecture, plan), mode_of(plan).weights)
    numbers = numbers_of(architecture, plan)
    return [number_of(each.flat, numbers) * each.dtype.width for each in units]


CAUSES: Final = {
    "kept-inputs": Cause(
        "Inputs kept",
        "Before version 0.43.2, bitsandbytes kept the input of every 4-bit layer for backward; "
        "LitGPT pins an earlier one. We count today's, which keeps none.",
        "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/1270",
        kept_inputs,
    ),
    "packed-head": Cause(
        "Output layer in 4 bits",
        "LitGPT packs the output layer too. Each product first unpacks it whole, to fp16 and then "
        "to bf16; the peak is there or at the loss. transformers leaves it in 16 bits, as we "
        "count.",
        f"{_LITGPT}litgpt/finetune/lora.py",
        packed_head,
    ),
    "earlier-inputs": Cause(
        "Earlier inputs",
        "The inputs that bitsandbytes kept did not die with the backward pass, but with the graph. "
        "LitGPT's loop holds the scores, and with them the graph, until the next scores exist. In "
        "the resource tables the longest sample came first, when there was nothing before.",
        "https://github.com/Lightning-AI/litgpt/blob/5895df1004c3d05ef69f7aeffcfee757dbc42d58/"
        "litgpt/finetune/lora.py",
        earlier_inputs,
    ),
    "repeated-keys": Cause(
        "Keys repeated",
        "LitGPT and torchtune copy keys and values for every head of their group, and attention "
        "keeps the copies. Flash attention in the class that we count reads the groups as they "
        "are.",
        f"{_TUNE}attention.py",
        repeated_keys,
    ),
    "whole-queries": Cause(
        "One product kept",
        "LitGPT's queries, keys and values are views of one product, and attention's values keep "
        "all three. In most classes of transformers they are tensors of their own.",
        f"{_LITGPT}litgpt/model.py",
        whole_queries,
    ),
    "scattered-product": Cause(
        "Product scattered",
        "LitGPT spreads the product of its adapters over queries, keys and values with index_copy, "
        "which keeps it for backward.",
        f"{_LITGPT}litgpt/lora.py",
        scattered_product,
    ),
    "wide-adapters": Cause(
        "Adapters in 32 bits",
        "peft's adapters are in 32 bits, and so are the copies of their inputs that each keeps. "
        "LitGPT's are in 16 bits.",
        f"{_LITGPT}litgpt/lora.py",
        wide_adapters,
    ),
    "gelu": Cause(
        "GELU in steps",
        "Phi's class in transformers computes GELU in separate operations, each of which keeps a "
        "tensor four times as wide as the model. LitGPT uses one kernel.",
        f"{_LITGPT}litgpt/model.py",
        gelu_steps,
    ),
    "mask": Cause(
        "Mask",
        "Falcon's class in transformers always passes a mask, so attention keeps its scores, in 32 "
        "bits. LitGPT passes none and takes flash attention.",
        f"{_LITGPT}litgpt/model.py",
        masked_scores,
    ),
    "chunked-loss": Cause(
        "Loss in chunks",
        "LitGPT computes the loss for 128 tokens at a time, so the gradients of all scores never "
        "exist together, and its 16-bit scores die once they are widened. In the class in "
        "transformers they stay.",
        f"{_LITGPT}litgpt/utils.py",
        chunked_loss,
    ),
    "copied-head": Cause(
        "Output layer copied",
        "Under autocast, LitGPT's output layer copies its 32-bit weight to 16 bits for every chunk "
        "of 128 tokens, and backward needs each copy: autocast keeps only copies of weights that "
        "are trained. We count one.",
        f"{_LITGPT}litgpt/finetune/lora.py",
        copied_head,
    ),
    "cache": Cause(
        "Cache",
        "The script leaves use_cache at its default, so the outputs that its loop holds have each "
        "layer's keys and values beside the scores. We count use_cache=False.",
        "https://github.com/huggingface/peft/blob/5d602fdbff04c33c1c4de55cda9d4ae1d7cb7e40/"
        "method_comparison/MetaMathQA/run.py",
        cached_bytes,
    ),
    "softmax-input": Cause(
        "Softmax's input",
        "Before version 1.11, PyTorch's softmax kept its input for backward, beside its result: a "
        "matrix of scores more in each layer. Today its backward asks for the input's type alone.",
        "https://github.com/huggingface/transformers/blob/04ae75715f2cca2d87bbaf07c1d8e9fb2ab20bfd/"
        "src/transformers/pytorch_utils.py",
        softmax_input,
    ),
    "own-streams": Cause(
        "Streams of their own",
        "FSDP2 gathers weights and reduces gradients on streams of their own, and the allocator "
        "gives no stream the free space of another. So what it reserves holds the gathered "
        "weights and all gradients beside the peak of the loss, at which they are not there.",
        f"{_TITAN}torchtitan/metrics.py",
        own_streams,
    ),
    "last-layer": Cause(
        "Last layer whole",
        "torchtitan keeps the last layer's weights gathered after the forward pass. It frees the "
        "embeddings and the output layer, which we count at the peak; but what the loss allocates "
        "next is larger than each of them, so their space stays reserved.",
        f"{_TITAN}torchtitan/parallelisms/parallelize_llama.py",
        last_layer,
    ),
    "divided-vocabulary": Cause(
        "Vocabulary divided",
        "Megatron divides the embeddings, the output layer and the scores among the GPUs of tensor "
        "parallelism. In PyTorch's code that we count they are whole on each, and so are their "
        "gradients and states.",
        f"{_MEGATRON}core/tensor_parallel/layers.py",
        megatron.divided_vocabulary,
    ),
    "wide-gradients": Cause(
        "Gradients in 32 bits",
        "Megatron adds gradients up in one buffer of 32 bits, which the update reads, so its peak "
        "is at the loss. Ours are in 16 bits until the update, our peak, makes copies in 32.",
        f"{_MEGATRON}core/optimizer/distrib_optimizer.py",
        megatron.wide_gradients,
    ),
    "kept-parts": Cause(
        "Parts kept",
        "TransformerEngine's layers keep each GPU's part of their inputs in 16 bits, and gather "
        "all tokens again in the backward pass. PyTorch's keep all, and norms in 32 bits.",
        f"{_ENGINE}module/layernorm_linear.py",
        megatron.kept_parts,
    ),
    "fused-gate": Cause(
        "Gate in one kernel",
        "Megatron's kernel for gate and product keeps its inputs alone; the class that we count "
        "keeps the activated gate too.",
        f"{_MEGATRON}core/fusions/fused_bias_swiglu.py",
        megatron.fused_gate,
    ),
    "fused-loss": Cause(
        "Loss in one kernel",
        "TransformerEngine's loss writes the gradient of the 16-bit scores into their place. Ours "
        "makes copies in 32 bits.",
        f"{_ENGINE}cross_entropy.py",
        megatron.fused_loss,
    ),
    "placeholders": Cause(
        "Placeholders",
        "TransformerEngine keeps an empty gradient for each shape of a weight, so that hooks run.",
        f"{_ENGINE}module/base.py",
        megatron.placeholders,
    ),
}
