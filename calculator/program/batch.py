"""The part of a program that makes a micro-batch, for readers to replace by their data."""

from typing import Final

from calculator.architecture import Architecture
from calculator.plan import Plan
from calculator.program.model import automatic_class, weight_type
from calculator.program.text import INDENT, TORCH, Piece
from calculator.task import Task

CUDA: Final = ', device="cuda"'
NOTE: Final = "# Random {}: replace them with your data."


def make_batch(architecture: Architecture, plan: Plan, device: str = CUDA) -> Piece:
    """One micro-batch of what the class reads, with labels; without a `device` in RAM."""
    match automatic_class(architecture, plan):
        case "AutoModelForImageClassification":
            made = _images(plan)
        case "AutoModelForSequenceClassification" if plan.task is Task.REWARD:
            made = _batch("pairs", _ids(architecture, plan))
        case "AutoModel":
            size = f"({plan.batch_size}, {plan.sequence_length})"
            mask = f"torch.ones({size}, dtype=torch.int64{CUDA})"
            made = _batch("pairs", {**_ids(architecture, plan), "attention_mask": mask})
        case "AutoModelForSequenceClassification":
            labels = {"labels": _classes(f"({plan.batch_size},)")}
            made = _batch("tokens", {**_ids(architecture, plan), **labels})
        case "AutoModelForTokenClassification":
            labels = {"labels": _classes(f"({plan.batch_size}, {plan.sequence_length})")}
            made = _batch("tokens", {**_ids(architecture, plan), **labels})
        case "AutoModelForQuestionAnswering":
            made = _batch("tokens", {**_ids(architecture, plan), **_ends(plan)})
        case "AutoModelForSpeechSeq2Seq" | "AutoModelForAudioClassification":
            made = _sounds(architecture, plan)
        case _:
            made = _tokens(architecture, plan)
    return Piece(tuple(line.replace(CUDA, device) for line in made.lines), made.imports)


def _tokens(architecture: Architecture, plan: Plan) -> Piece:
    """Token ids and labels; a decoder's labels have a length of their own."""
    tokens = _random(architecture, plan, plan.sequence_length)
    labels = _random(architecture, plan, plan.target_length or plan.sequence_length)
    return _batch("tokens", {"input_ids": tokens, "labels": labels})


def _ids(architecture: Architecture, plan: Plan) -> dict[str, str]:
    return {"input_ids": _random(architecture, plan, plan.sequence_length)}


def _classes(shape: str) -> str:
    return f"torch.randint(model.config.num_labels, {shape}{CUDA})"


def _ends(plan: Plan) -> dict[str, str]:
    place = f"torch.randint({plan.sequence_length}, ({plan.batch_size},){CUDA})"
    return dict.fromkeys(("start_positions", "end_positions"), place)


def _random(architecture: Architecture, plan: Plan, length: int) -> str:
    size = f"({plan.batch_size}, {length})"
    words = architecture.vocabulary_size  # Gemma 4 may have fewer rows in its second table
    known = min(words, architecture.numbers.get("per_layer_vocabulary_size", words))
    return f"torch.randint({known}, {size}{CUDA})"


def _images(plan: Plan) -> Piece:
    settings = "model.config"
    side = f"{settings}.image_size"
    shape = f"({plan.batch_size}, {settings}.num_channels, {side}, {side})"
    classes = f"torch.randint({settings}.num_labels, ({plan.batch_size},){CUDA})"
    pixels = _zeros("shape", plan)
    return _batch("images", {"pixel_values": pixels, "labels": classes}, f"shape = {shape}")


def _sounds(architecture: Architecture, plan: Plan) -> Piece:
    settings = "model.config"
    frames = f"2 * {settings}.max_source_positions"
    shape = f"({plan.batch_size}, {settings}.num_mel_bins, {frames})"
    if plan.task is Task.AUDIO:
        labels = _classes(f"({plan.batch_size},)")
    else:
        labels = _random(architecture, plan, plan.target_length or plan.sequence_length)
    features = _zeros("shape", plan)
    return _batch("sounds", {"input_features": features, "labels": labels}, f"shape = {shape}")


def _zeros(shape: str, plan: Plan) -> str:
    return f"torch.zeros({shape}, dtype={weight_type(plan)}{CUDA})"


def _batch(kind: str, values: dict[str, str], before: str = "") -> Piece:
    lines = [f'{INDENT}"{name}": {text},' for name, text in values.items()]
    first = (NOTE.format(kind), *([before] if before else []))
    return Piece((*first, "batch = {", *lines, "}"), (TORCH,))
