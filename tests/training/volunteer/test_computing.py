"""Micro-batches in the precision of old GPUs, by the same code on a processor."""

from types import SimpleNamespace

import pytest
import torch

from tests.training.conftest import Batch
from training.model.transformer import TextToImageTransformer
from training.volunteer import computing as module
from training.volunteer.computing import Computing, Later, Outcome
from training.volunteer.precision import Precision, choose_precision

CPU = torch.device("cpu")


def gradients(model: TextToImageTransformer) -> list[torch.Tensor]:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def test_scaled_gradients_add_up_as_ordinary(model: TextToImageTransformer, batch: Batch) -> None:
    losses, sums = [], []
    for kind in (Precision.FLOAT32, Precision.FLOAT16):
        model.zero_grad()
        computing = Computing(model, CPU, kind)
        computed = [computing.add(batch) for _ in range(2)]
        assert [one.outcome for one in computed] == [Outcome.ADDED] * 2
        losses.append(computed[0].loss)
        sums.append(torch.cat([g.flatten() for g in gradients(model)]))
    assert computing.scale == 2**16
    assert losses[1] == pytest.approx(losses[0], rel=1e-2)
    assert (sums[1] - sums[0]).norm() < 0.02 * sums[0].norm()  # 11 bits of mantissa


def test_small_gradients_vanish_if_not_scaled(model: TextToImageTransformer, batch: Batch) -> None:
    norms = []
    for scale in (1.0, 2.0**16):
        faint = Computing(model, CPU, Precision.FLOAT16)
        faint.model = lambda **given: SimpleNamespace(loss=model(**given).loss * 1e-6)
        faint.scale = scale
        model.zero_grad()
        assert faint.add(batch).outcome is Outcome.ADDED
        norms.append(torch.stack([g.norm() for g in gradients(model)]))
    lost = (norms[0] == 0) & (norms[1] > 0)
    assert lost.any()


def test_the_scale_falls_until_it_fits_and_grows_after_many(
    model: TextToImageTransformer, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROWTH_INTERVAL", 3)
    scaled = Computing(model, CPU, Precision.FLOAT16)
    scaled.scale = 2.0**40
    outcomes = [scaled.add(batch).outcome for _ in range(40)]
    first = outcomes.index(Outcome.ADDED)
    assert set(outcomes[:first]) == {Outcome.OVERFLOWED}
    assert Outcome.OVERFLOWED in outcomes[first:]  # it tries a larger one now and then
    assert outcomes[first:].count(Outcome.ADDED) >= 3 * outcomes[first:].count(Outcome.OVERFLOWED)


@pytest.mark.parametrize(
    ("kind", "factor", "outcome", "scale"),
    [
        (Precision.FLOAT32, torch.nan, Outcome.NOT_FINITE, 1.0),
        (Precision.FLOAT16, torch.nan, Outcome.NOT_FINITE, 2.0**16),
        (Precision.FLOAT16, 2.0**44, Outcome.OVERFLOWED, 2.0**15),
    ],
)
def test_what_is_not_finite_is_left_out(
    model: TextToImageTransformer,
    batch: Batch,
    kind: Precision,
    factor: float,
    outcome: Outcome,
    scale: float,
) -> None:
    computing = Computing(model, CPU, kind)
    computing.add(batch)
    before = gradients(model)
    computing.model = lambda **given: SimpleNamespace(loss=model(**given).loss * factor)
    assert computing.add(batch).outcome is outcome
    assert computing.scale == scale
    torch.testing.assert_close(gradients(model), before, rtol=0, atol=0)


def test_the_backward_pass_is_not_held_up_by_reading_the_loss(
    model: TextToImageTransformer, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    class OnDevice(Later):
        """A loss that the device has not computed yet."""

        def is_there(self) -> bool:
            return False

        def read(self) -> float:
            events.append("read")
            return super().read()

    monkeypatch.setattr(module, "Later", OnDevice)
    for parameter in model.parameters():
        parameter.register_hook(lambda _gradient: events.append("backward"))
    computing = Computing(model, CPU, Precision.FLOAT32)
    assert computing.add(batch).outcome is Outcome.ADDED
    assert events[-1] == "read"
    assert events.count("read") == 1
    computing.model = lambda **given: SimpleNamespace(loss=model(**given).loss * torch.nan)
    assert computing.add(batch).outcome is Outcome.SPOILT  # too late to leave it out alone


# T4, V100 and P100 have no units for bfloat16; A100, consumer Ampere and H100 do.
@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ([(7, 5), (7, 0), (6, 0)], Precision.FLOAT16),
        ([(8, 0), (8, 6), (9, 0)], Precision.BFLOAT16),
    ],
)
def test_a_device_computes_in_what_it_has_units_for(
    monkeypatch: pytest.MonkeyPatch, capabilities: list[tuple[int, int]], expected: Precision
) -> None:
    for capability in capabilities:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, c=capability: c)
        assert choose_precision(torch.device("cuda")) is expected
    assert choose_precision(CPU) is Precision.FLOAT32
