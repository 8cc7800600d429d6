"""The real optimizers, and the ways of training that stand between them and the weights."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final, Protocol, assert_never

import torch
from torch.distributed.tensor import DTensor

from calculator.errors import InputError
from calculator.plan import DataParallel, Offload, Optimizer, Plan, Precision, Update
from validation.mesh import REPLICAS, Mesh
from validation.offloaded import own_bytes

RATE: Final = 1e-4  # no size depends on it
Make = Callable[..., Any]
OUTPUT: Final = "get_output_embeddings"  # a method of transformers' classes


def optimizer_for(plan: Plan) -> Make:
    """torch.optim for states in the weights' own format, bitsandbytes for other formats.

    Raises:
        InputError: for a combination that no library implements.
    """
    bits = plan.optimizer_bits
    own = bits == plan.own_bits and not plan.paged_optimizer
    match plan.optimizer:
        case Optimizer.ADAM if own:
            return partial(torch.optim.AdamW, lr=RATE, **_implementation(plan))
        case Optimizer.SGD:
            return partial(torch.optim.SGD, lr=RATE, **_implementation(plan))
        case Optimizer.MOMENTUM if own:
            return partial(torch.optim.SGD, lr=RATE, momentum=0.9, **_implementation(plan))
        case Optimizer.MUON | Optimizer.APOLLO if not own:
            raise InputError("optimizer_bits", bits, f"{plan.optimizer} follows the weights' own")
        case Optimizer.MUON:
            return partial(MuonAndAdamW, **_implementation(plan))
        case Optimizer.APOLLO:
            return apollo
        case Optimizer.ADAFACTOR if own and plan.update is not Update.FUSED:
            foreach = plan.update is Update.FOREACH
            return partial(torch.optim.Adafactor, lr=RATE, foreach=foreach)
        case Optimizer.ADAFACTOR:
            raise InputError("optimizer_bits", bits, "PyTorch's Adafactor follows the weights' own")
        case Optimizer.ADAM | Optimizer.LAMB | Optimizer.LION | Optimizer.MOMENTUM:
            return _bitsandbytes(plan.optimizer, bits, plan.paged_optimizer)
        case other:
            assert_never(other)


def _implementation(plan: Plan) -> dict[str, Any]:
    return {
        "foreach": plan.update is Update.FOREACH,
        "fused": plan.update is Update.FUSED,
    }


def _bitsandbytes(optimizer: Optimizer, bits: int, paged: bool) -> Make:
    if bits == 16:
        rule = f"no library keeps 16-bit states of {optimizer} for these weights"
        raise InputError("optimizer_bits", bits, rule)
    from bitsandbytes import optim

    names = {"adam": "AdamW", "lamb": "LAMB", "lion": "Lion", "momentum": "SGD"}
    options = {"momentum": 0.9} if optimizer is Optimizer.MOMENTUM else {}
    name = f"{'Paged' if paged else ''}{names[optimizer]}{bits}bit"
    return partial(getattr(optim, name), lr=RATE, **options)


class MuonAndAdamW:
    """PyTorch's Muon for the matrices of hidden layers, then its AdamW for all else."""

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        hidden: Sequence[bool],
        group: Any = None,
        **options: Any,
    ) -> None:
        matrices = [each for each, inside in zip(tensors, hidden, strict=True) if inside]
        others = [each for each, inside in zip(tensors, hidden, strict=True) if not inside]
        makers: list[tuple[Make, Any]] = [
            (partial(torch.optim.Muon, lr=RATE), matrices),
            (partial(torch.optim.AdamW, lr=RATE, **options), by_mesh(others) if others else []),
        ]
        in_parts = partial(_in_parts, group=group) if group else lambda make: make
        self.optimizers = [in_parts(make)(given) for make, given in makers if given]

    def step(self) -> None:
        """Update all weights."""
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self) -> None:
        """Free the gradients of all weights."""
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    @property
    def state(self) -> dict[Any, Any]:
        """The states of both."""
        inside = (getattr(each, "optim", each) for each in self.optimizers)
        return {key: value for each in inside for key, value in each.state.items()}


def apollo(tensors: Sequence[torch.Tensor], hidden: Sequence[bool], group: Any = None) -> Any:
    """The authors' APOLLO for the matrices of hidden layers, and as AdamW for all else.

    The group's values are those of transformers' Trainer (`_get_apollo_optimizer`). A simulated GPU
    has no generator of random numbers: the projections are made without one.
    """
    import_module("apollo_torch.random_projector").stable_randn = _random  # type: ignore[attr-defined]
    chosen = {"rank": 128, "proj": "random", "scale_type": "channel", "update_proj_gap": 200}
    tensors = [each.requires_grad_() for each in tensors]  # it has no state for others
    groups: list[dict[str, Any]] = [
        {"params": [each for each, inside in zip(tensors, hidden, strict=True) if not inside]},
        {
            "params": [each for each, inside in zip(tensors, hidden, strict=True) if inside],
            **chosen,
            "scale": 1.0,
            "proj_type": "std",
        },
    ]
    make = partial(import_module("apollo_torch").APOLLOAdamW, lr=RATE)
    made = make if group is None else _in_parts(make, group)
    return made([each for each in groups if each["params"]])


def _random(shape: Sequence[int], seed: int, device: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(shape, device=device, dtype=dtype)


def hidden_matrices(model: Any, parameters: Sequence[torch.nn.Parameter]) -> list[bool]:
    """For each parameter, true if it is a matrix of neither an embedding nor the output layer."""
    modules = [*model.modules()]
    heads = [each.get_output_embeddings() for each in modules if hasattr(each, OUTPUT)]
    tables = [each for each in modules if isinstance(each, torch.nn.Embedding)]
    known = {id(each.weight) for each in (*tables, *heads) if each is not None}
    return [item.ndim == 2 and id(item) not in known for item in parameters]


class Updater(Protocol):
    """One update of the weights from their gradients."""

    to_ram: int
    to_gpu: int

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss whose gradients the update wants."""

    def gradient_made(self, parameter: torch.Tensor) -> None:
        """A gradient is complete."""

    def step(self) -> None:
        """Update the weights; their gradients stay."""

    def state(self) -> list[torch.Tensor]:
        """Every tensor that lives from step to step for the update's sake."""


class Unscaled:
    """An updater that takes gradients as they are."""

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss itself."""
        return loss


class AtTheEnd(Unscaled):
    """An updater that waits for all gradients."""

    def gradient_made(self, parameter: torch.Tensor) -> None:
        """A gradient is complete."""


class PlainUpdater(AtTheEnd):
    """The optimizer updates the model's own weights."""

    to_ram = 0
    to_gpu = 0

    def __init__(self, parameters: list[torch.nn.Parameter], make: Make) -> None:
        self.optimizer = make(parameters)

    def step(self) -> None:
        """Update the weights."""
        self.optimizer.step()

    def state(self) -> list[torch.Tensor]:
        """The optimizer's states; ZeRO's are those of the optimizer inside."""
        return states(getattr(self.optimizer, "optim", self.optimizer))


class ScaledUpdater(PlainUpdater):
    """The optimizer updates the model's own weights by gradients of a scaled loss."""

    def __init__(self, parameters: list[torch.nn.Parameter], make: Make) -> None:
        super().__init__(parameters, make)
        self.scaler = torch.amp.GradScaler(parameters[0].device.type)

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss times the scale."""
        return self.scaler.scale(loss)

    def step(self) -> None:
        """Update the weights, and the scale."""
        for each in getattr(self.optimizer, "optimizers", [self.optimizer]):
            self.scaler.step(each)
        self.scaler.update()

    def state(self) -> list[torch.Tensor]:
        """The optimizer's states, the scale and its counter."""
        kept = (self.scaler._scale, self.scaler._growth_tracker)
        return super().state() + [item for item in kept if item is not None]


class InBackwardUpdater(Unscaled):
    """An optimizer for each weight, which updates it once its gradient exists and frees this."""

    to_ram = 0
    to_gpu = 0

    def __init__(self, parameters: list[torch.nn.Parameter], make: Make) -> None:
        self.optimizers: dict[torch.Tensor, torch.optim.Optimizer] = {
            parameter: make([parameter]) for parameter in parameters
        }

    def gradient_made(self, parameter: torch.Tensor) -> None:
        """Update the weight, and free its gradient."""
        optimizer = self.optimizers[parameter]
        optimizer.step()
        optimizer.zero_grad()

    def step(self) -> None:
        """All is done."""

    def state(self) -> list[torch.Tensor]:
        """The optimizers' states."""
        return [item for optimizer in self.optimizers.values() for item in states(optimizer)]


class MasterUpdater(AtTheEnd):
    """The optimizer updates fp32 masters of 16-bit weights, which are then copied back."""

    to_ram = 0
    to_gpu = 0

    def __init__(self, parameters: list[torch.nn.Parameter], make: Make) -> None:
        self.parameters = parameters
        self.masters = [parameter.detach().float() for parameter in parameters]
        self.optimizer = make(self.masters)

    @torch.no_grad()
    def step(self) -> None:
        """Widen the gradients, update the masters, narrow them into the weights."""
        for master, parameter in zip(self.masters, self.parameters, strict=True):
            if parameter.grad is not None:
                master.grad = parameter.grad.float()
        self.optimizer.step()
        for master, parameter in zip(self.masters, self.parameters, strict=True):
            parameter.copy_(master)
            master.grad = None

    def state(self) -> list[torch.Tensor]:
        """The masters and the optimizer's states."""
        return self.masters + states(self.optimizer)


class OffloadUpdater(AtTheEnd):
    """Weights, states and the update in RAM; the GPU sends gradients and gets weights.

    The copy in RAM is fp32, but 16-bit where everything is 16-bit.
    """

    def __init__(
        self, parameters: list[torch.nn.Parameter], make: Make, plan: Plan, host: str = "cpu"
    ) -> None:
        self.parameters = parameters
        self.host = host
        half = plan.precision is Precision.HALF
        self.masters = [
            parameter.detach().to(host, None if half else torch.float32, copy=True)
            for parameter in parameters
        ]
        self.optimizer = make(self.masters)
        self.to_ram = self.to_gpu = 0

    @torch.no_grad()
    def step(self) -> None:
        """Fetch the gradients, update in RAM, send the weights."""
        self.to_ram = self.to_gpu = 0
        for master, parameter in zip(self.masters, self.parameters, strict=True):
            if parameter.grad is not None:
                gradient = parameter.grad.to(self.host)
                self.to_ram += own_bytes(gradient)
                master.grad = gradient.to(master.dtype)
        self.optimizer.step()
        for master, parameter in zip(self.masters, self.parameters, strict=True):
            weight = master.to(parameter.dtype)
            self.to_gpu += own_bytes(weight)
            parameter.copy_(weight)
            master.grad = None

    def state(self) -> list[torch.Tensor]:
        """The copies in RAM and the optimizer's states."""
        return self.masters + states(self.optimizer)


def _maker(
    model: Any, parameters: Sequence[torch.nn.Parameter], plan: Plan, group: Any = None
) -> Make:
    """Makes the plan's optimizer, perhaps of this rank's part of the weights.

    Muon and APOLLO are told which of the parameters are theirs.
    """
    if plan.optimizer in (Optimizer.MUON, Optimizer.APOLLO):
        split = partial(optimizer_for(plan), group=group) if group else optimizer_for(plan)
        hidden = hidden_matrices(model, parameters)
        inside = {id(each): is_one for each, is_one in zip(parameters, hidden, strict=True)}

        def made(tensors: Sequence[torch.Tensor]) -> Any:  # of all of them, or of a single one
            return split(tensors, hidden if len(tensors) > 1 else [inside[id(tensors[0])]])

        return made
    make = optimizer_for(plan)
    if group is not None:
        return _in_parts(make, group)
    return lambda tensors: make(by_mesh(tensors))


def _in_parts(make: Make, group: Any) -> Make:
    """The same optimizer for this rank's part of the weights."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    assert isinstance(make, partial)
    kind: Any = make.func
    options = {"optimizer_class": kind, "process_group": group, **make.keywords}
    return partial(ZeroRedundancyOptimizer, **options)


def by_mesh(parameters: Sequence[torch.Tensor]) -> Any:
    """Groups of plain tensors and of each mesh's DTensors, which PyTorch does not update together.

    Tensors of one kind need no groups. DTensors come first, those on the most axes before others.
    """
    kinds: dict[Any, list[torch.Tensor]] = {}
    for each in parameters:
        mesh = each.device_mesh if isinstance(each, DTensor) else None
        kinds.setdefault(mesh, []).append(each)
    if len(kinds) == 1:
        return parameters
    order = sorted(kinds, key=lambda mesh: -1 if mesh is None else mesh.ndim, reverse=True)
    return [{"params": kinds[mesh]} for mesh in order]


def make_updater(model: torch.nn.Module, plan: Plan, mesh: Mesh, host: str = "cpu") -> Updater:
    """The updater of this plan and model; `host` is the device that stands for RAM."""
    parameters = list(model.parameters())
    if plan.lora or plan.freeze:
        parameters = [parameter for parameter in parameters if parameter.requires_grad]
    if mesh.axes.replicas > 1 and plan.data_parallel is DataParallel.ZERO1:
        group = mesh[REPLICAS].get_group()
        return PlainUpdater(parameters, _maker(model, parameters, plan, group))
    make = _maker(model, parameters, plan)
    if plan.update_in_backward:
        return InBackwardUpdater(parameters, make)
    match plan.offload:
        case Offload.OPTIMIZER:
            return OffloadUpdater(parameters, make, plan, host)
        case Offload.NONE if plan.has_master_weights:
            return MasterUpdater(parameters, make)
        case Offload.NONE if plan.gradient_scaler:
            return ScaledUpdater(parameters, make)
        case Offload.NONE:
            return PlainUpdater(parameters, make)
        case other:
            assert_never(other)


def states(optimizer: Any) -> list[torch.Tensor]:
    """The optimizer's tensors that live from step to step."""
    kept: list[Any] = [value for state in optimizer.state.values() for value in state.values()]
    kept += getattr(optimizer, "name2qmap", {}).values()
    return list(_tensors(kept))


def _tensors(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    """The tensors, and those of APOLLO's projectors."""
    found = (getattr(value, "ortho_matrix", value) for value in values)
    return (value for value in found if isinstance(value, torch.Tensor))
