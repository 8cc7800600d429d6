"""Times of `fit` on all GPUs. The same text runs in CPython and, in the browser, in Pyodide.

It imports nothing from outside the standard library and `calculator`.
"""

import json
import time

from calculator.catalog import groups
from calculator.plan import Plan
from calculator.planner.verdict import fits_as_json


def measure() -> str:
    """The seconds of the first `fit` of every model of the catalog, by name, as JSON.

    The first of a type also loads its code. Nothing is asked twice, so no answer is remembered.
    """
    models = [model for members in groups().values() for model in members]
    times = {}
    for model in models:
        began = time.perf_counter()
        fits_as_json(model, Plan())
        times[model.name] = time.perf_counter() - began
    return json.dumps(times)
