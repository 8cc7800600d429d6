"""The page's scripts, asked in Node.js: one process for each program, as long as the tests run."""

import atexit
import base64
import functools
import json
import subprocess
from typing import Any

import numpy as np
import torch

from tools.console import ROOT
from tools.node import find_node

# Vectors travel as {"float32": base64}, since JSON would make them long.
FRAME = """
import { createInterface } from "node:readline";

const revive = (key, value) => {
  if (value?.float32 === undefined) return value;
  return new Float32Array(new Uint8Array(Buffer.from(value.float32, "base64")).buffer);
};
const pack = (key, value) => {
  if (!(value instanceof Float32Array)) return value;
  const { buffer, byteOffset, byteLength } = value;
  return { float32: Buffer.from(buffer, byteOffset, byteLength).toString("base64") };
};
for await (const line of createInterface({ input: process.stdin })) {
  const { name, given } = JSON.parse(line, revive);
  let told;
  try {
    told = { answer: await answers[name](given) };
  } catch (error) {
    told = { error: error.stack };
  }
  process.stdout.write(`${JSON.stringify(told, pack)}\\n`);
}
"""


class Scripts:
    """The functions that a program has in its object `answers`."""

    def __init__(self, program: str) -> None:
        self.program = program

    @functools.cached_property
    def _process(self) -> "subprocess.Popen[str]":
        command = [find_node().node, "--input-type=module", "--eval", self.program + FRAME]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)
        atexit.register(_end, process)
        return process

    def ask(self, name: str, **given: object) -> Any:
        """The answer of a function; tensors travel as vectors of 32 bits."""
        process = self._process
        process.stdin.write(json.dumps({"name": name, "given": given}, default=_pack) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, "Node.js ended: see what it wrote to the terminal"
        told = json.loads(line, object_hook=_revive)
        assert "error" not in told, told["error"]
        return told["answer"]


def _end(process: "subprocess.Popen[str]") -> None:
    with process:
        process.kill()


def _pack(value: object) -> object:
    assert isinstance(value, torch.Tensor)
    content = value.detach().flatten().float().numpy().astype("<f4").tobytes()
    return {"float32": base64.b64encode(content).decode()}


def _revive(value: dict[str, Any]) -> Any:
    if set(value) != {"float32"}:
        return value
    return torch.from_numpy(np.frombuffer(base64.b64decode(value["float32"]), "<f4").copy())
