"""Measure the grid: one row a configuration, from where the last run stopped."""

import gc
import time

from validation.configuration import Configuration
from validation.grid import grid
from validation.measure import measure
from validation.rows import RowFile


def run(device: str, first: int, step: int, only_list: bool) -> None:
    """Measure every `step`-th configuration from the `first` that has no row yet."""
    configurations = grid()
    chosen = configurations[first::step]
    if only_list:
        print("\n".join(item.command for item in chosen))
        return
    gc.freeze()  # what is loaded stays; only models are to be collected
    files: dict[str, RowFile] = {}
    for number, configuration in enumerate(chosen, 1):
        family = configuration.architecture.family.value
        file = files.setdefault(family, RowFile(device, family))
        if configuration not in file:
            seconds = _measure_into(file, configuration, device)
            print(f"{number}/{len(chosen)} {seconds:.1f} s {configuration.command}", flush=True)


def _measure_into(file: RowFile, configuration: Configuration, device: str) -> float:
    start = time.perf_counter()
    file.append(measure(configuration, device))
    gc.collect()
    return time.perf_counter() - start
