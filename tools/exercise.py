"""Run inside Pyodide by browser_python.mjs: what pages ask of `calculator`, and what that imports.

It imports nothing that `calculator` and Pyodide do not.
"""

import importlib
import io
import json
import sys
from contextlib import redirect_stderr

LARGE_REQUEST = {"id": 1, "method": "answer", "params": {"model": "no such model", "x": "y" * 99}}


def exercise(wanted: list[str]) -> list[str]:
    """Import the modules `wanted` and answer requests of every kind; what failed."""
    failed = []
    for name in wanted:
        try:
            importlib.import_module(name)
        except ImportError as error:
            failed.append(f"{name}: {error}")
    protocol = importlib.import_module("calculator.protocol")
    # Mistakes of a visitor and of ours are answered by code that runs at no other time.
    protocol._METHODS["fail"] = lambda _: 1 / 0
    requests = [{"id": 1, "method": method, "params": {}} for method in protocol._METHODS]
    with redirect_stderr(io.StringIO()) as trace:
        for text in (*map(json.dumps, [*requests, LARGE_REQUEST]), "{"):
            json.loads(protocol.handle(text))
    del protocol._METHODS["fail"]
    if "ZeroDivisionError" not in trace.getvalue():
        failed.append("the trace of a failing request was not written")
    return failed


# A file of each kind; the last does not fit.
FILES = {
    "run.yml": "base_model: gpt2-l\nmicro_batch_size: 1\n",
    "run.toml": "[training]\nlocal_batch_size = 1\n[model]\nflavor = '8B'\n",
    "run.py": "TrainingArguments(output_dir='out', per_device_train_batch_size=1)\n",
    "run.json": '{"output_dir": "out", "per_device_train_batch_size": 64}',
}


def exercise_readers() -> list[str]:
    """Read a file of every kind; what failed."""
    handle = importlib.import_module("calculator.protocol").handle
    failed = []
    for name, text in FILES.items():
        params = {"files": [{"name": name, "text": text}]}
        given = json.loads(handle(json.dumps({"id": 1, "method": "check", "params": params})))
        if given["kind"] != "result":
            failed.append(f"{name}: {given['error']['message']}")
    return failed


def imported() -> list[str]:
    """The modules that have been imported from the zip of Python's library."""
    library = next(path for path in sys.path if path.startswith("/lib/") and path.endswith(".zip"))
    origins = {
        name: getattr(getattr(module, "__spec__", None), "origin", None) or ""
        for name, module in list(sys.modules.items())
    }
    return sorted(name for name, origin in origins.items() if origin.startswith(f"{library}/"))
