"""The part of a program that gives each of several GPUs its share of every layer."""

from typing import Final

from calculator.plan import Plan
from calculator.program.text import TORCH, Import, Piece, call, quoted
from calculator.techniques.tensor_parallel import COLUMNS

STYLES: Final = "torch.distributed.tensor.parallel"
PATHS: Final = (
    *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    *("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
)
TENSOR: Final[Import] = ("torch.distributed.tensor", "DTensor")


def split_layers(plan: Plan) -> Piece:
    """PyTorch's styles for the projections of each layer; what is left goes to the GPU whole."""
    styles = {path: _style(path) for path in PATHS}
    lines = (
        "shares = {",
        *(f"    {quoted(f'model.layers.*.{path}')}: {style}()," for path, style in styles.items()),
        "}",
        *call("mesh = init_device_mesh", ['"cuda"', f"({plan.tensor_parallel},)"]),
        "parallelize_module(model, mesh, shares)",
        'model.to("cuda")',
    )
    names = sorted({"parallelize_module", *styles.values()})
    imports = ("torch.distributed.device_mesh", "init_device_mesh"), TORCH
    return Piece(lines, (*imports, *((STYLES, name) for name in names)))


def _style(path: str) -> str:
    return "ColwiseParallel" if path.rpartition(".")[2] in COLUMNS else "RowwiseParallel"


def group_weights(weights: str) -> Piece:
    """The optimizer's groups: PyTorch updates no DTensors together with plain tensors."""
    inside = "isinstance(weight, DTensor)"
    lines = (
        f"split = [weight for weight in {weights} if {inside}]",
        f"whole = [weight for weight in {weights} if not {inside}]",
        'groups = [{"params": split}, {"params": whole}]',
    )
    return Piece(lines, (TENSOR,))
