"""The scripts of 'A swarm in your tab', asked in Node.js."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tools.node import find_node

PROGRAM = Path(__file__).with_name("asked.mjs")


def ask(name: str, **given: object) -> Any:
    """The answer of one function of `asked.mjs`; tensors travel as vectors of 32 bits."""
    request = json.dumps({"name": name, "given": given}, default=_pack)
    done = subprocess.run(
        [find_node().node, PROGRAM], input=request, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, object_hook=_revive)


def _pack(value: object) -> object:
    assert isinstance(value, torch.Tensor)
    content = value.detach().flatten().float().numpy().astype("<f4").tobytes()
    return {"float32": base64.b64encode(content).decode()}


def _revive(value: dict[str, Any]) -> Any:
    if set(value) != {"float32"}:
        return value
    return torch.from_numpy(np.frombuffer(base64.b64decode(value["float32"]), "<f4").copy())
