"""The part of a program that computes the loss of a reward model or an embedding model."""

from typing import Final

from calculator.plan import Plan
from calculator.program.text import TORCH, Import, Piece
from calculator.task import Task

OUTPUT: Final[Import] = ("transformers.utils", "ModelOutput")
REWARDS: Final[tuple[str, ...]] = (
    "def forward(input_ids):",
    "    rewards = compute(input_ids=input_ids).logits",
    "    better, worse = rewards.squeeze(-1).chunk(2)",
    "    return ModelOutput(loss=-logsigmoid(better - worse).mean())",
)
EMBEDDINGS: Final[tuple[str, ...]] = (
    "def forward(input_ids, attention_mask):",
    "    hidden = compute(input_ids=input_ids).last_hidden_state",
    "    mask = attention_mask.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)",
    "    mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)",
    "    first, second = normalize(mean).chunk(2)",
    "    scores = first @ second.T * 20",
    "    places = torch.arange(len(scores), device=scores.device)",
    "    return ModelOutput(loss=cross_entropy(scores, places))",
)
FUNCTIONS: Final = "torch.nn.functional"


def compare_pairs(plan: Plan) -> Piece:
    """The model's forward pass with the loss of the two halves of a batch."""
    match plan.task:
        case Task.REWARD:
            lines, imports = REWARDS, [OUTPUT, (FUNCTIONS, "logsigmoid")]
        case Task.EMBEDDING:
            names = ("normalize", "cross_entropy")
            lines, imports = EMBEDDINGS, [TORCH, OUTPUT, *((FUNCTIONS, name) for name in names)]
        case _:
            return Piece()
    inner = f"inner = {'model.get_base_model()' if plan.lora else 'model'}"
    before = (inner, "compute = inner.forward", "", "")
    return Piece((*before, *lines, "", "", "inner.forward = forward"), tuple(imports))
