"""Adam and AdamW: two moments."""

from collections.abc import Sequence
from typing import Final

from calculator.allocator import round_block
from calculator.optimizers.rule import Rule, loop_bytes
from calculator.plan import Plan, Update
from calculator.tensors import ParameterTensor, tensors_bytes

_8BIT: Final = {"optimizer_bits": 8}
_PAGED: Final = {"paged_optimizer": True}


class Adam(Rule):
    """foreach makes the square roots of all weights; loop a root and a quotient for each."""

    def _state_of(self, item: ParameterTensor, plan: Plan) -> int:
        counted = plan.update is Update.FUSED and self.is_from_torch(plan)
        return super()._state_of(item, plan) + counted * round_block(4)  # the step, on the GPU

    def torch_bytes(self, tensors: Sequence[ParameterTensor], plan: Plan) -> int:
        """One list as large as all weights, two tensors beside the last one's, or none."""
        if plan.update is Update.FOREACH:
            return tensors_bytes(tensors, plan.trained_bytes)
        return loop_bytes(tensors, plan.trained_bytes, 2) if plan.update is Update.LOOP else 0


RULE: Final = Adam(
    torch="AdamW",
    bitsandbytes="AdamW",
    states=2,
    names={
        "adamw": {},
        "adamw_torch": {},
        "adamw_hf": {},
        "adamw_torch_fused": {"update": "fused"},
        **dict.fromkeys(("adamw_8bit", "adamw_bnb_8bit", "adam8bit", "adamw8bit"), _8BIT),
        **dict.fromkeys(("paged_adamw", "paged_adamw_32bit"), _PAGED),
        "paged_adamw_8bit": {**_8BIT, **_PAGED},
    },
    trainer={Update.FOREACH: "adamw_torch", Update.FUSED: "adamw_torch_fused"},
)
