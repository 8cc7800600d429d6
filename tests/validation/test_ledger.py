"""The ledger on real tensors: it must count what happens, and not change it."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the ledger counts PyTorch's tensors")
pytest.importorskip("transformers", reason="the models are transformers' classes")

from torch.profiler import ProfilerActivity, profile  # noqa: E402

from validation.configuration import parse  # noqa: E402
from validation.ledger import Ledger  # noqa: E402
from validation.modules import Modules  # noqa: E402
from validation.session import session  # noqa: E402
from validation.storage import Moment, Part, block_bytes  # noqa: E402

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


@pytest.mark.parametrize("model", ["gpt2-s", "bert-base", "t5-small"])
def test_autograd_adds_gradients_in_place_as_it_does_without_a_ledger(model: str) -> None:
    words = f"{model} --layers 1 --batch-size 2 --sequence-length 16 --attention eager"
    with session(
        parse([*words.split(), "--precision", "fp32", "--optimizer", "sgd"]), "cpu"
    ) as made:
        counted = [
            event.made[0][0]
            for event in made.step_logged()
            if event.operation == "aten.add.Tensor" and event.moment is Moment.BACKWARD
        ]
        loss = made.task.model(**made.task.inputs).loss
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            loss.backward()
    events: list[Any] = [event for event in profiler.events() or [] if event.name == "aten::add"]
    events.sort(key=lambda event: event.time_range.start)
    assert counted == [tuple(event.input_shapes[0]) for event in events]
    assert counted  # the tied embedding's two gradients, at least


def test_a_storage_is_counted_once_and_until_its_last_view_goes() -> None:
    ledger = Ledger("cpu", Modules(torch.nn.Linear(1, 1)))
    with ledger:
        whole = torch.empty(1000)
        view = whole[:10]
        assert ledger.total() == block_bytes(4000) == 4096
        del whole
        assert ledger.total() == 4096
        del view
    assert ledger.total() == 0


def test_a_peak_knows_its_moment_and_operation() -> None:
    ledger = Ledger("cpu", Modules(torch.nn.Linear(1, 1)))
    with ledger:
        weight = torch.empty(128)
        ledger.enter([weight], Part.WEIGHTS)
        ledger.start(Moment.UPDATE)
        torch.sin(weight)
    peak = ledger.peaks[Moment.UPDATE]
    assert (peak.total, peak.operation) == (1024, "aten.sin.default")
    assert peak.parts[Part.WEIGHTS] == peak.parts[Part.TEMPORARIES] == 512
