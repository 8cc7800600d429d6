"""Which module of a model is running."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Modules:
    """The path of the module that is running, from hooks on every module."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._names = {id(module): name for name, module in reversed(list(model.named_modules()))}
        self._stack: list[str] = []

    @property
    def path(self) -> str:
        """Dotted path of the innermost running module, empty outside of the model."""
        return self._stack[-1] if self._stack else ""

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow the modules within the block."""
        hooks = torch.nn.modules.module
        before = hooks.register_module_forward_pre_hook(self._enter)
        after = hooks.register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def _enter(self, module: torch.nn.Module, _: Any) -> None:
        self._stack.append(self._names.get(id(module), type(module).__name__))

    def _leave(self, *_: Any) -> None:
        self._stack.pop()
