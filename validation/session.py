"""A model on a device, ready for one measured training step after another."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import torch

from calculator.errors import InputError
from calculator.plan import Plan
from validation.adapters import add_adapters, make_tables
from validation.chunked_loss import chunk_loss
from validation.configuration import Configuration
from validation.context import divided
from validation.counting_device import AMPERE, RAM_DEVICE, Place, counting_gpu
from validation.distributed import distributed, fullest
from validation.ledger import Ledger, Step
from validation.mesh import PIPELINE, REPLICAS, Mesh, axes_of
from validation.models import Task, build_task, check_model
from validation.modules import Modules
from validation.offloaded import Moved, followed, offload_inputs
from validation.optimizers import Updater, make_updater, optimizer_for
from validation.paged import ManagedMemory, managed_memory
from validation.pairs import compare_pairs
from validation.ranks import Ranks, note_together, ranks
from validation.scaled import finite
from validation.spread import exchanged_evenly
from validation.steps import Outputs, Watcher, autocast_for, enable_checkpointing, kernels, run_step
from validation.storage import Part, Phase
from validation.together import check_together, check_windows


class Unwatched:
    """A watcher that only knows the phase."""

    def __init__(self) -> None:
        self.phase = Phase.FORWARD

    def start_micro_step(self) -> None:
        """A forward pass begins."""
        self.phase = Phase.FORWARD

    def start_phase(self, phase: Phase) -> None:
        """A phase begins."""
        self.phase = phase

    def keep(self) -> None:
        """Forward is over."""

    def gradient(self, parameter: torch.Tensor) -> None:
        """A gradient is complete."""

    def backward_done(self) -> None:
        """All gradients exist."""


@dataclass
class Training:
    """A model, its updater and its micro-batch on a device, with the optimizer's states."""

    configuration: Configuration
    device: str
    task: Task
    updater: Updater
    ranks: Ranks | None = None
    moved: Moved = field(default_factory=Moved)
    held: Sequence[torch.Tensor] = ()
    managed: ManagedMemory | None = None
    outputs: Outputs = field(default_factory=Outputs)

    @property
    def transfer(self) -> dict[str, int]:
        """Bytes that the last step moved over the bus."""
        return {
            "to_ram": self.updater.to_ram + self.moved.to_ram,
            "to_gpu": self.updater.to_gpu + self.moved.to_gpu,
        }

    def run(self, watcher: Watcher) -> None:
        """One step."""
        plan = self.configuration.asked
        # GradCache enters it for each mini-batch, as accelerate does for a model alone
        autocast = nullcontext if plan.mini_batch_size else autocast_for(plan, self.device)
        if self.managed is not None:
            self.managed.prefetched = 0
        with kernels(plan.attention), followed(plan, self.moved):
            run_step(self.task, self.updater, plan, autocast, watcher, self.outputs)


@dataclass
class Session:
    """A training whose allocations are logged."""

    training: Training
    ledger: Ledger

    def step(self) -> Step:
        """One more step, from a fresh log."""
        self._enter_outputs()
        with Modules(self.training.task.model).followed(self.ledger.log.enter_module):
            self.ledger.start()
            self.training.run(self.ledger)
            step = self.ledger.stop()
        self._enter_outputs()
        return step

    def _enter_outputs(self) -> None:
        """The loop may hold the model's outputs from step to step."""
        self.ledger.enter(self.training.outputs.tensors, Part.ACTIVATIONS)
        self.ledger.enter(self.training.task.kept(), Part.ACTIVATIONS)


@contextmanager
def session(configuration: Configuration, device: str, rank: int = 0) -> Iterator[Session]:
    """Build the model, make the first step, and hand over for logged ones.

    `device` is ``counting`` or ``cpu``, and `rank` the stage of a pipeline.
    """
    # libraries make tables of their own when they are imported or first used
    optimizer_for(configuration.asked)
    with _setting(device, configuration):
        make_tables(configuration.asked, "cuda" if device == "counting" else device)
    ledger = Ledger(Place.CPU if device == "cpu" else Place.GPU)
    with training(configuration, device, rank) as made:
        ledger.enter(made.task.model.parameters(), Part.WEIGHTS)
        ledger.enter(made.task.model.buffers(), Part.WEIGHTS)
        ledger.enter((*made.task.inputs.values(), *made.held), Part.INPUTS)
        ledger.enter(made.updater.state(), Part.OPTIMIZER)
        if made.ranks is not None:
            ledger.enter(made.ranks.flat, Part.GRADIENTS)
            made.ranks.forget()
        yield Session(made, ledger)


@contextmanager
def training(configuration: Configuration, device: str, rank: int = 0) -> Iterator[Training]:
    """Build the model and make the first step, after which the optimizer's states exist.

    `device` is ``counting``, ``cpu`` or ``cuda``.
    """
    check(configuration)
    counting = device == "counting"
    place = "cuda" if counting else device
    plan = configuration.asked
    # on a card the backward pass has a thread, and so a workspace, of its own
    single = torch.autograd.set_multithreading_enabled(device == "cuda")
    axes = axes_of(plan)
    if axes.replicas > 1:
        places = axes.places(rank)
        replica = fullest(configuration.architecture, plan, places[PIPELINE])
        rank = axes.rank({**places, REPLICAS: replica})
    with ExitStack() as stack:
        stack.enter_context(_setting(device, configuration))
        managed = _managed(plan, device, stack)
        group = stack.enter_context(ranks(axes, place, rank))
        for context in (single, finite(counting), exchanged_evenly(configuration)):
            stack.enter_context(context)
        task = build_task(configuration, place)
        enable_checkpointing(task.model, plan, preserve_rng=not counting)
        offload_inputs(task.model, plan)
        task = chunk_loss(add_adapters(task, plan), plan)
        autocast = autocast_for(plan, place)
        task = compare_pairs(task, plan, autocast, preserve_rng=not counting)
        held: list[torch.Tensor] = []
        mesh = Mesh(axes, place)
        if group is not None:
            task = distributed(task, plan, mesh)
            gc.collect()  # packed weights hold their modules: those that other stages have
        if plan.context_parallel > 1:
            inputs, held = stack.enter_context(divided(task.inputs, plan, mesh))
            task = replace(task, inputs=inputs)
            note_together()
        updater = make_updater(task.model, plan, mesh, RAM_DEVICE if counting else "cpu")
        made = Training(configuration, place, task, updater, group, held=held, managed=managed)
        made.run(Unwatched())
        if axes.world > axes.pipeline:  # DDP arranges its buckets after a first step
            assert group is not None
            group.forget()
            made.run(Unwatched())
        yield made


def _managed(plan: Plan, device: str, stack: ExitStack) -> ManagedMemory | None:
    """The counted memory of paged states; a card has its own."""
    if not plan.paged_optimizer or device == "cuda":
        return None
    if device == "cpu":
        raise InputError("device", device, "bitsandbytes pages no states of weights in RAM")
    return stack.enter_context(managed_memory())


@contextmanager
def _setting(device: str, configuration: Configuration) -> Iterator[None]:
    match device:
        case "counting":
            with counting_gpu(configuration.card.capability or AMPERE):
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
    plan = configuration.asked
    optimizer_for(plan)
    check_model(configuration)
    check_together(plan)
    check_windows(configuration)
