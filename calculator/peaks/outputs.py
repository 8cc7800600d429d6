"""The outputs of a model beside its loss, for as long as the training loop holds them.

A step is recorded once for all loops. After an output's own death the tape has a birth of as many
bytes times `HELD`, and around the forward pass `PREVIOUS` bytes of the pass before: both are
numbers of a plan, 0 where nothing is held.
"""

from dataclasses import replace

from calculator.allocator import round_block
from calculator.architecture import Architecture
from calculator.autograd.ledger import HANDED
from calculator.models.decoder import FULL, SLIDING
from calculator.peaks.chunks import noted_bytes
from calculator.peaks.prepare import mode_of
from calculator.peaks.step import Prepared
from calculator.peaks.trace import record
from calculator.plan import Loop, Plan


def output_bytes(prepared: Prepared) -> int:
    """Bytes of the logits, and in encoder-decoder models of the encoder's output."""
    if prepared.step.turns:  # a pipeline's last stage hands its outputs to the schedule
        return 0
    chunks = record(prepared.step).chunks
    found = noted_bytes(chunks, HANDED, prepared.numbers, prepared.left_out)
    return sum(map(round_block, found))


def cached_bytes(architecture: Architecture, plan: Plan) -> int:
    """Most bytes of the keys and values that outputs hold unless `use_cache` is false.

    Counted for decoders whose layers all attend to tokens, with keys and values of their own. The
    rotation widens keys under autocast, and the cache's concatenation values with them.

    Source: transformers (cache_utils.py, DynamicLayer)
    """
    is_usual = architecture.pattern and {*architecture.pattern} <= {FULL, SLIDING}
    if not is_usual or architecture.has("kv_lora_rank") or plan.checkpointing.is_of_layers:
        return 0
    elements = 2 * architecture.numbers["key_value_heads"] * architecture.head_size
    tokens = plan.batch_size * plan.sequence_length
    return mode_of(plan).weights.width * tokens * elements * architecture.layers


def with_outputs(prepared: Prepared, plan: Plan) -> Prepared:
    """The same with the bytes that a loop holds from the forward pass before.

    A script holds them until the next forward pass has returned, a function between two
    micro-batches of a step.
    """
    if not holds_previous(plan):
        return prepared
    return replace(
        prepared, numbers={**prepared.numbers, "previous_outputs": output_bytes(prepared)}
    )


def holds_previous(plan: Plan) -> bool:
    """True if the outputs of one forward pass live until the next is done."""
    if plan.loop is Loop.FUNCTION:
        return plan.accumulation > 1
    return plan.loop is Loop.SCRIPT
