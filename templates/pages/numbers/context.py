"""Data for 'Where the memory goes': a layer, the memory over a step, the errors."""

from calculator.allocator import BLOCK
from calculator.cards import CARDS
from calculator.catalog import SOURCES, find_model
from calculator.overhead import workspace_bytes
from calculator.report import Part, Phase
from calculator.units import format_bytes
from templates.pages.numbers.curves import MODEL, pictures
from templates.pages.numbers.one_layer import kept_by_one_layer
from templates.pages.numbers.savings import MICRO_BATCH, plain_models, techniques
from templates.pieces.accuracy import accuracy, on_card


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    architecture = find_model(MODEL)
    plain, *changed = pictures()
    kept = kept_by_one_layer(architecture)
    sizes = plain.counted.parts
    phases = plain.counted.report.phases
    loss_lift = phases[Phase.LOSS].total - phases[Phase.FORWARD].total
    return {
        "model": architecture,
        "plain": plain,
        "changed": changed,
        "parts": list(Part),
        "phases": list(Phase),
        "size_of": {part.key: format_bytes(sizes[part.key]) for part in Part},
        "bytes_of": sizes,
        "phase_of_peak": plain.counted.report.peak_phase.label.lower(),
        "loss_lift": format_bytes(loss_lift),
        "kept": kept,
        "kept_in_all": format_bytes(sum(one.bytes for one in kept)),
        "most_kept": kept[0].bytes,
        "micro_batch": MICRO_BATCH,
        "models": plain_models(),
        "techniques": techniques(),
        "sources": SOURCES,
        "block": BLOCK,
        "accuracy": accuracy(),
        "card": on_card(),
        "context_memory": format_bytes(CARDS["t4"].context),
        "workspace": format_bytes(workspace_bytes(CARDS["t4"])),
        "hopper_workspace": format_bytes(workspace_bytes(CARDS["h100"])),
    }
