"""Measure the grid: one row a configuration, from where the last run stopped."""

import gc
import time

from validation.configuration import Configuration
from validation.grid import grid
from validation.measure import measure
from validation.rows import RowFile


def run(device: str, first: int, step: int, only_list: bool) -> None:
    """Measure every `step`-th configuration from the `first` that has no row of this oracle yet.

    Configurations without any row come first, and of those the quick ones.
    """
    chosen = grid()[first::step]
    if only_list:
        print("\n".join(item.command for item in chosen))
        return
    gc.freeze()  # what is loaded stays; only models are to be collected
    families = {item.architecture.family.value for item in chosen}
    files = {family: RowFile(device, family) for family in families}

    def file_of(item: Configuration) -> RowFile:
        return files[item.architecture.family.value]

    left = [item for item in chosen if item not in file_of(item)]
    left.sort(key=lambda item: (file_of(item).has_stale(item), _operations(item)))
    for number, item in enumerate(left, 1):
        seconds = _measure_into(file_of(item), item, device)
        print(f"{number}/{len(left)} {seconds:.1f} s {item.command}", flush=True)


def _operations(configuration: Configuration) -> int:
    """How long a measurement takes, roughly."""
    shape, plan = configuration.architecture, configuration.resolved
    return (shape.layers + 2 * shape.decoder_layers) * plan.accumulation


def _measure_into(file: RowFile, configuration: Configuration, device: str) -> float:
    start = time.perf_counter()
    file.append(measure(configuration, device))
    gc.collect()
    return time.perf_counter() - start
