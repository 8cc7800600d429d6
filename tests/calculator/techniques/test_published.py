"""One GPU's share of Llama 3.1 8B by its config.json; measured rows hold whole steps."""

import pytest

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.report import Phase

LAYERS, WIDTH, HEADS, KEYS, HEAD, FEED, WORDS = 32, 4096, 32, 8, 128, 14_336, 128_256
TABLE, NORMS = WORDS * WIDTH, (2 * LAYERS + 1) * WIDTH
SPLIT = LAYERS * ((2 * HEADS + 2 * KEYS) * HEAD * WIDTH + 3 * FEED * WIDTH)
# its checkpoint's index on the Hub says 16,060,522,496 bytes of bfloat16
EVERY = 16_060_522_496 // 2


@pytest.mark.parametrize(
    ("options", "held", "bytes_each"),
    [
        ({}, EVERY, 2),
        ({"tensor_parallel": 4}, 2 * TABLE + NORMS + SPLIT // 4, 2),
        # the last of four stages has the output layer and the final norm beside its layers
        (
            {"pipeline_parallel": 4, "accumulation": 8},
            TABLE + WIDTH + (SPLIT + NORMS - WIDTH) // 4,
            2,
        ),
        ({"gpus": 64, "data_parallel": "fsdp", "precision": "mixed"}, EVERY // 64, 4),
        ({"gpus": 8, "context_parallel": 4, "data_parallel": "fsdp"}, EVERY // 8, 2),
    ],
    ids=str,
)
def test_each_gpu_has_its_share_of_weights_gradients_and_states(
    options: dict[str, object], held: int, bytes_each: int
) -> None:
    assert 2 * TABLE + NORMS + SPLIT == EVERY
    plan = Plan.parse({"sequence_length": 256, "precision": "half", **options})
    report = estimate(find_model("meta-llama/Llama-3.1-8B"), plan)
    update = report.phases[Phase.UPDATE]
    assert report.parameters == EVERY
    # rotary tables are beside the weights, and a norm's rows are padded
    assert update.weights == pytest.approx(bytes_each * held, rel=1e-3)
    assert update.gradients == pytest.approx(bytes_each * held, rel=1e-3)
    assert update.optimizer == pytest.approx(2 * bytes_each * held, rel=1e-3)
