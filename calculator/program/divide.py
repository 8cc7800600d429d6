"""The parts of a program that divide each sequence among several GPUs."""

from typing import Final

from calculator.plan import ContextRotation, Plan
from calculator.program.text import TORCH, Import, Piece, call, indented

EXPERIMENTAL: Final = "torch.distributed.tensor.experimental"
ROTATE: Final[Import] = (f"{EXPERIMENTAL}._attention", "set_rotate_method")
MESHES: Final[Import] = ("torch.distributed.device_mesh", "init_device_mesh")
SHIFTED: Final = "# Labels are shifted, and places numbered, before the sequences are divided."
NAMES: Final = ("input_ids", "labels", "attention_mask", "position_ids")


def seed_groups(plan: Plan) -> Piece:
    """The same random batch on all GPUs that divide its sequences, or the layers."""
    together = plan.context_parallel * plan.tensor_parallel
    if together == 1 or plan.replicas == 1:
        return Piece()
    rank = "0"
    if together < plan.all_gpus:
        rank = f"torch.distributed.get_rank() // {together}"
    what = "sequences" if plan.context_parallel > 1 else "layers"
    lines = (f"# GPUs that divide {what} read the same batch.", f"torch.manual_seed({rank})")
    return Piece(lines, (TORCH,))


def divide_batch(plan: Plan) -> Piece:
    """The token after each, and its place, which have to be known before a sequence is cut.

    Without a mask, transformers takes the jump between a GPU's two chunks for a new text.
    """
    if plan.context_parallel == 1:
        return Piece()
    data, context = plan.replicas // plan.context_parallel, plan.context_parallel
    shape = ['"cuda"', f"({data}, {context})", 'mesh_dim_names=("data", "context")']
    lines = [
        SHIFTED,
        'batch["labels"] = batch["labels"].roll(-1, dims=1)',
        'batch["labels"][:, -1] = -100',
        'batch["shift_labels"] = batch["labels"]',
        'batch["attention_mask"] = torch.ones_like(batch["input_ids"])',
        f'batch["position_ids"] = torch.arange({plan.sequence_length}, device="cuda")[None]',
        *call("names = ", [f'"{name}"' for name in NAMES]),
        "buffers = [batch[name] for name in names]",
        *call("mesh = init_device_mesh", shape),
    ]
    return Piece(tuple(lines), (TORCH, MESHES)) + rotate(plan)


def rotate(plan: Plan) -> Piece:
    """Keys and values are passed on, where they are not gathered."""
    if plan.context_rotation is ContextRotation.ALL_TO_ALL:
        return Piece(('set_rotate_method("alltoall")',), (ROTATE,))
    return Piece()


def in_context(plan: Plan, lines: list[str]) -> tuple[list[str], list[Import]]:
    """Lines within which sequences are divided, forward and backward; and their imports."""
    if plan.context_parallel == 1:
        return lines, []
    arguments = [
        'mesh["context"]',
        "buffers=buffers",
        "buffer_seq_dims=[1] * len(buffers)",
        "no_restore_buffers=set(buffers)",
    ]
    found = [
        "# It divides the batch in place: with your data, put it around each batch's two passes.",
        *call("with context_parallel", arguments, ":"),
        *indented(lines),
    ]
    return found, [(EXPERIMENTAL, "context_parallel")]
