"""A model on a device, ready for one measured training step after another."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch

from validation.configuration import Configuration
from validation.ledger import Ledger
from validation.models import Task, build_task, check_model
from validation.modules import Modules
from validation.optimizers import Updater, make_updater, optimizer_for
from validation.steps import Watcher, autocast_for, enable_checkpointing, kernels, run_step
from validation.storage import Event, Moment, Part, Storage


class LedgerWatcher:
    """Keeps the ledger's moments and parts while a step runs."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.kept: dict[Part, int] = {}
        self.alive: list[tuple[Storage, Part]] = []
        self.gradients = 0
        self.start_micro_step = ledger.start_micro_step
        self.start = ledger.start

    @property
    def moment(self) -> Moment:
        """The moment that the step is in."""
        return self.ledger.moment

    def keep(self) -> None:
        """Forward is over."""
        self.ledger.keep()
        self.kept = self.ledger.parts()
        if self.ledger.events is not None:
            self.alive = self.ledger.alive()

    def gradient(self, parameter: torch.Tensor) -> None:
        """A gradient is complete."""
        assert parameter.grad is not None
        self.ledger.enter([parameter.grad], Part.GRADIENTS)

    def backward_done(self) -> None:
        """All gradients exist."""
        self.gradients = self.ledger.parts()[Part.GRADIENTS]


@dataclass
class Session:
    """A model that has made its first step, so that the optimizer's states exist."""

    configuration: Configuration
    device: str
    task: Task
    updater: Updater
    ledger: Ledger
    watcher: LedgerWatcher

    def step(self) -> None:
        """One more step, from a fresh ledger."""
        self.ledger.restart()
        with self.ledger, self.ledger.modules.followed():
            self._run(self.watcher)

    def step_on_allocator(self) -> dict[str, Any]:
        """One more step on a real GPU without the ledger: the allocator's figures."""
        from validation.cuda import AllocatorWatcher, allocator_figures

        torch.cuda.empty_cache()
        watcher = AllocatorWatcher()
        self._run(watcher)
        reserved = torch.cuda.memory_reserved()  # nothing is given back within a step
        return allocator_figures(watcher, self.ledger.total(), reserved)

    def _run(self, watcher: Watcher) -> None:
        plan = self.configuration.resolved
        autocast = autocast_for(plan, self.device, self.configuration.half_type)
        with kernels(plan.attention):
            run_step(self.task, self.updater, plan, autocast, watcher)

    def step_logged(self) -> list[Event]:
        """One more step with every operation written down, and all that lives at the peaks."""
        self.ledger.events = []
        self.step()
        events, self.ledger.events = self.ledger.events, None
        return events


@contextmanager
def session(configuration: Configuration, device: str) -> Iterator[Session]:
    """Build the model, make the first step, and hand over for the next ones.

    `device` is ``fake`` (a fake GPU), ``cpu`` or ``cuda``.
    """
    check(configuration)
    fake = device == "fake"
    place = "cuda" if fake else device
    with _setting(device), torch.autograd.set_multithreading_enabled(False):
        task = build_task(configuration, place)
        plan = configuration.resolved
        enable_checkpointing(task.model, plan.checkpointing, preserve_rng=not fake)
        updater = make_updater(task.model, plan)
        modules = Modules(task.model)
        ledger = Ledger(place, modules)
        ledger.enter(task.model.parameters(), Part.WEIGHTS, "parameter")
        ledger.enter(task.model.buffers(), Part.WEIGHTS, "buffer")
        ledger.enter(task.inputs.values(), Part.INPUTS, "input")
        ledger.enter(updater.state(), Part.OPTIMIZER, "state")
        made = Session(configuration, place, task, updater, ledger, LedgerWatcher(ledger))
        if fake and not task.keeps_tables:
            _make_states(task, updater)
        else:
            made.step()
        ledger.adopt_leftovers()
        ledger.enter(updater.state(), Part.OPTIMIZER, "state")
        yield made


def _make_states(task: Task, updater: Updater) -> None:
    """Let the optimizer make its states from gradients without a backward pass."""
    for name, parameter in task.model.named_parameters():
        if name not in task.unused:
            parameter.grad = torch.zeros_like(parameter)
    updater.step()
    task.model.zero_grad(set_to_none=True)


@contextmanager
def _setting(device: str) -> Iterator[None]:
    match device:
        case "fake":
            from validation.fake_device import fake_gpu

            with fake_gpu():
                yield
        case "cpu":
            with patch("torch.nn.functional.dropout", _fused_dropout):
                yield
        case _:
            with nullcontext():
                yield


def _fused_dropout(
    values: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    """Dropout as the GPU does it: one operation that keeps a mask of one byte an element."""
    if p == 0 or not training:
        return values
    return torch.native_dropout(values, p, True)[0]


def check(configuration: Configuration) -> None:
    """Refuse what no real class or library can run.

    Raises:
        InputError: naming the option and the rule.
    """
    plan = configuration.resolved
    optimizer_for(plan)
    check_model(configuration.architecture, plan)
