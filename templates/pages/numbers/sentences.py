"""Sentences of 'Where the memory goes' that depend on what was counted for the reader's choice."""

from typing import Final

from calculator.architecture import Architecture
from calculator.cards import Card
from calculator.parts import Phase
from calculator.planner.need import need_of
from calculator.report import Report
from calculator.units import format_bytes
from templates.pages.numbers.choices import Choice

# peaks that differ by less than this share are 'almost as high'
ALMOST: Final = 0.03


def plan_words(choice: Choice, report: Report) -> str:
    """The model, its tokens, the precision and the optimizer."""
    plan = report.plan
    tokens = f"one sequence of {plan.sequence_length:,} tokens"
    if plan.target_length:
        tokens = f"{plan.sequence_length:,} tokens in and {plan.target_length:,} out"
    optimizer = plan.optimizer.label.partition(",")[0]
    words = f"{choice.model.title}, {tokens}, autocast to 16 bits, {optimizer}."
    if choice.is_of_the_run:
        words += (
            " Here it has separate weights in every layer and no reversible layers; the run saved "
            "memory by both."
        )
    return words


def missing_words(report: Report) -> str:
    """The part that is not there, or hardly there, at the peak."""
    if report.peak_phase is Phase.UPDATE:
        return "Hardly any activations are left: the backward pass has freed them."
    if not report.gpu.gradients:
        return "There are no gradients yet: they appear during the backward pass."
    return "There are hardly any gradients yet: the backward pass has only just begun."


def scores_words(model: Architecture) -> str:
    """The scores that the loss needs."""
    if model.image_vocabulary_size:
        return (
            f"a score for each token of the caption and each of {model.vocabulary_size:,} words, "
            f"and for each token of the picture and each of {model.image_vocabulary_size:,} codes"
        )
    return (
        f"a score for each token and each of the {model.vocabulary_size:,} words of the vocabulary"
    )


def peak_words(report: Report) -> str:
    """The phase of the peak, and how high the update is beside it."""
    phase = report.peak_phase
    words = f"Here that is in the {phase.label.lower()} phase"
    update = report.phases[Phase.UPDATE]
    if phase is Phase.UPDATE:
        return (
            f"{words}: the activations are gone, but all gradients are there, and the optimizer "
            f"needs another {format_bytes(update.temporaries)} for its own intermediate results."
        )
    gone = "the activations are gone, but all gradients are there"
    if update.total > (1 - ALMOST) * report.gpu.total:
        return f"{words}, and the update is almost as high: {gone}."
    return f"{words}. The update reaches {format_bytes(update.total)}: {gone}."


def fit_words(choice: Choice, report: Report) -> str:
    """The verdict, with the overhead."""
    need, memory = need_of(report), choice.card.memory
    return (
        f'With the <a href="#overhead">overhead</a> it needs {format_bytes(need.typical)}, and the '
        f"{choice.card.short} has {format_bytes(memory)}: it {need.verdict(memory)}."
    )


def checkpointing_words(plain: Report, changed: Report) -> str:
    """The peak with checkpointing beside the one without, and its phase."""
    before, after = format_bytes(plain.gpu.total), format_bytes(changed.gpu.total)
    words = "Checkpointing removes most of the activations"
    nothing = "which has no activations to remove"
    if plain.peak_phase is Phase.UPDATE:
        return f"{words}, yet the peak does not move from {before}: it is in the update, {nothing}."
    in_update = changed.peak_phase is Phase.UPDATE
    if changed.gpu.total > (1 - ALMOST) * plain.gpu.total:
        where = f"it is now in the update, {nothing}" if in_update else "other tensors make it"
        return f"{words}, yet the peak barely moves from {before}: {where}."
    phase = changed.peak_phase.label.lower()
    where = f"in the update, {nothing}" if in_update else f"in the {phase} phase"
    now = "still" if changed.peak_phase is plain.peak_phase else "now"
    return f"{words} and lowers the peak from {before} to {after}. It is {now} {where}."


def limit_words(choice: Choice, limit: object) -> str:
    """The line of the GPU's memory, where the picture reaches as high."""
    card = choice.card
    if limit:
        return f"The red line marks the memory of the {card.short}."
    return f"The {format_bytes(card.memory)} of the {card.short} lie above the picture."


def depth_words(model: Architecture) -> str:
    """The layers of each stack."""
    if model.decoder_layers:
        return f"{model.layers} layers in the encoder and {model.decoder_layers} in the decoder"
    return f"{model.layers} layers"


def context_source_words(card: Card) -> str:
    """The witness of the context's size."""
    return "an assumption" if card.context_source == "assumed" else "measured"
