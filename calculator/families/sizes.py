"""From a model and a plan to a tape's structure and the numbers for its symbols."""

from typing import Final, assert_never

from calculator.allocator import round_block
from calculator.architecture import Architecture, Family
from calculator.families.structure import Run, Structure, layer_runs
from calculator.parameters import position_count
from calculator.techniques import ResolvedPlan

# a row of a mask must start at a multiple of this many numbers for the efficient kernel
MASK_MULTIPLE: Final = 8
# kinds of attention in our text-to-image transformer, training/attention.py
MASK_KINDS: Final = ("row", "column", "convolutional")


def buffer_bytes(architecture: Architecture, plan: ResolvedPlan) -> int:
    """Tables that belong to the model and are not trained, counted with the weights."""
    match architecture.family:
        case Family.BERT:
            return 2 * round_block(8 * position_count(architecture, plan))
        case Family.GPTJ:
            positions = rotary_positions(architecture, plan)
            table = round_block(positions * architecture.rotary_size * 4)
            return table * min(plan.sharing_groups, architecture.layers)
        case Family.DALLE:
            # a mask for each kind of attention, angles, and where shifted channels come from
            length = plan.sequence_length
            masks = len(MASK_KINDS) * round_block(length * length)
            angles = 2 * round_block(4 * length * architecture.head_size // 2)
            return masks + angles + 4 * round_block(8 * length)
        case Family.T5 | Family.GPT2:
            return 0
        case _:
            assert_never(architecture.family)


def _padded_lengths(plan: ResolvedPlan) -> frozenset[str]:
    lengths = {"S": plan.sequence_length, "T": plan.target_length or 0}
    return frozenset(name for name, length in lengths.items() if length % MASK_MULTIPLE)


def rotary_positions(architecture: Architecture, plan: ResolvedPlan) -> int:
    """Rows of the table of rotary angles."""
    return max(architecture.sequence_length, plan.sequence_length)


def structure_of(
    architecture: Architecture, plan: ResolvedPlan
) -> tuple[Structure, tuple[int, ...]]:
    """What decides the operations, and how many layers of each run are left out of the tape."""
    runs, left_out = layer_runs(
        architecture.layers, plan.sharing_groups, architecture.own_last_layer
    )
    decoder_runs: tuple[Run, ...] = ()
    if architecture.decoder_layers:
        decoder_runs, more = layer_runs(architecture.decoder_layers, plan.sharing_groups, False)
        left_out += more
    structure = Structure(
        family=architecture.family,
        precision=plan.precision,
        attention=plan.attention,
        checkpointing=plan.checkpointing,
        reversible=plan.reversible,
        dropout=plan.dropout > 0,
        tied=plan.tied_embeddings,
        one_sequence=plan.batch_size == 1,
        gradients_exist=plan.accumulation > 1,
        runs=runs,
        decoder_runs=decoder_runs,
        gated=architecture.gated,
        padded=_padded_lengths(plan),
    )
    return structure, left_out


def symbols_of(architecture: Architecture, plan: ResolvedPlan) -> dict[str, int]:
    """Elements for each symbol that the tapes use."""
    batch, length, target = plan.batch_size, plan.sequence_length, plan.target_length or 0
    text, side = architecture.text_length, architecture.image_side
    return {
        "B": batch,
        "S": length,
        "T": target,
        "N": batch * length,
        "M": batch * target,
        "d": architecture.hidden_size,
        "e": architecture.hidden_size // 2,
        "w": architecture.hidden_size // 4,
        "h": architecture.heads,
        "a": architecture.attention_size,
        "K": -(-architecture.head_size // 32) * 32,
        "c": -(-length // 128) * 128,
        "E": -(-length // 32) * 32,
        "F": -(-target // 32) * 32,
        "G": -(-length // MASK_MULTIPLE) * MASK_MULTIPLE,
        "H": -(-target // MASK_MULTIPLE) * MASK_MULTIPLE,
        "z": architecture.attention_size // 2,
        "x": architecture.head_size // 2,
        "f": architecture.feed_forward_size,
        "V": architecture.vocabulary_size,
        "P": position_count(architecture, plan),
        "r": architecture.rotary_size,
        "q": architecture.rotary_size // 2,
        "Y": rotary_positions(architecture, plan),
        "R": architecture.relative_buckets,
        "U": architecture.token_types,
        "t": text,
        "u": text + 1,
        "i": side**2,
        "j": side**2 - 1,
        "y": length + 1,
        "W": architecture.vocabulary_size + text,
        "I": architecture.image_vocabulary_size,
    }
