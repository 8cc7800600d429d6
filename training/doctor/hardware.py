"""Folder, disk, memory, GPU and 8-bit library, compared with the recipe's needs."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.units import format_bytes
from training.doctor.findings import Finding, PointName, Verdict, fine, unchecked
from training.doctor.setup import Setup
from training.doctor.software import install_command
from training.run.recipes import LanguageSettings
from training.run.status import first_line
from training.volunteer import fitting
from training.volunteer.precision import Precision, choose_precision

if TYPE_CHECKING:
    import torch

SMI_SECONDS = 5.0
CAPTION_BYTES = 512  # caption, labels and their overhead in the file
TEXT_BYTES = 8192  # of a text, such as a page of the web
WSL_TOOLS = "/usr/lib/wsl/lib"  # where WSL puts the driver's programs, not always in PATH


def look_at_folder(setup: Setup) -> list[Finding]:
    """Check that the volunteer's folder is writable and not in use."""
    try:
        setup.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=setup.folder) as file:
            file.write(b"doctor")
    except OSError as error:
        cause = f"{setup.folder} cannot be written: {error.strerror or error}"
        fix = "name another folder with --folder"
        return [Finding(PointName.FOLDER, Verdict.PROBLEM, cause, fix)]
    if is_in_use(setup.folder):
        cause = f"a volunteer is already running in {setup.folder}"
        fix = "let it run, or give a second one on this machine its own --folder and --port"
        return [Finding(PointName.FOLDER, Verdict.WARNING, cause, fix)]
    return [fine(PointName.FOLDER, str(setup.folder))]


def is_in_use(folder: Path) -> bool:
    """True if a process holds the folder's lock (see `network.alone_in`)."""
    try:
        import fcntl
    except ImportError:
        return False
    lock = folder / "lock"
    if not lock.exists():
        return False
    with lock.open("r") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def look_at_disk(setup: Setup) -> list[Finding]:
    """Compare the free space with the files that a volunteer writes."""
    needed = disk_bytes(setup)
    free = shutil.disk_usage(_existing(setup.folder)).free
    counted = f"{format_bytes(needed)} for backup and checkpoint"
    if free < needed:
        cause = f"{format_bytes(free)} are free; a volunteer writes up to {counted}"
        fix = "free some space, or name a folder on another disk with --folder"
        return [Finding(PointName.DISK, Verdict.PROBLEM, cause, fix)]
    return [fine(PointName.DISK, f"{format_bytes(free)} free, up to {counted} needed")]


def disk_bytes(setup: Setup) -> int:
    """Space for a checkpoint and two backups: the old one stays until the new one is complete.

    A backup holds 32-bit parameters, two optimizer states for each, and the shuffle buffer of
    captions and two-byte codes, or of texts; a checkpoint holds the parameters.
    """
    recipe = setup.recipe
    parameters = estimate(fitting.make_architecture(recipe), Plan()).parameters
    model = recipe.model
    row = TEXT_BYTES
    if not isinstance(model, LanguageSettings):
        row = 2 * model.image_side**2 + CAPTION_BYTES
    buffer = recipe.data.shuffle_buffer * row
    backup = parameters * (4 + 2 * recipe.optimizer.state_bits // 8) + buffer
    return 2 * backup + 4 * parameters


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def look_at_memory(setup: Setup) -> list[Finding]:
    """Check with the calculator that a training step fits."""
    if "torch" in setup.broken_imports:
        return [unchecked(PointName.MEMORY, "torch")]
    device = _device()
    try:
        choice = fitting.choose_micro_batch(setup.recipe, device, setup.micro_batch)
    except InputError as error:
        fix = "close other programs, or join with another machine"
        if error.field == "micro_batch":
            return [Finding(PointName.MEMORY, Verdict.PROBLEM, str(error), "choose another value")]
        cause = f"{error.value} are free on this {fitting.word_of(device)}; it {error.rule}"
        return [Finding(PointName.MEMORY, Verdict.PROBLEM, cause, fix)]
    findings = [_judge_micro_batch(setup, device, choice.size)]
    if device.type == "cuda":
        findings.append(_judge_main_memory(setup, device, choice.size))
    return findings


def _judge_micro_batch(setup: Setup, device: "torch.device", size: int) -> Finding:
    scaled = choose_precision(device) is Precision.FLOAT16
    needed = fitting.step_bytes(setup.recipe, device, size, scaled)
    free = fitting.free_bytes(device)
    sequences = "1 sequence" if size == 1 else f"{size} sequences"
    cause = (
        f"a step on {sequences} at once needs {format_bytes(needed)} "
        f"of {format_bytes(free)} free on this {fitting.word_of(device)}"
    )
    if needed > free:
        fix = "choose a smaller --micro-batch, or leave it out to use as much as fits"
        return Finding(PointName.MEMORY, Verdict.PROBLEM, cause, fix)
    return fine(PointName.MEMORY, cause)


def _judge_main_memory(setup: Setup, device: "torch.device", size: int) -> Finding:
    """Check RAM as well, because with a GPU the optimizer's states are kept there."""
    import torch

    plan = fitting.make_plan(setup.recipe, device, size)
    report = estimate(fitting.make_architecture(setup.recipe), plan)
    free = fitting.free_bytes(torch.device("cpu"))
    cause = f"the optimizer needs {format_bytes(report.ram.total)} of {format_bytes(free)} free RAM"
    if report.ram.total > free:
        return Finding(PointName.MEMORY, Verdict.PROBLEM, cause, "close other programs")
    return fine(PointName.MEMORY, cause)


def look_at_gpu(setup: Setup) -> list[Finding]:
    """Check that PyTorch can use the GPU, if there is one."""
    if "torch" in setup.broken_imports:
        return [unchecked(PointName.GPU, "torch")]
    import torch

    driver = ask_driver()
    built_for = torch.version.cuda
    if torch.cuda.is_available():
        return [_try_gpu(f"{torch.cuda.get_device_name()}, PyTorch for CUDA {built_for}, {driver}")]
    if not driver:
        return [fine(PointName.GPU, "no NVIDIA GPU; the processor will compute")]
    if built_for is None:
        cause = f"PyTorch {torch.__version__} is a build without CUDA, but there is a GPU: {driver}"
        fix = f"install the build for CUDA: {install_command()} --force-reinstall"
    else:
        cause = f"PyTorch for CUDA {built_for} cannot use the GPU: {driver}"
        fix = (
            "update the driver to one that supports this CUDA version; in a container, start it "
            "with `--gpus all`"
        )
    return [Finding(PointName.GPU, Verdict.PROBLEM, cause, fix)]


def _try_gpu(found: str) -> Finding:
    import torch

    try:
        torch.ones(2, device="cuda").sum().item()
    except (
        RuntimeError
    ) as error:  # no code for this GPU's generation, or another program uses it exclusively
        cause = f"the GPU does not compute ({first_line(error)}): {found}"
        fix = "use a build of PyTorch for this GPU, or hide it with CUDA_VISIBLE_DEVICES="
        return Finding(PointName.GPU, Verdict.PROBLEM, cause, fix)
    precision = choose_precision(torch.device("cuda"))
    found += f"; computes in {precision}"
    if precision is Precision.FLOAT16:
        found += " with loss scaling, because it has no bfloat16 units"
    return fine(PointName.GPU, found)


def ask_driver() -> str:
    """The NVIDIA driver's description of the GPU and itself; empty if there is no GPU."""
    program = shutil.which("nvidia-smi", path=f"{os.environ.get('PATH', '')}:{WSL_TOOLS}")
    if program is None:
        return ""
    command = [program, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=SMI_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "nvidia-smi does not respond"
    lines = answer.stdout.strip().splitlines()
    if answer.returncode or not lines:
        return ""  # the program is there, but no GPU, as in images made for both
    name, _, version = lines[0].partition(", ")
    return f"{name} with driver {version}"


def look_at_eight_bits(setup: Setup) -> list[Finding]:
    """Quantize and restore a tensor with bitsandbytes: it may be off by half a gap of levels."""
    for name in ("torch", "bitsandbytes"):
        if name in setup.broken_imports:
            return [unchecked(PointName.EIGHT_BITS, name)]
    if setup.recipe.optimizer.state_bits != 8:
        return [fine(PointName.EIGHT_BITS, "not needed: the recipe keeps states in 32 bits")]
    fix = f"install the pinned version: {install_command()}"
    try:
        off, most = _round_trip(setup.recipe.optimizer.block_size)
    except Exception as error:  # the library raises any error of its loader
        cause = f"bitsandbytes cannot compute here ({_telling_line(error)})"
        return [Finding(PointName.EIGHT_BITS, Verdict.PROBLEM, cause, fix)]
    if off > 1.1 * most:
        cause = f"bitsandbytes restores 8-bit values from -1 to 1 with errors of up to {off:.2g}"
        return [Finding(PointName.EIGHT_BITS, Verdict.PROBLEM, cause, fix)]
    return [fine(PointName.EIGHT_BITS, "bitsandbytes rounds as accurately as it should")]


def _round_trip(block_size: int) -> tuple[float, float]:
    """The largest error of bitsandbytes for values in [-1, 1], and half the largest gap."""
    import torch

    from training.optimizer import lamb

    values = torch.linspace(-1, 1, 4 * block_size)
    codes = lamb.quantise(values, signed=True, block_size=block_size)
    restored = lamb.dequantise(codes, signed=True, block_size=block_size)
    gaps = lamb.dynamic_levels(signed=True).diff()
    return float((restored - values).abs().max()), float(gaps.max()) / 2


def _telling_line(error: Exception) -> str:
    """The line that names the cause in bitsandbytes' long messages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    original = [line for line in lines if line.startswith("Original error:")]
    return (original or lines or [type(error).__name__])[0]


def _device() -> "torch.device":
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
