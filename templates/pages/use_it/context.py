"""Data for 'Use it in your project': what the tests run."""

from typing import Any, Final

from calculator.catalog import find_gpu, find_model
from calculator.doors.answer import answer, describe
from calculator.doors.file import parse_file
from calculator.doors.formats import TABLES, read
from calculator.doors.settle import settle
from templates.pieces.commands import START_ENVIRONMENT, download_words
from tools.source import find_source

COMMANDS: Final = (
    "transformer-memory check run.yml --gpu rtx-4090",
    "transformer-memory check accelerate.yaml deepspeed.json run.yml --gpu 80GiB --gpus 8",
    "transformer-memory check train.py --gpu t4 --json",
    "transformer-memory check run.yml --gpu a100-40 --markdown",
)
# a file in axolotl's keys, of our own making
FILE: Final = """\
base_model: Qwen/Qwen2.5-7B-Instruct
adapter: lora
lora_r: 16
lora_target_linear: true
datasets:
  - path: our/texts
    type: completion
sequence_len: 2048
micro_batch_size: 4  # per GPU
gradient_accumulation_steps: 2
optimizer: adamw_torch_fused
learning_rate: 0.0001
bf16: auto
gradient_checkpointing: true
"""
PYTHON: Final = """\
from calculator.catalog import find_model
from calculator.doors.check import check_files
from calculator.estimate import estimate
from calculator.plan import Plan

for answer in check_files(["run.yml"], "rtx-4090"):
    print(answer.status, answer.verdict)

report = estimate(find_model("Qwen/Qwen2.5-7B"), Plan(lora=16, quantization="nf4"))
print(report.gpu.total)"""
ACTION: Final = """\
jobs:
  memory:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: OWNER/REPOSITORY@main
        with:
          files: configs/run.yml
          gpu: rtx-4090"""
HOOK: Final = """\
repos:
  - repo: https://github.com/OWNER/REPOSITORY
    rev: main
    hooks:
      - id: transformer-memory
        files: ^configs/
        args: [--gpu, rtx-4090]"""
_KINDS: Final = {
    "torchtitan": "TOML",
    "DeepSpeed": "JSON",
    "ms-swift": "YAML, shell scripts",
    "TRL": "YAML, JSON, Python, shell scripts",
    "transformers": "YAML, JSON, Python, shell scripts",
}


def context() -> dict[str, Any]:
    """Commands, programs and formats."""
    source = find_source()
    run = settle([read(parse_file("run.yml", FILE))], {})
    return {
        "install": "\n".join((*START_ENVIRONMENT, source.install("files"))),
        "download": download_words(source),
        "commands": "\n".join(COMMANDS),
        "file": FILE.rstrip(),
        "answer": describe(answer(run, find_model, find_gpu("rtx-4090"), {})),
        "python": PYTHON,
        "action": ACTION,
        "hook": HOOK,
        "formats": [(table.title, _KINDS.get(table.title, "YAML")) for table in TABLES],
    }
