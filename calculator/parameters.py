"""The tensors of weights and tables that a model has, and how many elements they hold."""

from functools import lru_cache
from itertools import zip_longest
from math import prod

from calculator.allocator import round_block
from calculator.architecture import Architecture
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Parameter
from calculator.autograd.sizes import Shape, number_of
from calculator.compose import stage_models
from calculator.layers.layer import Buffer
from calculator.models.model import Model
from calculator.peaks.prepare import mode_of, numbers_of
from calculator.plan import Plan
from calculator.techniques.pipeline import shared_slots
from calculator.techniques.quantization import SHARED_BYTES
from calculator.tensors import Cut, ParameterTensor


def parameter_tensors(architecture: Architecture, plan: Plan) -> list[ParameterTensor]:
    """Every tensor of weights, shared ones once."""
    numbers = numbers_of(architecture, plan)

    def shape(sizes: Shape) -> tuple[int, ...]:
        return tuple(number_of(size, numbers) for size in sizes)

    return [
        ParameterTensor(
            item.name,
            whole := shape(item.shape),
            copies,
            item.trained,
            shape(item.inside) if item.inside and plan.sequences == 1 else None,
            _width(item, plan),
            item.packed,
            item.table,
            item.is_split,
            item.is_summed,
            item.idle,
            _cuts(whole, item.axis, plan.tensor_parallel),
        )
        for item, copies in counted_of(architecture, plan)
        if isinstance(item, Parameter)
    ]


def _cuts(shape: tuple[int, ...], axis: int | None, gpus: int) -> tuple[Cut, ...]:
    if axis is None:
        return ()
    whole = (size * (gpus if place == axis else 1) for place, size in enumerate(shape))
    return (Cut(tuple(whole), axis, gpus),)


def _width(item: Parameter, plan: Plan) -> int | None:
    """Bytes of one element, where not all weights have the same."""
    if item.dtype is None:
        return plan.weight_bytes if plan.lora else None
    return item.dtype.width


def buffer_bytes(architecture: Architecture, plan: Plan) -> int:
    """Tables that belong to the model and are not trained, counted with the weights."""
    numbers, mode = numbers_of(architecture, plan), mode_of(plan)
    weights = FLOAT32 if mode.narrows_shards else mode.weights  # FSDP narrows no buffers
    counted = counted_of(architecture, plan)
    is_packed = any(isinstance(item, Parameter) and item.packed > 1 for item, _ in counted)
    shared = SHARED_BYTES if plan.quantization.is_double and is_packed else 0
    return shared + sum(
        copies
        * round_block(
            prod(number_of(size, numbers) for size in item.shape) * (item.dtype or weights).width
        )
        for item, copies in counted
        if isinstance(item, Buffer)
    )


Counted = tuple[tuple[Parameter | Buffer, int], ...]


def counted_of(architecture: Architecture, plan: Plan) -> Counted:
    """Every weight and table of a plan's model once, with its copies."""
    groups, own_last = plan.sharing_groups, architecture.own_last_layer
    models, seen = stage_models(architecture, plan), set[int]()
    found: list[tuple[Parameter | Buffer, int]] = []
    for model, slots in zip_longest(models, shared_slots(architecture, plan)):
        new = groups if slots is None else len({*slots} - seen)
        seen.update(slots or ())
        found += _counted(model, new, own_last)
    return tuple(found)


@lru_cache(maxsize=512)
def _counted(model: Model, groups: int, own_last: bool) -> Counted:
    stacks = {
        name: stack.altered(groups=groups, own_last=own_last, layers=stack.layers if groups else 0)
        for name, stack in model.stacks()
    }
    found = dict(model.altered(**stacks).walk())
    return tuple((item, copies) for item, copies in found.items() if copies)


def count_parameters(architecture: Architecture, plan: Plan) -> int:
    r"""Number of elements in all weights.

    $$P = \sum_i \prod_j n_{ij}$$

    with n_ij the sizes of weight tensor i; shared and tied weights count once.

    >>> from calculator.catalog import MODELS
    >>> from calculator.plan import Plan
    >>> from calculator.resolution import resolve
    >>> gpt2 = MODELS["gpt2-s"]
    >>> count_parameters(gpt2, resolve(gpt2, Plan()))  # transformers' GPT2LMHeadModel
    124439808

    Source: transformers
    """
    return sum(item.elements * item.copies for item in parameter_tensors(architecture, plan))


def count_in_experts(architecture: Architecture, plan: Plan) -> int:
    """Number of elements in the weights of all experts."""
    numbers = numbers_of(architecture, plan)
    return sum(
        copies * prod(number_of(size, numbers) for size in item.shape)
        for item, copies in counted_of(architecture, plan)
        if isinstance(item, Parameter) and item.chosen is not None
    )


def count_active(architecture: Architecture, plan: Plan) -> int:
    r"""Number of elements in the weights used by one token: all except those of other experts.

    $$P - \sum_e n_e \left(1 - \frac{k}{E}\right)$$

    with n_e the elements of each weight of experts, E the experts and k those chosen for a token.

    >>> from calculator.catalog import find_model
    >>> from calculator.plan import Plan
    >>> from calculator.resolution import resolve
    >>> mixtral = find_model("mistralai/Mixtral-8x7B-v0.1")
    >>> f"{count_active(mixtral, resolve(mixtral, Plan())) / 1e9:.0f}"  # printed: 13 billion
    '13'

    Source: mixtral (section 2)
    """
    numbers = numbers_of(architecture, plan)
    total = 0
    for item, copies in counted_of(architecture, plan):
        if isinstance(item, Parameter):
            shape = item.shape if item.chosen is None else (item.chosen, *item.shape[1:])
            total += copies * prod(number_of(size, numbers) for size in shape)
    return total
