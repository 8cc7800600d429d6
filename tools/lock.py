"""Renew the pins: requirements/*.txt from pyproject.toml's extras, and package-lock.json.

Run inside .venv as `python -m tools.lock`. The files hold for every supported Python and system
(environment markers), carry the hash of every file, and name no registry.
"""

import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tools.console import ROOT, BuildError, run, say, step
from tools.environment import REQUIREMENTS, Group
from tools.files import write_atomically
from tools.node import find_node

HEADER = "# Written by `python3 build.py lock` from pyproject.toml; not to be edited.\n"
SHARED_WITH_CUDA = re.compile(r"(nvidia-|cuda-|triton)")

# PyTorch's own build for CPUs, which its index offers as 2.13.0+cpu and which is a tenth of the
# size: whoever has pointed pip at it gets it. The registry's files are in the lock by themselves.
TORCH_CPU_BUILDS = {
    "2.13.0": ("6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",),  # cp311-manylinux_2_28_x86_64
}

EXTRAS = {
    Group.SITE: ("site",),
    Group.TEST: ("test",),
    Group.CHECK: ("check",),
    Group.NODE: ("node",),
    Group.TRAINING: ("training", "validation"),
}


def main() -> None:
    """Write all files anew."""
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
        _write(Group.TORCH_CUDA, [b for b in torch if SHARED_WITH_CUDA.match(b)])
        _write(
            Group.TORCH,
            [_with_cpu_builds(b) for b in torch if not SHARED_WITH_CUDA.match(b)],
        )
    npm = find_node().npm
    with step("Renewing package-lock.json"):
        run([*npm, "install", "--package-lock-only", "--loglevel=error"], "npm found no solution.")


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
    return block.startswith("torch==") or SHARED_WITH_CUDA.match(block) is not None


def _with_cpu_builds(block: str) -> str:
    """The block of torch with the hashes of the builds for CPUs added; any other as it is."""
    found = re.match(r"torch==([\d.]+)", block)
    if found is None:
        return block
    hashes = TORCH_CPU_BUILDS.get(found[1])
    if hashes is None:
        raise BuildError(f"torch = {found[1]}: TORCH_CPU_BUILDS in tools/lock.py lacks its hashes.")
    return block.rstrip("\n") + "".join(f" \\\n    --hash=sha256:{h}" for h in hashes) + "\n"


def _write(group: Group, blocks: Iterable[str]) -> None:
    write_atomically(REQUIREMENTS / f"{group}.txt", (HEADER + "".join(blocks)).encode())


if __name__ == "__main__":
    try:
        main()
    except BuildError as error:
        say(f"build.py: {error}")
        sys.exit(1)
