"""Bytes at the peak of Megatron-LM's step where its code differs from what the calculator counts.

The differences were read in Megatron-LM 23e00ed and TransformerEngine c188b53. They build on each
other: each function returns what is left of the peak once those before it are counted too. All but
the first are of the moment at which the backward pass begins, where Megatron's peak is: it has no
copies of gradients in its update.
"""

from dataclasses import replace

from calculator.architecture import Architecture
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.report import Memory, Phase

HALF, WHOLE = 2, 4  # bytes of an element in 16 and in 32 bits
ROWS = 128  # each GPU's rows of the vocabulary are a multiple of it (make_vocab_size_divisible_by)


def divided(architecture: Architecture, plan: Plan) -> Architecture:
    """The same with one GPU's rows of the vocabulary, after a row for the end of a document."""
    padding = ROWS * plan.tensor_parallel
    rows = -(-(architecture.vocabulary_size + 1) // padding) * ROWS
    return replace(architecture, vocabulary_size=rows)


def divided_vocabulary(architecture: Architecture, plan: Plan) -> int:
    """Bytes of the embeddings and the output layer in parts, beyond ours, which are whole."""
    return (
        estimate(divided(architecture, plan), plan).gpu.total
        - estimate(architecture, plan).gpu.total
    )


def wide_gradients(architecture: Architecture, plan: Plan) -> int:
    """Bytes of the peak with gradients in 32 bits from the first micro-batch, beyond ours.

    Ours are in 16 bits, and the update makes copies in 32.
    """
    report = estimate(divided(architecture, plan), plan)
    theirs = report.phases[Phase.LOSS].total + (WHOLE - HALF) * _weights(report.phases[Phase.LOSS])
    return theirs - report.gpu.total


def kept_parts(architecture: Architecture, plan: Plan) -> int:
    """Bytes of what norms and the products after them keep, beyond ours.

    Ours keep all gathered tokens for each half of a layer, and of a part's elements 4 bytes for the
    norm in 32 bits and 2 for what is scaled. TransformerEngine keeps the part before and after the
    norm in 16 bits, and gathers again in the backward pass. After the last norm all tokens are
    gathered in both.
    """
    tokens, parts = _tokens(plan), plan.tensor_parallel
    halves = 2 * architecture.layers
    gathered = HALF * tokens * halves
    norms = (WHOLE + HALF - 2 * HALF) * tokens // parts * (halves + 1)
    return -(gathered + norms) * architecture.hidden_size


def fused_gate(architecture: Architecture, plan: Plan) -> int:
    """Bytes of the activated gates, which one kernel for gate and product computes again."""
    width = architecture.feed_forward_size // plan.tensor_parallel
    return -HALF * _tokens(plan) * width * architecture.layers


def fused_loss(architecture: Architecture, plan: Plan) -> int:
    """Bytes of scores whose gradient takes their place, and of that of their input, beyond ours."""
    shape = divided(architecture, plan)
    loss = estimate(shape, plan).phases[Phase.LOSS]
    without = estimate(replace(shape, vocabulary_size=2), plan).phases[Phase.LOSS]
    own = loss.activations + loss.temporaries - without.activations - without.temporaries
    width = shape.vocabulary_size + architecture.hidden_size
    return HALF * _tokens(plan) * width - own


def placeholders(architecture: Architecture, plan: Plan) -> int:
    """Bytes of an empty gradient in 16 bits for each shape of a matrix, which stays."""
    hidden, parts = architecture.hidden_size, plan.tensor_parallel
    groups = architecture.numbers["key_value_heads"]
    heads = (architecture.heads + 2 * groups) * architecture.head_size
    layer = heads + architecture.attention_size + 3 * architecture.feed_forward_size
    rows = divided(architecture, plan).vocabulary_size
    return HALF * hidden * (layer // parts + rows)


def _tokens(plan: Plan) -> int:
    return plan.batch_size * plan.sequence_length


def _weights(memory: Memory) -> int:
    """Number of weights, from their bytes in 16 bits."""
    return memory.weights // HALF
