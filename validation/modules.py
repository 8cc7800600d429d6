"""The module of a model that is currently running."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Modules:
    """The path of the module that is running, from hooks on every module."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._names = {id(module): name for name, module in reversed(list(model.named_modules()))}
        self._stack: list[str] = []
        self._report: Callable[[str], None] = lambda _: None

    @contextmanager
    def followed(self, report: Callable[[str], None]) -> Iterator[None]:
        """Report the dotted path of the innermost running module whenever it changes.

        It is empty outside of the model.
        """
        hooks = torch.nn.modules.module
        self._report = report
        before = hooks.register_module_forward_pre_hook(self._enter)
        after = hooks.register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()
            self._stack.clear()

    def _enter(self, module: torch.nn.Module, _: Any) -> None:
        self._stack.append(self._names.get(id(module), type(module).__name__))
        self._report(self._stack[-1])

    def _leave(self, *_: Any) -> None:
        self._stack.pop()
        self._report(self._stack[-1] if self._stack else "")
