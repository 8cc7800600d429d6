"""Every tensor that one training step keeps alive, for a person to read."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from validation.configuration import Configuration
from validation.session import session
from validation.storage import Event, Moment, Part, Storage

STATIC = (Part.WEIGHTS, Part.OPTIMIZER, Part.GRADIENTS)
LAYER = re.compile(r"^(.*?\.\d+)(\.|$)")

Alive = Sequence[tuple[Storage, Part]]


def trace(configuration: Configuration, device: str, timeline: bool) -> Iterator[str]:
    """The lines of a trace: end of forward, the peak of each moment, and a timeline if asked."""
    with session(configuration, device) as made:
        events = made.step_logged()
        peaks, alive, kept = made.ledger.peaks, made.ledger.alive_at_peak, made.watcher.alive
    yield from _head(configuration)
    yield "\n## Alive at the end of forward (loss computed, autocast left)\n"
    yield from _grouped(kept, every=True)
    for moment in Moment:
        peak = peaks[moment]
        yield f"\n## Peak of {moment}: {peak.total:,} bytes at op {peak.index} {peak.operation}"
        yield f"   in {peak.module or '(no module)'}\n"
        yield from _grouped(alive[moment], every=False)
    if timeline:
        yield from _timeline(configuration, events)


def _head(configuration: Configuration) -> Iterator[str]:
    shape, plan = configuration.architecture, configuration.resolved
    yield f"# {configuration.command}"
    yield f"B={plan.batch_size} S={plan.sequence_length} T={plan.target_length}"
    yield f"d={shape.hidden_size} h={shape.heads} k={shape.head_size} f={shape.feed_forward_size}"
    yield f"V={shape.vocabulary_size} layers={shape.layers}+{shape.decoder_layers}"
    yield "sizes are bytes, rounded up to 512 as the allocator does"


def layer_of(module: str) -> str:
    """The layer that a module's path lies in, else the path's first part."""
    found = LAYER.match(module)
    return found.group(1) if found else module.split(".")[0] or "(no module)"


def _grouped(alive: Alive, every: bool) -> Iterator[str]:
    """Parts with their sums; below each, its storages by layer.

    Of weights, gradients and states only sums are shown, and unless `every` of what is kept too.
    """
    by_part: dict[Part, list[Storage]] = defaultdict(list)
    for storage, part in alive:
        kept = part is Part.TEMPORARIES and storage.part is Part.ACTIVATIONS  # known afterwards
        by_part[storage.part if kept else part].append(storage)
    for part in Part:
        storages = by_part[part]
        total = sum(item.bytes for item in storages)
        yield f"### {part}: {total:,} bytes in {len(storages)}"
        if part in STATIC:
            continue
        one_by_one = every or part is Part.TEMPORARIES
        yield from _layers(storages, one_by_one)


def _layers(storages: Iterable[Storage], one_by_one: bool) -> Iterator[str]:
    layers: dict[str, list[Storage]] = defaultdict(list)
    for storage in storages:
        layers[layer_of(storage.module)].append(storage)
    for layer, members in layers.items():
        yield f"  {layer}: {sum(item.bytes for item in members):,} in {len(members)}"
        if one_by_one:
            yield from (f"    {_storage(item)}" for item in members)


def _storage(item: Storage) -> str:
    shape = "x".join(map(str, item.shape)) or "scalar"
    later = "" if item.part is Part.TEMPORARIES else f" [{item.part}]"
    made = f"{item.operation.removeprefix('aten.')} {item.node}".strip()
    return f"{item.bytes:>14,} {item.dtype:<9} {shape:<22} {made:<58} {item.module}{later}"


def _timeline(configuration: Configuration, events: Sequence[Event]) -> Iterator[str]:
    middle = configuration.architecture.layers // 2
    for moment in (Moment.FORWARD, Moment.BACKWARD):
        own = [event for event in events if event.moment is moment]
        layers = {layer_of(event.module) for event in own}
        for layer in sorted(name for name in layers if name.endswith(f".{middle}")):
            inside = [event.index for event in own if layer_of(event.module) == layer]
            yield f"\n## {moment} of {layer}, operation by operation\n"
            yield from _events(event for event in own if inside[0] <= event.index <= inside[-1] + 1)
    yield "\n## loss, operation by operation\n"
    yield from _events(event for event in events if event.moment is Moment.LOSS)
    for moment in (Moment.BACKWARD, Moment.UPDATE):
        own = [event for event in events if event.moment is moment]
        for name, chosen in (("first", slice(60)), ("last", slice(-60, None))):
            yield f"\n## {moment}, {name} 60 operations\n"
            yield from _events(own[chosen])


def _events(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        made = " ".join(f"{_shape(shape)}:{dtype}" for shape, dtype, _ in event.made[:6])
        made += f" and {len(event.made) - 6} more" if len(event.made) > 6 else ""
        operation = event.operation.removeprefix("aten.")
        yield (
            f"{event.index:>6} {event.total:>15,} {event.change:>+14,} {operation:<44} "
            f"{event.node:<34} {event.module:<44} {made}"
        ).rstrip()


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
