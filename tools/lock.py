"""Renew the pins: requirements/*.txt from pyproject.toml's extras, and package-lock.json.

Run inside .venv as `python -m tools.lock`. The files hold for every supported Python and system
(environment markers), carry the hash of every file, and name no registry.
"""

import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tools.console import ROOT, BuildError, run, step
from tools.environment import REQUIREMENTS, Group
from tools.files import write_atomically
from tools.node import find_node

HEADER = "# Written by `python3 build.py lock` from pyproject.toml; not to be edited.\n"

# PyTorch's own builds for CPUs, a tenth of the size of the registry's, by their file names.
TORCH_CPU_HASHES = {
    "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl": (
        "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"
    )
}

EXTRAS = {
    Group.UV: ("uv",),
    Group.SITE: ("site",),
    Group.TEST: ("test",),
    Group.CHECK: ("check",),
    Group.NODE: ("node",),
    Group.TRAINING: ("training", "validation"),
}


def main() -> None:
    """Write all files again."""
    with tempfile.TemporaryDirectory() as name, step("Resolving requirements"):
        everything = Path(name) / "everything.txt"
        every_extra = [extra for extras in EXTRAS.values() for extra in extras]
        everything.write_text("".join(_compiled(every_extra, None)), "utf-8")
        for group, extras in EXTRAS.items():
            blocks = _compiled(extras, everything)
            if group is Group.TRAINING:
                blocks = [block for block in blocks if not _belongs_to_torch(block)]
            _write(group, blocks)
        torch = _compiled([], everything, "torch")
        _write(Group.TORCH, torch)
        without_cuda = [block for block in torch if not _belongs_to_torch(block)]
        _write(Group.TORCH_CPU, [*without_cuda, _cpu_block(torch)])
    npm: list[str | Path] = [*find_node().npm, "install", "--package-lock-only", "--loglevel=error"]
    for folder in (ROOT, ROOT / "tools" / "lighthouse"):
        options = ["--omit-lockfile-registry-resolved", "--ignore-scripts"]
        with step(f"Renewing {(folder / 'package-lock.json').relative_to(ROOT)}"):
            run([*npm, *options], "npm found no solution.", folder=folder)


def _compiled(extras: Iterable[str], constraints: Path | None, only: str = "") -> list[str]:
    """One block of text a package: its pin, then its hashes."""
    command: list[str | Path] = [sys.executable, "-m", "uv", "pip", "compile", "--quiet"]
    command += ["--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-annotate", "--no-header"]
    command += [word for extra in extras for word in ("--extra", extra)]
    if constraints is not None:
        command += ["--constraint", constraints]
    with tempfile.TemporaryDirectory() as folder:
        source = ROOT / "pyproject.toml"
        if only:
            source = Path(folder) / "requirements.in"
            source.write_text(only, "utf-8")
        output = run([*command, source], "uv found no solution.")
    return re.findall(r"^[^\s#].*\n(?: .*\n)*", output, re.MULTILINE)


def _belongs_to_torch(block: str) -> bool:
    return block.startswith(("torch==", "triton==", "nvidia-", "cuda-"))


def _cpu_block(torch: Iterable[str]) -> str:
    """The pin of torch's build for CPUs, of the version that the registry's pin has."""
    version = next(block for block in torch if block.startswith("torch==")).split()[0][7:]
    hashes = [h for name, h in TORCH_CPU_HASHES.items() if name.startswith(f"torch-{version}+")]
    if not hashes:
        raise BuildError(f"torch = {version}: TORCH_CPU_HASHES in tools/lock.py lacks its files.")
    lines = [f"torch=={version}+cpu", *(f"--hash=sha256:{digits}" for digits in hashes)]
    return " \\\n    ".join(lines) + "\n"


def _write(group: Group, blocks: Iterable[str]) -> None:
    write_atomically(REQUIREMENTS / f"{group}.txt", (HEADER + "".join(blocks)).encode())


if __name__ == "__main__":
    try:
        main()
    except BuildError as error:
        sys.exit(f"build.py: {error}")
