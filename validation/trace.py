"""Every tensor that one training step keeps alive, for a person to read."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from calculator.architecture import Architecture
from validation.configuration import Configuration
from validation.ledger import Step
from validation.session import session
from validation.storage import Event, Part, Phase, Storage

STATIC = (Part.WEIGHTS, Part.OPTIMIZER, Part.GRADIENTS)
LAYER = re.compile(r"^(.*?\.\d+)(\.|$)")


def trace(configuration: Configuration, device: str, timeline: bool) -> Iterator[str]:
    """The lines of a trace: end of forward, the peak of each phase, and a timeline if asked."""
    with session(configuration, device) as made:
        step = made.step()
    yield from _head(configuration)
    yield "\n## Alive at the end of forward (loss computed, autocast left)\n"
    yield from _grouped(step, step.kept, every=True)
    for phase, peak in step.peaks.items():
        yield f"\n## Peak of {phase}: {peak.total:,} bytes at entry {peak.index} {peak.operation}"
        yield f"   in {peak.module or '(no module)'}\n"
        yield from _grouped(step, peak.index, every=False)
    if timeline:
        yield from _timeline(configuration, step.events())


def _head(configuration: Configuration) -> Iterator[str]:
    plan = configuration.asked
    yield f"# {configuration.command}"
    yield f"B={plan.batch_size} S={plan.sequence_length} T={plan.target_length}"
    found = configuration.subject.counted
    if isinstance(found, Architecture):
        yield f"d={found.hidden_size} h={found.heads} k={found.head_size}"
        yield f"f={found.feed_forward_size} V={found.vocabulary_size}"
        yield f"layers={found.layers}+{found.decoder_layers}"
    yield "sizes are bytes, rounded up to 512 as the allocator does"


def layer_of(module: str) -> str:
    """The layer that a module's path lies in, else the path's first part."""
    found = LAYER.match(module)
    return found.group(1) if found else module.split(".")[0] or "(no module)"


def _grouped(step: Step, at: int, every: bool) -> Iterator[str]:
    """Parts with their sums; below each, its storages by layer.

    Of weights, gradients and states only sums are shown, and unless `every` of what is kept too.
    """
    by_part: dict[Part, list[Storage]] = defaultdict(list)
    for storage in step.alive(at):
        by_part[storage.part(at)].append(storage)
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
    made = f"{item.operation.removeprefix('aten::')} {item.node}".strip()
    shape = item.shape or f"{item.size} bytes"
    return f"{item.bytes:>14,} {shape:<32} {made:<58} {item.module}"


def _timeline(configuration: Configuration, events: Sequence[Event]) -> Iterator[str]:
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        own = [event for event in events if event.phase is phase]
        layers = {layer_of(event.module) for event in own}
        numbers = sorted(int(name.rpartition(".")[2]) for name in layers if LAYER.match(name))
        middle = numbers[len(numbers) // 2] if numbers else 0
        for layer in sorted(name for name in layers if name.endswith(f".{middle}")):
            inside = [event.index for event in own if layer_of(event.module) == layer]
            yield f"\n## {phase} of {layer}, operation by operation\n"
            yield from _events(event for event in own if inside[0] <= event.index <= inside[-1] + 1)
    yield "\n## loss, operation by operation\n"
    yield from _events(event for event in events if event.phase is Phase.LOSS)
    for phase in (Phase.BACKWARD, Phase.UPDATE):
        own = [event for event in events if event.phase is phase]
        for name, chosen in (("first", slice(60)), ("last", slice(-60, None))):
            yield f"\n## {phase}, {name} 60 operations\n"
            yield from _events(own[chosen])


def _events(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        made = ", ".join(event.made[:6])
        made += f" and {len(event.made) - 6} more" if len(event.made) > 6 else ""
        operation = event.operation.removeprefix("aten::")
        yield (
            f"{event.index:>6} {event.total:>15,} {event.change:>+14,} {operation:<44} "
            f"{event.node:<34} {event.module:<44} {made}"
        ).rstrip()
