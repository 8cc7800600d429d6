"""A GPU that computes nothing and counts every byte, and the log that it writes.

`load` must run before the first ``import torch`` of the process. It compiles `counting.cpp`, which
also puts a counter under PyTorch's CPU allocator, so real memory on the CPU writes the same log.
"""

import ctypes
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import IntEnum
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from validation.audit import TABLE, scratch_rules

if TYPE_CHECKING:
    import torch

SOURCES: Final = tuple(Path(__file__).with_name(name) for name in ("counting.cpp", "scratch.h"))
AMPERE: Final = (8, 0)  # the compute capability whose choice of kernels is counted by default
RAM_DEVICE: Final = "cuda:1"  # a second counting device stands for the RAM beside the GPU

_library: ctypes.CDLL | None = None


class UnavailableError(RuntimeError):
    """Counting is not possible in this process; the message says why."""


def load() -> None:
    """Compile the counting GPU at first use and load it into this process.

    Raises:
        UnavailableError: when PyTorch was imported before, is missing, or there is no C++ compiler.
    """
    global _library
    if _library is not None:
        return
    if "torch" in sys.modules:
        raise UnavailableError("the counting device must be loaded before torch is imported")
    specification = find_spec("torch")
    if specification is None or specification.origin is None:
        raise UnavailableError("the counting device needs PyTorch, which is not installed")
    path = _compile(Path(specification.origin).parent)
    try:
        _library = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise UnavailableError(f"the counting device did not load: {error}") from None
    _library.counting_entries.restype = ctypes.POINTER(_Entry)
    _library.counting_text.restype = ctypes.c_char_p
    for name in ("size", "block", "blocks", "block_bytes", "sequence"):
        getattr(_library, f"counting_{name}").restype = ctypes.c_int64
    for name in ("block", "block_bytes"):
        getattr(_library, f"counting_{name}").argtypes = [ctypes.c_void_p]
    _library.counting_resize.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    _library.counting_resize.restype = None


def _compile(torch_folder: Path) -> Path:
    """The library's path; compiled at first use, see `cached_library`."""
    library = cached_library(torch_folder)
    if library.exists():
        return library
    cache = library.parent
    cache.mkdir(parents=True, exist_ok=True)
    include = torch_folder / "include"
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        names = "".join(f'"{name}",\n' for name in cuda_operations(torch_folder.parent))
        Path(folder, "kernels.inc").write_text(names)
        rules = (f'{{"aten::{name}", &{rule}}},\n' for name, rule in scratch_rules().items())
        Path(folder, "scratch.inc").write_text("".join(rules))
        built = Path(folder) / library.name
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-shared", "-fPIC"]
        command += ["-DAT_PER_OPERATOR_HEADERS"]  # else each header brings those of all operations
        command += [str(SOURCES[0]), "-o", str(built), f"-I{folder}"]
        command += [f"-I{include}", f"-I{include / 'torch/csrc/api/include'}"]
        command += [f"-L{torch_folder / 'lib'}", f"-Wl,-rpath,{torch_folder / 'lib'}"]
        command += ["-ltorch_cpu", "-lc10"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise UnavailableError(
                f"the counting device needs a C++ compiler: {command[0]}"
            ) from None
        except subprocess.CalledProcessError as error:
            raise UnavailableError(
                f"the counting device did not compile: {error.stderr[-2000:]}"
            ) from None
        built.replace(library)
    return library


def cached_library(torch_folder: Path) -> Path:
    """Path of the library: one per source, PyTorch version and folder that it links to."""
    sources = b"".join(path.read_bytes() for path in (*SOURCES, TABLE, Path(__file__)))
    # the library finds PyTorch by its path: one made in an environment now gone cannot be loaded
    made_for = f"{version('torch')} {torch_folder}".encode()
    digest = hashlib.sha256(sources + made_for).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "training-together" / f"counting_{digest}.so"


# Operations that `counting.cpp` answers one by one.
_OWN: Final = frozenset(
    (
        *("empty.memory_format", "empty_strided", "resize_", "copy_", "_local_scalar_dense"),
        *("equal", "cudnn_convolution", "_conv_depthwise2d", "_grouped_mm"),
        "mm.dtype_out",
        "linalg_solve_triangular",
    )
)
_OTHER_CUDA: Final = re.compile(r"(SparseCsr|Sparse|Quantized|NestedTensor)CUDA")


def cuda_operations(packages: Path) -> list[str]:
    """Names of the operations for which PyTorch's CUDA build has a kernel, from its own list."""
    listed = packages / "torchgen/packaged/ATen/native/native_functions.yaml"
    found = []
    for block in re.split(r"\n(?=- func: )", listed.read_text())[1:]:
        name = block.partition("(")[0].removeprefix("- func: ")
        dispatch = re.search(r"\n  dispatch:\n((?:    .*\n?)+)", block)
        lines = dispatch.group(1).splitlines() if dispatch else []
        keys = " ".join(line.partition(":")[0] for line in lines)
        if "CUDA" in _OTHER_CUDA.sub("", keys) or "structured_delegate" in block:
            found.append(name)
    return [name for name in found if name not in _OWN]


class Place(IntEnum):
    """Location of bytes: the counting GPU, the RAM beside it, or this machine's memory."""

    GPU = 0
    RAM = 1
    CPU = 2


class _Entry(ctypes.Structure):
    _fields_ = (
        ("block", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("other", ctypes.c_int64),
        ("sequence", ctypes.c_int64),
        ("place", ctypes.c_int32),
        ("operation", ctypes.c_int32),
        ("node", ctypes.c_int32),
        ("module", ctypes.c_int32),
        ("shape", ctypes.c_int32),
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """A birth (`bytes` above 0), a death (below), or a cast (0) from block `other` into `block`.

    `operation` and `module` made the bytes, `node` is the step of autograd's backward pass that was
    running and `sequence` its number, else -1; `shape` is a type and sizes, where they are known.
    """

    block: int
    bytes: int
    other: int
    sequence: int
    place: Place
    operation: str
    node: str
    module: str
    shape: str


class Log:
    """The library's log of births and deaths; one for the process."""

    def __init__(self) -> None:
        assert _library is not None, "the counting device is not loaded"
        self._library = _library
        self._texts: dict[int, str] = {}
        self.modules: list[tuple[int, str]] = []

    def start(self) -> None:
        """Forget what was written, and write from now on."""
        self.modules = [(-1, "")]
        self._library.counting_module(0)
        self._library.counting_start()

    def stop(self) -> None:
        """Write no more."""
        self._library.counting_stop()

    @property
    def size(self) -> int:
        """Entries so far."""
        return int(self._library.counting_size())

    @property
    def blocks(self) -> int:
        """The number of the newest block."""
        return int(self._library.counting_blocks())

    def block(self, tensor: "torch.Tensor") -> int:
        """The block that a tensor lies in; 0 where it has no bytes."""
        return int(self._library.counting_block(tensor.untyped_storage().data_ptr()))

    def bytes(self, tensor: "torch.Tensor") -> int:
        """Bytes that were asked for when the tensor's block was made."""
        return int(self._library.counting_block_bytes(tensor.untyped_storage().data_ptr()))

    def enter_module(self, path: str) -> None:
        """Bytes born from now on belong to this module; empty outside of the model."""
        self.modules.append((int(self._library.counting_sequence()), path))
        self._library.counting_module(self._library.counting_text_id(path.encode()))

    def alive(self) -> dict[int, tuple[int, Place]]:
        """Bytes and place of every block that lives now."""
        count = ctypes.c_int64(self._library.counting_alive(None))
        found = (_Entry * count.value)()
        self._library.counting_alive(found)
        return {item.block: (item.bytes, Place(item.place)) for item in found}

    def entries(self) -> list[Entry]:
        """All entries since `start`."""
        raw = self._library.counting_entries()
        text = self._text
        return [
            Entry(
                item.block,
                item.bytes,
                item.other,
                item.sequence,
                Place(item.place),
                text(item.operation),
                text(item.node),
                text(item.module),
                text(item.shape),
            )
            for item in raw[: self.size]
        ]

    def _text(self, number: int) -> str:
        if number not in self._texts:
            self._texts[number] = self._library.counting_text(number).decode()
        return self._texts[number]


def resize(storage: "torch.UntypedStorage", size: int) -> None:
    """Give a storage on the counting GPU so many bytes in the place of its own."""
    assert _library is not None, "the counting device is not loaded"
    _library.counting_resize(storage._cdata, size)


@contextmanager
def counting_gpu(capability: tuple[int, int] = AMPERE) -> Iterator[None]:
    """Run the block on the counting GPU; no kernel runs, every shape is real.

    Attention kernels are those that PyTorch picks on a card of this compute capability.
    """
    assert _library is not None, "the counting device is not loaded"
    _library.counting_capability(10 * capability[0] + capability[1])
    with ExitStack() as stack:
        for target, replacement in _replacements(capability):
            stack.enter_context(patch(target, replacement))
        yield


def _replacements(capability: tuple[int, int]) -> list[tuple[str, Callable[..., Any]]]:
    """Replacements for functions that read a tensor's values or need a real GPU."""
    import torch

    always_true: Callable[..., bool] = lambda *_, **__: True  # noqa: E731
    replacements: list[tuple[str, Callable[..., Any]]] = [
        ("torch.cuda._lazy_init", lambda: None),
        # autocast switches itself off with a mere warning when it sees no GPU
        ("torch.cuda.amp.common.amp_definitely_not_available", lambda: False),
        ("torch.cuda.is_bf16_supported", always_true),
        ("torch.cuda.get_device_capability", lambda *_: capability),
        # the weights have no values
        ("transformers.PreTrainedModel.initialize_weights", lambda _: None),
    ]
    if find_spec("bitsandbytes"):
        replacements += [
            ("bitsandbytes.functional.create_dynamic_map", lambda *_, **__: torch.empty(256)),
            ("bitsandbytes.functional.optimizer_update_32bit", lambda *_, **__: None),
            ("bitsandbytes.functional.optimizer_update_8bit_blockwise", lambda *_, **__: None),
            ("bitsandbytes.optim.optimizer.sync_gpu", lambda _: None),
        ]
    return replacements
