import copy
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator.errors import InputError
from training.optimizer import lamb
from training.optimizer.lamb import Lamb, dequantise, dynamic_levels, quantise
from training.run.recipes import RECIPES, OptimizerSettings

PLAIN = OptimizerSettings(learning_rate=0.01, state_bits=32)
SMALL_BLOCKS = replace(
    PLAIN, state_bits=8, smallest_quantised=2**10, block_size=256, chunk_size=2**11
)


def reference_step(
    weights: torch.Tensor,
    gradient: torch.Tensor,
    state: dict[str, Any],
    options: OptimizerSettings,
    clip: float,
    decay: float,
) -> torch.Tensor:
    """LAMB as algorithm 2 of the paper writes it, in double precision, without bias correction."""
    gradient = gradient.double() * clip
    beta1, beta2 = options.betas
    state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * gradient
    state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * gradient**2
    update = state["m"] / (state["v"].sqrt() + options.epsilon) + decay * weights
    weight_norm = min(weights.norm().item(), options.max_weight_norm)
    ratio = weight_norm / update.norm().item() if weight_norm > 0 else 1.0
    return weights - options.learning_rate * ratio * update


@pytest.mark.parametrize("gradient_size", [0.1, 30.0])  # within and beyond the clipping norm
@pytest.mark.parametrize("max_weight_norm", [10_000.0, 2.0])
def test_32_bit_mode_equals_the_reference(gradient_size: float, max_weight_norm: float) -> None:
    # in the smallest chunks: every tensor is updated in more than one
    options = replace(PLAIN, max_weight_norm=max_weight_norm, chunk_size=PLAIN.block_size)
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(40, 30, generator=generator), torch.zeros(30)
    parameters, decays = [torch.nn.Parameter(one) for one in first], (0.045, 0.0)
    expected = [parameter.detach().double() for parameter in parameters]
    groups = zip(parameters, decays, strict=True)
    optimizer = Lamb([{"params": [p], "weight_decay": decay} for p, decay in groups], options)
    states: list[dict[str, Any]] = [{}, {}]
    for _ in range(10):
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator) * gradient_size
        norm = math.sqrt(sum(float(p.grad.double().square().sum()) for p in parameters))
        clip = min(1.0, options.max_gradient_norm / norm)
        optimizer.step()
        for index, decay in enumerate(decays):
            expected[index] = reference_step(
                expected[index], parameters[index].grad, states[index], options, clip, decay
            )
            torch.testing.assert_close(
                parameters[index].detach().double(), expected[index], atol=1e-6, rtol=1e-6
            )


def minimise(options: OptimizerSettings, steps: int = 200) -> float:
    """Mean squared error left after fitting a linear map."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(256, 64, generator=generator)
    targets = inputs @ torch.randn(64, 64, generator=generator)
    weights = torch.nn.Parameter(torch.randn(64, 64, generator=generator) * 0.1)
    optimizer = Lamb([weights], options)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / steps)
        optimizer.zero_grad()
        loss = (inputs @ weights - targets).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def test_8_bit_states_fit_as_well_as_32_bit_ones() -> None:
    undecayed = replace(SMALL_BLOCKS, weight_decay=0.0)
    exact = minimise(replace(undecayed, state_bits=32))
    quantised = minimise(undecayed)
    assert exact < 0.5  # starts at 64
    assert quantised == pytest.approx(exact, rel=0.1, abs=0.05)


def test_chunks_do_not_change_the_update() -> None:
    results = []
    for chunk_size in (2**8, 2**11, 2**20):
        generator = torch.Generator().manual_seed(0)
        weights = torch.nn.Parameter(torch.randn(5000, generator=generator))
        optimizer = Lamb([weights], replace(SMALL_BLOCKS, chunk_size=chunk_size))
        for _ in range(3):
            weights.grad = torch.randn(5000, generator=generator)
            optimizer.step()
        results.append(weights.detach())
    for result in results[1:]:
        torch.testing.assert_close(results[0], result, atol=0, rtol=1e-6)


def test_8_bit_states_take_two_bytes_a_parameter_and_small_tensors_keep_32_bits() -> None:
    large, small = (torch.nn.Parameter(torch.zeros(count)) for count in (2**17, 2**16 - 1))
    large.grad, small.grad = torch.ones(len(large)), torch.ones(len(small))
    optimizer = Lamb([large, small], RECIPES["paper"].optimizer)
    optimizer.step()
    state = optimizer.state[large]
    # Two codes of a byte, and two float32 scales for each 4,096 elements.
    expected = 2 * 2**17 + 2 * 4 * 2**17 // 4096
    assert sum(t.numel() * t.element_size() for t in state.values()) == expected
    assert all(t.device.type == "cpu" for t in state.values())
    assert {t.dtype for t in optimizer.state[small].values()} == {torch.float32}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library's imports
def test_the_librarys_first_step_on_zero_gradients_changes_nothing() -> None:
    from hivemind.optim.state_averager import initialize_optimizer_state_

    weights = torch.nn.Parameter(torch.randn(3000))
    before = weights.detach().clone()
    optimizer = Lamb([weights], SMALL_BLOCKS)
    initialize_optimizer_state_(optimizer)
    torch.testing.assert_close(weights.detach(), before, atol=0, rtol=0)
    state, block = optimizer.state[weights], optimizer.settings.block_size
    assert len(state) == 4
    for name in ("momentum", "variance"):
        codes = lamb.QuantisedTensor(state[name], state[f"{name}_scales"])
        assert not dequantise(codes, name == "momentum", block).any()


@pytest.fixture
def stepped() -> tuple[Lamb, torch.nn.Parameter]:
    """An optimizer after its first step, and what it optimizes."""
    weights = torch.nn.Parameter(torch.randn(3000))
    optimizer = Lamb([weights], SMALL_BLOCKS)
    weights.grad = torch.randn(3000)
    optimizer.step()
    return optimizer, weights


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_bad_gradients_change_nothing(
    stepped: tuple[Lamb, torch.nn.Parameter], bad: float, caplog: pytest.LogCaptureFixture
) -> None:
    optimizer, weights = stepped
    before = copy.deepcopy([weights.detach(), *optimizer.state[weights].values()])
    weights.grad[7] = bad
    optimizer.step()
    for old, new in zip(before, [weights, *optimizer.state[weights].values()], strict=True):
        assert torch.equal(old, new)
    assert "not finite" in caplog.text


def test_saved_states_come_back_with_their_types(stepped: tuple[Lamb, torch.nn.Parameter]) -> None:
    optimizer, weights = stepped
    twin = torch.nn.Parameter(weights.detach().clone())
    restored = Lamb([twin], SMALL_BLOCKS)
    restored.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert restored.state[twin]["momentum"].dtype == torch.uint8
    twin.grad = weights.grad = torch.randn(3000)
    optimizer.step()
    restored.step()
    torch.testing.assert_close(twin, weights, atol=0, rtol=0)


@given(
    count=st.integers(1, 2000),
    signed=st.booleans(),
    spread=st.floats(0, 8),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=40)
def test_quantised_values_are_within_half_of_the_widest_gap_of_levels(
    count: int, signed: bool, spread: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(count, generator=generator) * 10 ** (
        -spread * torch.rand(count, generator=generator)
    )
    values = values if signed else values.abs()
    quantised = quantise(values, signed, 256)
    restored = dequantise(quantised, signed, 256)
    assert quantised.codes.dtype == torch.uint8
    scales = quantised.scales.repeat_interleave(256)[:count]
    levels = dynamic_levels(signed)
    most = 1.01 * levels.diff().max() / 2 * scales  # some go the other way just off the middle
    assert bool(((restored - values).abs() <= most).all())


def test_chunks_that_cut_blocks_are_refused() -> None:
    with pytest.raises(InputError, match=r"chunk_size .*multiple of block_size"):
        Lamb([torch.nn.Parameter(torch.ones(3))], replace(PLAIN, chunk_size=5000))
