"""Times of the calculator's calls. The same text runs in CPython and, in the browser, in Pyodide.

It imports nothing from outside the standard library and `calculator`.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator

from calculator.catalog import MODELS, find_model
from calculator.curve import curve
from calculator.estimate import _recorded_parts, estimate
from calculator.peaks.curve import _record
from calculator.peaks.trace import _known, record
from calculator.plan import Plan
from calculator.protocol import handle
from calculator.reserved import reserved

ESTIMATED = ("bert-base", "t5-11b", "gpt2-l", "gpt3-175b", "dalle-together")
ANSWERED = "gpt2-l"
PIPELINED = {"pipeline_parallel": 4, "pipeline_schedule": "interleaved", "pipeline_stages": 2}
MICRO_BATCHES = (8, 64)
# of 32 layers: plans whose reserved bytes are computed
RESERVED = {
    "full": {"precision": "half"},
    "checkpointed": {"checkpointing": "full"},
    "QLoRA": {"checkpointing": "full", "lora": 16, "quantization": "nf4"},
}
NEW = (*ESTIMATED, "meta-llama/Llama-3.1-8B", "google/gemma-4-E2B")


def batch_sizes() -> Iterator[int]:
    """Ever other batch sizes, so that nothing can be answered from a cache of results."""
    return itertools.cycle(range(1, 60_000))


def seconds_per_call(call: Callable[[int], object], rounds: int = 15) -> float:
    """The fastest of several rounds: what else the machine does only ever adds time.

    A round lasts 20 ms or more, since a browser's clock ticks in tenths of a millisecond.
    """
    sizes = batch_sizes()
    calls = 1
    while _elapsed(call, sizes, calls) < 0.02:
        calls *= 2
    return min(_elapsed(call, sizes, calls) / calls for _ in range(rounds))


def _elapsed(call: Callable[[int], object], sizes: Iterator[int], calls: int) -> float:
    began = time.perf_counter()
    for size in itertools.islice(sizes, calls):
        call(size)
    return time.perf_counter() - began


def seconds_of_a_new_structure(name: str, rounds: int = 5) -> float:
    """The fastest of several estimates of a model whose step has not been recorded."""
    model = find_model(name)
    estimate(model)  # loads the type
    times = []
    for _ in range(rounds):
        for cache in (record, _known, _recorded_parts):
            cache.cache_clear()
        began = time.perf_counter()
        estimate(model)
        times.append(time.perf_counter() - began)
    return min(times)


def seconds_of_a_schedule(name: str, micro_batches: int, is_new: bool, rounds: int = 5) -> float:
    """The fastest of several estimates of a pipeline, of which only the schedule may be new."""
    model = find_model(name)
    plan = Plan(**PIPELINED, accumulation=micro_batches)  # type: ignore[arg-type]
    estimate(model, plan)
    times = []
    for _ in range(rounds):
        for cache in (record, _recorded_parts, *([_known] if is_new else [])):
            cache.cache_clear()
        began = time.perf_counter()
        estimate(model, plan)
        times.append(time.perf_counter() - began)
    return min(times)


def seconds_of_a_curve(name: str, micro_batches: int, rounds: int = 3) -> float:
    """Seconds of a pipeline's memory curve with nothing cached: the fastest of some rounds."""
    model = find_model(name)
    plan = Plan(**PIPELINED, accumulation=micro_batches)  # type: ignore[arg-type]
    times = []
    for _ in range(rounds):
        _record.cache_clear()
        began = time.perf_counter()
        curve(model, plan, most=400)
        times.append(time.perf_counter() - began)
    return min(times)


def request(batch_size: int) -> str:
    """The page's request when its slider moves."""
    params = {"model": ANSWERED, "batch_size": str(batch_size)}
    return json.dumps({"id": 1, "method": "answer", "params": params})


def measure() -> str:
    """The seconds of each call, by name, as JSON."""
    times = {
        f"estimate {name}": seconds_per_call(
            lambda size, model=MODELS[name]: estimate(model, Plan(batch_size=size))  # type: ignore[misc]
        )
        for name in ESTIMATED
    }
    times |= {f"first estimate {name}": seconds_of_a_new_structure(name) for name in NEW}
    for count in MICRO_BATCHES:
        words = f"{ANSWERED} in a pipeline, {count} micro-batches"
        times[f"first estimate of {words}"] = seconds_of_a_schedule(ANSWERED, count, is_new=True)
        times[f"new schedule for {words}"] = seconds_of_a_schedule(ANSWERED, count, is_new=False)
        times[f"curve of {words}"] = seconds_of_a_curve(ANSWERED, count)
    llama = find_model("meta-llama/Llama-3.1-8B")
    times |= {
        f"reserved {name}": seconds_per_call(
            lambda size, options=options: reserved(llama, Plan(batch_size=size, **options)),  # type: ignore[misc]
            rounds=5,
        )
        for name, options in RESERVED.items()
    }
    times[f"answer {ANSWERED}, text to text"] = seconds_per_call(lambda size: handle(request(size)))
    return json.dumps(times)
