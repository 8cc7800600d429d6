"""PyTorch's GradScaler where gradients have no values: none of them is found not to be finite."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

_SCALER = "torch.amp.GradScaler"


@contextmanager
def finite(counting: bool) -> Iterator[None]:
    """On the counting GPU nothing is divided and every step is taken; on others all is real."""
    if not counting:
        yield
        return
    nothing: Callable[..., None] = lambda *_: None  # noqa: E731
    with ExitStack() as stack:
        # both change tensors in place, and allocate nothing
        stack.enter_context(patch("torch._amp_foreach_non_finite_check_and_unscale_", nothing))
        stack.enter_context(patch("torch._amp_update_scale_", nothing))
        stack.enter_context(patch(f"{_SCALER}._maybe_opt_step", _step))
        yield


def _step(_scaler: object, optimizer: Any, _state: object, *words: Any, **options: Any) -> Any:
    return optimizer.step(*words, **options)
