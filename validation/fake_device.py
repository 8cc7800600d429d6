"""A fake GPU: PyTorch's fake tensors on a 'cuda' device that a CPU-only build does not have.

`load` must run before the first ``import torch`` of the process.
"""

import ctypes
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

SOURCE: Final = Path(__file__).with_name("guard.cpp")


class UnavailableError(RuntimeError):
    """Why there can be no fake GPU in this process."""


def load() -> None:
    """Compile the idle GPU's library at first use and load it into this process.

    Raises:
        UnavailableError: when PyTorch was imported before, is missing, or there is no C++ compiler.
    """
    if "torch" in sys.modules:
        raise UnavailableError("the fake GPU must be loaded before torch is imported")
    specification = find_spec("torch")
    if specification is None or specification.origin is None:
        raise UnavailableError("the fake GPU needs PyTorch, which is not installed")
    ctypes.CDLL(str(_compile(Path(specification.origin).parent)), ctypes.RTLD_GLOBAL)


def _compile(torch_folder: Path) -> Path:
    """The library's path; compiled once for each PyTorch version and source."""
    digest = hashlib.sha256(SOURCE.read_bytes() + version("torch").encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "training-together"
    library = cache / f"fake_gpu_{digest}.so"
    if library.exists():
        return library
    cache.mkdir(parents=True, exist_ok=True)
    include = torch_folder / "include"
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        built = Path(folder) / library.name
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-shared", "-fPIC", str(SOURCE)]
        command += ["-o", str(built), f"-I{include}", f"-I{include / 'torch/csrc/api/include'}"]
        command += [f"-L{torch_folder / 'lib'}", f"-Wl,-rpath,{torch_folder / 'lib'}"]
        command += ["-ltorch_cpu", "-lc10"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise UnavailableError(f"the fake GPU needs a C++ compiler: {command[0]}") from None
        except subprocess.CalledProcessError as error:
            raise UnavailableError(
                f"the fake GPU did not compile: {error.stderr[-2000:]}"
            ) from None
        built.replace(library)
    return library


@contextmanager
def fake_gpu() -> Iterator[None]:
    """Run the block with fake tensors; every kernel is skipped, every shape is real."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    class FakeGpu(FakeTensorMode):
        """Fake tensors, of which every value that Python asks for is one."""

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # nothing is compiled here, and the guard against it costs time

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is torch.ops.aten._local_scalar_dense.default:
                return 1.0 if args[0].is_floating_point() else 1
            if func is torch.ops.aten._fused_sgd_.default:
                return None  # in place, and PyTorch has no fake version of it
            return super().__torch_dispatch__(func, types, args, kwargs)

    with ExitStack() as stack:
        for target, replacement in _replacements():
            stack.enter_context(patch(target, replacement))
        stack.enter_context(FakeGpu())
        yield


def _replacements() -> list[tuple[str, Callable[..., Any]]]:
    """What would read a fake tensor's values or ask for a real GPU, and what stands in for it."""
    import torch

    always_true: Callable[..., bool] = lambda *_, **__: True  # noqa: E731
    replacements: list[tuple[str, Callable[..., Any]]] = [
        # autocast switches itself off with a mere warning when it sees no GPU
        ("torch.cuda.amp.common.amp_definitely_not_available", lambda: False),
        ("torch.cuda.is_bf16_supported", always_true),
        # a fake weight has no value to begin with
        ("transformers.PreTrainedModel.initialize_weights", lambda _: None),
        # transformers takes fake tensors for tracing and then always builds a causal mask
        ("transformers.masking_utils.find_packed_sequence_indices", lambda _: None),
    ]
    if find_spec("bitsandbytes"):
        replacements += [
            ("bitsandbytes.functional.create_dynamic_map", lambda *_, **__: torch.empty(256)),
            ("bitsandbytes.functional.optimizer_update_32bit", lambda *_, **__: None),
            ("bitsandbytes.functional.optimizer_update_8bit_blockwise", lambda *_, **__: None),
            ("bitsandbytes.optim.optimizer.sync_gpu", lambda _: None),
        ]
    return replacements
