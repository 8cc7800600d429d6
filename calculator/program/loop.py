"""The part of a program that trains: micro-batches, their gradients, and the update."""

from typing import Final

from calculator.architecture import Architecture
from calculator.plan import Attention, DataParallel, Loop, Plan, Precision
from calculator.program.divide import in_context
from calculator.program.model import half_type, has_own_flash
from calculator.program.optimizer import update_lines
from calculator.program.pipeline import sum_tied
from calculator.program.text import TORCH, Import, Piece, indented

STEPS: Final = 3
KERNELS: Final = {
    Attention.FLASH: "FLASH_ATTENTION",
    Attention.EFFICIENT: "EFFICIENT_ATTENTION",
    Attention.MATH: "MATH",
}
DISTRIBUTED: Final = ("torch.distributed", "")


def start_processes(plan: Plan) -> Piece:
    """One process for each GPU; those that share layers begin with the same random numbers."""
    if plan.all_gpus == 1:
        return Piece()
    lines = [
        'torch.distributed.init_process_group("nccl")',
        'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
    ]
    if plan.divides_layers:
        lines.append("torch.manual_seed(0)  # GPUs that divide layers begin alike")
    return Piece(tuple(lines), (("os", ""), DISTRIBUTED))


def launch_words(plan: Plan) -> str:
    """The command that starts the processes, on machines of eight GPUs where there are more."""
    nodes, rest = divmod(plan.all_gpus, 8)
    if plan.all_gpus <= 8 or rest:
        return f"torchrun --nproc-per-node={plan.all_gpus} train.py"
    return f"torchrun --nnodes={nodes} --nproc-per-node=8 --rdzv-endpoint=HOST:29500 train.py"


def wrap(plan: Plan) -> Piece:
    """DistributedDataParallel around the model."""
    if plan.replicas == 1 or plan.is_sharded:
        return Piece()
    view = plan.data_parallel is DataParallel.DDP_VIEW
    words = ", gradient_as_bucket_view=True" if view else ""
    return Piece(
        (f"model = DistributedDataParallel(model{words})",),
        (("torch.nn.parallel", "DistributedDataParallel"),),
    )


def train(architecture: Architecture, plan: Plan) -> Piece:
    """Some steps, and their peak: the first has no states yet, so it is that of all others."""
    imports: list[Import] = [TORCH]
    body = [*_begin(plan), *_micro_steps(plan), *update_lines(plan)]
    if plan.loop is Loop.FUNCTION:
        body.append("del outputs  # as the end of a function does")
    lines = [f"for step in range({STEPS}):", *indented(body)]
    lines, more = kernel_context(architecture, plan, lines)
    lines, divided = in_context(plan, lines)
    imports += [*more, *divided]
    if plan.accumulation > 1 and _reduces(plan) and plan.pipeline_parallel == 1:
        imports.append(("contextlib", "nullcontext"))
    lines.append('print(f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")')
    if plan.all_gpus > 1:
        lines.append("torch.distributed.destroy_process_group()")
    return Piece(tuple(lines), tuple(imports))


def _begin(plan: Plan) -> list[str]:
    """DDP rearranges its buckets in its second step, which then has both."""
    if not _reduces(plan):
        return []
    return [
        "if step == 2:  # DDP has arranged its buckets",
        "    torch.cuda.reset_peak_memory_stats()",
    ]


def kernel_context(
    architecture: Architecture, plan: Plan, lines: list[str]
) -> tuple[list[str], list[Import]]:
    """Lines under the kernel of sdpa that the plan names, if any, and the imports for it."""
    if plan.attention not in KERNELS or has_own_flash(architecture, plan):
        return lines, []
    names = ("SDPBackend", "sdpa_kernel")
    backend = f"SDPBackend.{KERNELS[plan.attention]}"
    inside = [f"with sdpa_kernel({backend}):", *indented(lines)]
    return inside, [("torch.nn.attention", name) for name in names]


def _reduces(plan: Plan) -> bool:
    """True if gradients are reduced after the last micro-step only, which has to be said."""
    return plan.replicas > 1 and not plan.is_sharded


def _micro_steps(plan: Plan) -> list[str]:
    if plan.pipeline_parallel > 1:
        return ["schedule.step(*given, **words, return_outputs=False)", *sum_tied(plan)]
    count = plan.accumulation
    once = _forward(plan, "" if count == 1 else f" / {count}")
    if count == 1:
        return once
    if _reduces(plan):
        last = f"micro_step == {count - 1}"
        once = [f"with nullcontext() if {last} else model.no_sync():", *indented(once)]
    return [f"for micro_step in range({count}):", *indented(once)]


def _forward(plan: Plan, share: str) -> list[str]:
    forward = [f"loss = model(**batch).loss{share}"]
    if plan.loop is not Loop.TRAINER:
        forward = ["outputs = model(**batch)  # held", f"loss = outputs.loss{share}"]
    if plan.precision is Precision.AMP and not plan.mini_batch_size:  # else inside of it
        forward = [f'with torch.autocast("cuda", {half_type(plan)}):', *indented(forward)]
    holds = plan.checkpointing.is_of_layers
    freed = ["del loss  # and what hangs on it"] if holds else []
    scaled = "scaler.scale(loss)" if plan.gradient_scaler else "loss"
    return [*forward, f"{scaled}.backward()", *freed]
