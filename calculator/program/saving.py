"""The parts of a program that keep some results, inputs in RAM, or compute the loss in chunks."""

from typing import Final

from calculator.models.model import CausalModel, LanguageModel, Model
from calculator.plan import ActivationOffload, ChunkedLoss, Plan
from calculator.program.text import TORCH, Import, Piece, indented

WRAPPER = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
RECOMPUTATION: Final = "torch.utils.checkpoint"

# contexts of checkpointed layers: PyTorch's policy is asked about each of their operations
KEPT_RESULTS: Final = Piece(
    (
        "aten = torch.ops.aten",
        "products = {aten.mm.default, aten.addmm.default}",
        "attention = {",
        "    aten._scaled_dot_product_flash_attention.default,",
        "    aten._scaled_dot_product_efficient_attention.default,",
        "    aten._scaled_dot_product_cudnn_attention.default,",
        "}",
        "",
        "",
        "def kept_results():",
        "    made = Counter()",
        "",
        "    def policy(context, operation, *arguments, **options):",
        "        kept = operation in attention",
        "        if operation in products:  # every second one is computed again",
        "            made[context.is_recompute] += 1",
        "            kept = made[context.is_recompute] % 2 == 1",
        "        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE",
        "",
        "    return create_selective_checkpoint_contexts(policy)",
        "",
        "",
    ),
    (
        TORCH,
        ("collections", "Counter"),
        (RECOMPUTATION, "CheckpointPolicy"),
        (RECOMPUTATION, "create_selective_checkpoint_contexts"),
    ),
)


def keep_inputs_in_ram(plan: Plan, stacks: Piece) -> Piece:
    """Each layer of `stacks` in PyTorch's wrapper; its own one pins the memory."""
    match plan.activation_offload:
        case ActivationOffload.NONE:
            return Piece()
        case ActivationOffload.PINNED:
            wrapper = Piece((), ((WRAPPER, "offload_wrapper"),))
            name = "offload_wrapper"
        case ActivationOffload.PAGEABLE:
            lines = (
                "",
                "",
                "class InRam(OffloadWrapper):",
                "    def forward(self, *arguments, **options):",
                "        with save_on_cpu():  # PyTorch's own wrapper pins the memory",
                "            return self._checkpoint_wrapped_module(*arguments, **options)",
                "",
                "",
            )
            imports: tuple[Import, ...] = (
                (WRAPPER, "OffloadWrapper"),
                ("torch.autograd.graph", "save_on_cpu"),
            )
            wrapper = Piece(lines, imports)
            name = "InRam"
    wrapped = (
        "for layers in stacks:",
        "    for place, layer in enumerate(layers):",
        f"        layers[place] = {name}(layer)",
    )
    return stacks + wrapper + Piece(wrapped)


def compute_loss_in_chunks(kind: type[Model], plan: Plan) -> Piece:
    """The model's forward pass with PyTorch's loss, whose labels are shifted as transformers'."""
    if plan.chunked_loss is ChunkedLoss.NONE:
        return Piece()
    assert issubclass(kind, LanguageModel)
    hidden, bias, following = "predict(**inputs).logits", "head.bias", "labels"
    imports: list[Import] = [
        ("torch.nn", "LinearCrossEntropyOptions"),
        ("torch.nn.functional", "linear_cross_entropy"),
        ("transformers.modeling_outputs", "CausalLMOutput"),
    ]
    before: tuple[str, ...] = ()
    if kind.added_to_logits:
        hidden, bias = "whole.base_model(**inputs)[0]", f"whole.{kind.added_to_logits}[0]"
    if plan.context_parallel > 1:
        following = 'inputs.pop("shift_labels")'
    elif issubclass(kind, CausalModel):
        following = "pad(labels, (0, 1), value=-100)[:, 1:]"
        imports.append(("torch.nn.functional", "pad"))
    elif kind.has_target:
        start = "config.pad_token_id, config.decoder_start_token_id"
        before = (
            "config = whole.config",
            f"start = {start if kind.has_start else '(config.pad_token_id,)'}",
            'inputs["decoder_input_ids"] = shift_tokens_right(labels, *start)',
        )
        module = f"transformers.models.{kind.shifted_by}.modeling_{kind.shifted_by}"
        imports.append((module, "shift_tokens_right"))
    body = (
        f"following = {following}.flatten()",
        *before,
        f"hidden = {hidden}.flatten(0, 1)",
        "options = {",
        f'    "linear_bias": {bias},',
        '    "options": LinearCrossEntropyOptions(),',
        "}",
        "loss = linear_cross_entropy(hidden, head.weight, following, **options)",
        "return CausalLMOutput(loss=loss)",
    )
    lines = (
        f"whole = {'model.get_base_model()' if plan.lora else 'model'}",
        "head, predict = whole.get_output_embeddings(), whole.forward",
        "",
        "",
        "def forward(labels, **inputs):",
        *indented(body),
        "",
        "",
        "head.forward = torch.nn.Identity().forward  # the loss multiplies by its weight",
        "whole.forward = forward",
    )
    return Piece(lines, (TORCH, *imports))
