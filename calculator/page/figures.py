"""Figures and words of an answer as the page shows them: texts by their dotted paths."""

from collections.abc import Iterator, Mapping
from typing import Any

from calculator.units import format_bytes, format_count


def figures(value: Mapping[str, Any]) -> dict[str, str]:
    """Every figure and word that the page shows, as text by its dotted path in the answer.

    Sizes also stand under ``exact.`` to the byte.
    """
    texts: dict[str, str] = {}
    for path, leaf in _leaves(value):
        match leaf:
            case bool() | None:
                continue
            case int() if path.endswith("parameters"):
                texts[path] = format_count(leaf)
            case int():
                texts[path] = format_bytes(leaf)
                texts[f"exact.{path}"] = f"{leaf:,} B"
            case str():
                texts[path] = leaf
    return texts


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Figures that the page shows as text; it draws a phase's parts only by their bytes."""
    for side in ("report", "baseline"):
        for name in ("parameters", "trainable_parameters", "gpu", "transfer", "paged"):
            yield from _walk(value[side][name], f"{side}.{name}")
        yield f"{side}.ram.peak", value[side]["ram"]["peak"]
    for number, phase in enumerate(value["report"]["phases"]):
        yield f"report.phases.{number}.gpu", phase["gpu"]
    for name in ("title", "preset", "time", "training", "evidence"):
        yield name, value[name]
    for name in ("savings", "gpu", "verdict", "monitor", "beside"):
        yield from _walk(value[name], name)


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _walk(item, f"{path}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _walk(item, f"{path}.{number}")
    else:
        yield path, value
