"""Measure the grid: one row a configuration, from where the last run stopped."""

import gc
import time
from pathlib import Path
from typing import Final

from calculator.architecture import Architecture
from calculator.errors import one_line
from validation.configuration import Configuration
from validation.grid import grid
from validation.measure import measure
from validation.rows import FOLDER, Row, RowFile, is_stale, read_rows

LONGEST: Final = 200


def run(
    device: str,
    first: int,
    step: int,
    only_list: bool,
    kind: str | None = None,
    again: bool = False,
) -> None:
    """Measure every `step`-th configuration from the `first` that has no row of this oracle yet.

    `kind` names one model type. Configurations without any row come first, of those the quick ones.
    With `again` they are not the grid's, but those of an earlier oracle's rows.
    """
    every = earlier(device) if again else grid()
    chosen = [item for item in every if kind in (None, item.subject.kind)][first::step]
    if only_list:
        print("\n".join(item.command for item in chosen))
        return
    gc.freeze()  # what is loaded stays; only models are to be collected
    kinds = {item.subject.kind for item in chosen}
    files = {kind: RowFile(device, kind) for kind in kinds}

    def file_of(item: Configuration) -> RowFile:
        return files[item.subject.kind]

    left = [item for item in chosen if item not in file_of(item)]
    left.sort(key=lambda item: (file_of(item).has_stale(item), _operations(item)))
    for number, item in enumerate(left, 1):
        try:
            told = f"{_measure_into(file_of(item), item, device):.1f} s"
        except Exception as error:  # only the library knows that it cannot
            told = f"{type(error).__name__}: {one_line(str(error), LONGEST)}"
        print(f"{number}/{len(left)} {told} {item.command}", flush=True)


def earlier(device: str, folder: Path = FOLDER) -> list[Configuration]:
    """Configurations of the committed rows that an earlier oracle measured."""
    rows = filter(is_stale, read_rows(device, folder))
    return [Configuration.from_dict(row["configuration"]) for row in rows]


def _operations(configuration: Configuration) -> int:
    """Rough cost of a measurement."""
    shape, plan = configuration.subject.counted, configuration.asked
    layers = shape.layers + 2 * shape.decoder_layers if isinstance(shape, Architecture) else 1
    return layers * plan.accumulation


def keep(configuration: Configuration, device: str) -> Row:
    """Measure one configuration and write its row to the committed ones."""
    row = measure(configuration, device)
    RowFile(device, configuration.subject.kind).append(row)
    return row


def _measure_into(file: RowFile, configuration: Configuration, device: str) -> float:
    start = time.perf_counter()
    file.append(measure(configuration, device))
    gc.collect()
    return time.perf_counter() - start
