"""The part of a program that computes the loss of a reward model or an embedding model."""

from typing import Final

from calculator.plan import Plan, Precision
from calculator.program.text import TORCH, Import, Piece, indented
from calculator.task import Task

OUTPUT: Final[Import] = ("transformers.utils", "ModelOutput")
REWARDS: Final[tuple[str, ...]] = (
    "def forward(input_ids):",
    "    rewards = compute(input_ids=input_ids).logits",
    "    better, worse = rewards.squeeze(-1).chunk(2)",
    "    return ModelOutput(loss=-logsigmoid(better - worse).mean())",
)
EMBED: Final[tuple[str, ...]] = (
    "hidden = compute(input_ids=input_ids).last_hidden_state",
    "mask = attention_mask.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)",
    "return (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)",
)
EMBEDDINGS: Final[tuple[str, ...]] = (
    "def forward(input_ids, attention_mask):",
    "    first, second = normalize(embed(input_ids, attention_mask)).chunk(2)",
    "    scores = first @ second.T * 20",
    "    places = torch.arange(len(scores), device=scores.device)",
    "    return ModelOutput(loss=cross_entropy(scores, places))",
)
# what GradCache does, as sentence-transformers' CachedMultipleNegativesRankingLoss
CACHED: Final[tuple[str, ...]] = (
    "def forward(input_ids, attention_mask):",
    "    parts, states, embeddings = [], [], []",
    "    for ids, mask in zip(input_ids.chunk(2), attention_mask.chunk(2)):",
    "        parts += zip(ids.split({size}), mask.split({size}))",
    "    for part in parts:",
    "        states.append((torch.get_rng_state(), torch.cuda.get_rng_state()))",
    "        with torch.no_grad():",
    "            embeddings.append(embed(*part).requires_grad_())",
    "    half = len(embeddings) // 2",
    "    first, second = (torch.cat(each) for each in (embeddings[:half], embeddings[half:]))",
    "    places = torch.arange(len(first), device=first.device)",
    "    losses = []",
    "    for rows, labels in zip(first.split({size}), places.split({size})):",
    "        scores = normalize(rows) @ normalize(second).T * 20",
    "        loss = cross_entropy(scores, labels) * len(rows) / len(first)",
    "        loss.backward()",
    "        losses.append(loss.detach())",
    "        del loss",
    "    forward.cache = [each.grad for each in embeddings]",
    "    loss = sum(losses).requires_grad_()",
    "    loss.register_hook(partial(again, parts, states))",
    "    return ModelOutput(loss=loss)",
    "",
    "",
    "def again(parts, states, gradient):",
    "    for part, (own, of_gpu), cached in zip(parts, states, forward.cache):",
    "        with torch.enable_grad(), torch.random.fork_rng():",
    "            torch.set_rng_state(own)",
    "            torch.cuda.set_rng_state(of_gpu)",
    "            embedded = embed(*part)",
    "            (torch.dot(embedded.flatten(), cached.flatten()) * gradient).backward()",
)
FUNCTIONS: Final = "torch.nn.functional"


def compare_pairs(plan: Plan, half: str) -> Piece:
    """The model's forward pass with the loss of two halves of a batch; `half` is autocast's."""
    match plan.task:
        case Task.REWARD:
            lines, imports = REWARDS, [OUTPUT, (FUNCTIONS, "logsigmoid")]
        case Task.EMBEDDING:
            names = ("normalize", "cross_entropy")
            imports = [TORCH, OUTPUT, *((FUNCTIONS, name) for name in names)]
            lines = (*_embed(plan, half), "", "", *EMBEDDINGS)
            if plan.mini_batch_size:
                imports.append(("functools", "partial"))
                cached = (line.format(size=plan.mini_batch_size) for line in CACHED)
                lines = (*_embed(plan, half), "", "", *cached)
        case _:
            return Piece()
    inner = f"inner = {'model.get_base_model()' if plan.lora else 'model'}"
    before = (inner, "compute = inner.forward", "", "")
    return Piece((*before, *lines, "", "", "inner.forward = forward"), tuple(imports))


def _embed(plan: Plan, half: str) -> list[str]:
    """A mini-batch's embeddings; with GradCache autocast ends with each of them."""
    lines = [*EMBED]
    if plan.mini_batch_size and plan.precision is Precision.AMP:
        lines = [f'with torch.autocast("cuda", {half}):', *indented(lines)]
    return ["def embed(input_ids, attention_mask):", *indented(lines)]
