"""Volunteers in the page: parts, averages, one update for all, and the state of a newcomer."""

import base64
import json

import pytest
import torch
from hivemind.compression.base import CompressionInfo
from safetensors.torch import load, load_file

from benchmarks import lesson
from calculator.swarm.aggregation import Aggregation
from calculator.swarm.communication import transfer_seconds
from templates.pages.train_in_this_tab.context import LESSON, about
from tests.training.tab.scripts import ask
from training.averaging.aggregation import aggregate
from training.averaging.wire import WireCompression, WireFormat
from training.sparse.codec import Update, decode, encode
from training.sparse.layout import Layout
from training.sparse.shared import Contribution, SharedState


def test_the_parts_are_the_whole_vector_in_order_and_even() -> None:
    parts = ask("parts", count=11, members=3)
    assert [(part["start"], part["end"]) for part in parts] == [(0, 3), (3, 7), (7, 11)]


@pytest.mark.parametrize("kind", [Aggregation.MEAN, Aggregation.CENTERED_CLIP])
@pytest.mark.parametrize(
    ("weights", "factors"),
    [
        ([4.0, 12.0], [1, 1]),
        ([4.0, 0.0, 12.0], [1, 1, 1]),
        ([4.0, 8.0, 40.0], [1, 1, -2]),
        ([8.0, 8.0, 8.0, 4.0], [1, 1, 1000, 1]),
        ([0.0, 0.0, 0.0], [1, 2, 0]),
        ([1.0, 1.0, 1.0], [0, 0, 1]),
    ],
)
def test_averages_equal_ours(kind: Aggregation, weights: list[float], factors: list[float]) -> None:
    torch.manual_seed(1)
    vectors = [factor * (1 + torch.randn(50)) for factor in factors]
    expected = aggregate(vectors, weights, kind)
    found = ask("aggregated", vectors=vectors, weights=weights, aggregation=kind.value)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_one_opposite_of_three_cancels_the_mean_of_real_gradients_but_not_centered_clip() -> None:
    gradients = ask("trained", file=str(LESSON), batches=[4, 4, 4], bits=32)["gradients"]
    honest = (gradients[0] + gradients[1]) / 2
    sent = [*gradients[:2], ask("sent", gradient=gradients[2], behavior="pull")]
    steps = {
        kind: ask("aggregated", vectors=sent, weights=[1, 1, 1], aggregation=kind)
        for kind in ("mean", "centered-clip")
    }
    shares = {kind: float(step @ honest / honest.square().sum()) for kind, step in steps.items()}
    assert shares["mean"] < 0.25
    assert shares["centered-clip"] > 0.75


@pytest.mark.parametrize(("behavior", "factor"), [("pull", -2), ("scale", 1000), ("honest", 1)])
def test_attacks_multiply_the_honest_gradient(behavior: str, factor: int) -> None:
    gradient = torch.tensor([1.0, -2.0, 0.5])
    assert torch.equal(ask("sent", gradient=gradient, behavior=behavior), factor * gradient)


def test_two_of_five_that_collude_add_the_same_direction_which_clipping_hardly_shortens() -> None:
    gradients = ask("trained", file=str(LESSON), batches=[2] * 5, bits=32)["gradients"]
    bad = [ask("sent", gradient=one, behavior="collude") for one in gradients[3:]]
    added = [one - honest for one, honest in zip(bad, gradients[3:], strict=True)]
    cosine = added[0] @ added[1] / added[0].norm() / added[1].norm()
    assert cosine > 0.999
    direction = added[0] / added[0].norm()
    sent = [*gradients[:3], *bad]
    along = {
        kind: float(ask("aggregated", vectors=sent, weights=[1] * 5, aggregation=kind) @ direction)
        for kind in ("mean", "centered-clip")
    }
    assert along["centered-clip"] > 0.5 * along["mean"] > 0


def test_a_home_carries_one_message_after_the_other_as_long_as_the_calculator_says() -> None:
    sizes, rate = [250_000, 1_000_000, 10], 20e6
    arrivals = ask("carried", bytes=sizes, bitsPerSecond=rate)
    sums = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    assert arrivals == pytest.approx([transfer_seconds(size, rate) for size in sums])
    assert ask("carried", bytes=sizes) == [0, 0, 0]


@pytest.mark.parametrize(
    ("slope", "guess", "words"),
    [
        (-0.02, "falls", "noise. In the 60 exchanges since then, the loss kept falling, as you"),
        (0.0, "falls", "the loss stalled. You guessed that it would have kept falling"),
        (0.02, "", "the loss rose."),
    ],
)
def test_the_figure_answers_a_guess_by_the_loss(slope: float, guess: str, words: str) -> None:
    noise = torch.randn(60, generator=torch.Generator().manual_seed(5))
    losses = (2 + slope * torch.arange(60) + 0.1 * noise).tolist()
    assert words in ask("guessed", losses=losses, guess=guess)


@pytest.mark.parametrize(("bits", "wire"), [(32, "exact"), (16, "float16"), (8, "adaptive")])
def test_what_arrives_is_what_the_library_makes_of_each_piece(bits: int, wire: str) -> None:
    torch.manual_seed(2)
    sizes, part = [1500, 700, 3000], {"start": 200, "end": 4000}
    vector = torch.cat([torch.randn(size) * 10.0**-index for index, size in enumerate(sizes)])
    if bits == 16:  # beyond what 16 bits hold, and below
        vector[300:1500:240] = torch.tensor([1e6, -7e4, 3e-6, 5.96e-8, 0.0])
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    tensors = [
        {"name": str(start), "shape": [size], "start": start, "size": size}
        for start, size in zip(starts, sizes, strict=True)
    ]
    answer = ask(
        "wired", vector=vector, part=part, tensors=tensors, format={"bits": bits, "threshold": 1024}
    )
    compression, expected, size = WireCompression(WireFormat(wire), 1024), [], 0
    for start, whole in zip(starts, vector.split(sizes), strict=True):
        kept = whole[max(0, part["start"] - start) : part["end"] - start]
        chosen = compression.choose_compression(CompressionInfo.from_tensor(whole))
        packed = chosen.compress(kept, CompressionInfo.from_tensor(kept))
        size += len(packed.buffer) - (8 if bits == 8 and len(whole) >= 1024 else 0)
        expected.append(chosen.extract(packed))
    torch.testing.assert_close(answer["values"], torch.cat(expected), rtol=1e-5, atol=1e-6)
    assert answer["bytes"] == size  # without the 8 bytes that give a codebook's length


def test_members_average_by_what_they_computed_and_then_have_the_same_weights() -> None:
    batches = [3, 1, 0]
    answer = ask("trained", file=str(LESSON), batches=batches, bits=32)
    gradients = answer["gradients"]
    expected = sum(gradients) / sum(batches)  # each is a sum over its batches
    torch.testing.assert_close(answer["average"], expected, rtol=1e-4, atol=1e-7)
    assert not torch.equal(answer["weights"][0], answer["before"])
    for weights in answer["weights"][1:]:  # to the last bit; the last is a newcomer's
        assert torch.equal(weights, answer["weights"][0])
    assert answer["step"] == 1
    size = 4 * len(answer["before"])  # each sends two parts of three, and its own part twice
    assert answer["bytes"] == pytest.approx([4 / 3 * size] * 3, rel=1e-4)


def test_in_8_bits_all_weights_are_the_same_too_and_a_quarter_of_the_bytes_is_sent() -> None:
    whole, small = (ask("trained", file=str(LESSON), batches=[1, 1], bits=b) for b in (32, 8))
    first, *others = small["weights"]
    assert all(torch.equal(weights, first) for weights in others)
    assert not torch.equal(first, whole["weights"][0])
    assert sum(small["bytes"]) == pytest.approx(sum(whole["bytes"]) / 4, rel=0.15)


def assert_same_magnitudes(learned: torch.Tensor, update: Update, expected: Update) -> None:
    """Of equal elements, as AdamW's first step makes them, any may be kept."""
    kept, other = (learned[one.places].abs().sort().values for one in (update, expected))
    assert torch.equal(kept, other)
    values, others = (one.values.abs().sort().values for one in (update, expected))
    torch.testing.assert_close(values, others, rtol=2**-7, atol=0)


def test_local_steps_give_the_weights_of_the_trainers_shared_step_and_keep_what_was_not_sent() -> (
    None
):
    batches = [3, 1, 0]
    answer = ask("localSteps", file=str(LESSON), batches=batches, rounds=2)
    layout = Layout(tuple(one["size"] for one in ask("tensors", shape=about()["model"])))
    state = SharedState(answer["before"])
    for sent in answer["sent"]:
        assert sent["bytes"] == [layout.update_bytes, layout.update_bytes, 0]
        contributions = []
        for learned, content, count in zip(sent["learned"], sent["contents"], batches, strict=True):
            if not count:
                continue
            update = decode(base64.b64decode(content), layout)
            expected = decode(encode(learned, layout), layout)
            assert_same_magnitudes(learned, update, expected)
            contributions.append(Contribution.of(4 * count, update))
        state.step(contributions, about()["outer"]["learning_rate"])
    for weights in answer["weights"]:  # to the last bit; the last is a newcomer's
        assert torch.equal(weights, state.weights)
    rest = answer["sent"][-1]["learned"][0] - contributions[0].read().dense(layout.elements)
    assert torch.equal(answer["residuals"][0], rest)
    assert answer["residuals"][2].abs().max() == 0
    assert answer["step"] == 8


def test_an_update_that_lies_is_of_the_opposite_sign_and_its_sender_stays_sound() -> None:
    (sent,) = ask(
        "localSteps", file=str(LESSON), batches=[1, 1], rounds=1, behaviors={"2": "pull"}
    )["sent"]
    layout = Layout(tuple(one["size"] for one in ask("tensors", shape=about()["model"])))
    told = decode(base64.b64decode(sent["contents"][1]), layout)
    expected = decode(encode(-2 * sent["learned"][1], layout), layout)
    assert_same_magnitudes(sent["learned"][1], told, expected)
    assert (told.values.sign() == -sent["learned"][1][told.places].sign()).all()


def test_the_lesson_is_what_the_recipe_and_the_shapes_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson, "PICTURES", 64)
    packed = lesson.pack_lesson()
    header = json.loads(packed[8 : 8 + int.from_bytes(packed[:8], "little")])
    assert json.loads(header["__metadata__"]["about"]) == about()
    made, kept = load(packed), load_file(LESSON)
    assert set(made) == set(kept)
    for name, tensor in made.items():
        assert torch.equal(tensor, kept[name][:64] if name.startswith("lesson.") else kept[name])
    assert len(kept["lesson.codes"]) == 2048
