import gc
import math
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch.nn import functional
from torch.profiler import profile

from calculator.errors import InputError
from tests.training.conftest import Batch
from training.model.build import build_model, config_of, example
from training.model.configuration import TextToImageConfig
from training.model.transformer import TextToImageTransformer
from training.optimizer import lamb
from training.run.recipes import (
    PAPER,
    RECIPES,
    REHEARSAL,
    ModelSettings,
    Recipe,
    ScheduleSettings,
    learning_rate_factor,
)


# 125,894,244 and 1,116,354,148: counted from the shapes of the 2021 run's published weights.
@pytest.mark.parametrize(("groups", "expected"), [(4, 125_894_244), (None, 1_116_354_148)])
def test_the_paper_has_the_published_parameter_count(groups: int | None, expected: int) -> None:
    recipe = RECIPES["paper"]
    recipe = replace(recipe, model=replace(recipe.model, sharing_groups=groups))
    with torch.device("meta"):
        model = TextToImageTransformer(config_of(recipe))
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_layers_share_weights_in_turn_and_the_last_has_its_own() -> None:
    config = config_of(RECIPES["paper"])
    assert [config.group(depth) for depth in (0, 1, 4, 62, 63)] == [0, 1, 0, 2, 4]
    kinds = [config.attention_kind(depth).value for depth in range(64)]
    assert kinds[:8] == ["row", "column", "row", "row"] * 2
    assert kinds.count("convolutional") == 1
    assert kinds[63] == "convolutional"


def test_layer_scales_go_by_the_number_of_the_layer() -> None:
    # DALLE-pytorch's LayerScale(dim, ind + 1, ...): 0.1 up to 18, 1e-5 up to 24, then 1e-6.
    with torch.device("meta"):
        model = TextToImageTransformer(config_of(RECIPES["paper"]))
    expected = 18 * [0.1] + 6 * [1e-5] + 40 * [1e-6]
    assert [depth.initial_scale for depth in model.depths] == expected
    shallow = replace(RECIPES["paper"].model, num_hidden_layers=26, hidden_size=8, head_size=2)
    for own in build_model(replace(RECIPES["paper"], model=shallow)).depths:
        for scale in (own.attention_scale, own.feed_forward_scale):
            assert torch.equal(scale, torch.full((8,), own.initial_scale))


WORDS = 8


def draw_riddles(count: int, random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Captions int64 [count, 2] of a word, and pictures int64 [count, 16].

    Every second code is the word's; the rest are noise. Before a word's code stands noise and
    before noise a word's code, so that the code before says nothing of which of the 8 comes: the
    best table of pairs has a loss of log 8.
    """
    word = torch.randint(1, WORDS + 1, (count, 1), generator=random)
    codes = torch.randint(0, WORDS, (count, 16), generator=random)
    codes[:, 1::2] = word + WORDS - 1
    return functional.pad(word, (0, 1)), codes


def miniature() -> Recipe:
    """`paper` with 26 layers, enough for all three initial scales, and little else."""
    paper = RECIPES["paper"]
    model = replace(
        paper.model,
        text_vocabulary_size=WORDS + 1,
        text_length=2,
        image_vocabulary_size=2 * WORDS,
        image_side=4,
        hidden_size=32,
        num_hidden_layers=26,
        num_attention_heads=2,
        head_size=16,
    )
    optimizer = replace(RECIPES["tiny"].optimizer, learning_rate=0.1)
    return replace(paper, model=model, optimizer=optimizer, schedule=ScheduleSettings(40, 4))


def test_the_paper_in_miniature_beats_a_table_of_pairs() -> None:
    recipe, random = miniature(), torch.Generator().manual_seed(0)
    model = build_model(recipe).train()
    optimizer = lamb.build_optimizer(recipe, lamb.parameter_groups(model, recipe))
    schedule = lamb.build_schedule(recipe, optimizer)
    for step in range(recipe.schedule.total_steps):
        rate = recipe.optimizer.learning_rate * learning_rate_factor(recipe.schedule, step)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate)
        model(*draw_riddles(16, random)).loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    with torch.no_grad():
        loss = float(model(*draw_riddles(64, random)).image_loss)
    assert loss < 0.75 * math.log(WORDS)


def test_losses_equal_those_of_masked_logits_over_all_tokens(
    model: TextToImageTransformer, text_ids: torch.Tensor, image_codes: torch.Tensor
) -> None:
    # As in DALLE-pytorch: one softmax over words, padding and codes, the wrong side masked.
    output = model(text_ids, image_codes, return_logits=True)
    words = model.config.text_vocabulary_size
    padding = torch.arange(model.config.text_length) + words
    targets = torch.where(text_ids == 0, padding, text_ids)
    text_tokens = output.text_logits.shape[-1]
    masked_text = functional.pad(
        output.text_logits, (0, model.config.image_vocabulary_size), value=-torch.inf
    )
    masked_image = functional.pad(output.image_logits, (text_tokens, 0), value=-torch.inf)
    text_loss = functional.cross_entropy(masked_text.flatten(0, 1), targets.flatten())
    image_targets = (image_codes + text_tokens).flatten()
    image_loss = functional.cross_entropy(masked_image.flatten(0, 1), image_targets)
    torch.testing.assert_close(output.text_loss, text_loss.detach())
    torch.testing.assert_close(output.image_loss, image_loss.detach())
    torch.testing.assert_close(output.loss, (text_loss + 7 * image_loss) / 8)


def test_new_models_know_nothing() -> None:
    # Logits near zero: each loss is the logarithm of the number of tokens on its side.
    recipe = RECIPES["tiny"]
    model = build_model(recipe)
    generator = torch.Generator().manual_seed(0)
    text_ids = torch.randint(1, 32, (8, 10), generator=generator)
    image_codes = torch.randint(0, 128, (8, 64), generator=generator)
    output = model(text_ids, image_codes)
    assert float(output.text_loss) == pytest.approx(math.log(32 + 10), abs=0.1)
    assert float(output.image_loss) == pytest.approx(math.log(128), abs=0.1)


@pytest.mark.parametrize("token_shift", [True, False])
def test_no_prediction_looks_ahead(
    config: TextToImageConfig, text_ids: torch.Tensor, image_codes: torch.Tensor, token_shift: bool
) -> None:
    config.token_shift = token_shift
    model = TextToImageTransformer(config)
    before = model(text_ids, image_codes, return_logits=True)
    changed = image_codes.clone()
    changed[:, 9] = (changed[:, 9] + 1) % 16
    after = model(text_ids, changed, return_logits=True)
    torch.testing.assert_close(before.text_logits, after.text_logits)
    torch.testing.assert_close(before.image_logits[:, :10], after.image_logits[:, :10])
    assert not torch.allclose(before.image_logits[:, 10:], after.image_logits[:, 10:])


def test_every_code_depends_on_the_caption(
    model: TextToImageTransformer, text_ids: torch.Tensor, image_codes: torch.Tensor
) -> None:
    before = model(text_ids, image_codes, return_logits=True).image_logits
    text_ids[:, 0] = text_ids[:, 0] % 19 + 1
    after = model(text_ids, image_codes, return_logits=True).image_logits
    assert (before - after).abs().amax(dim=(0, 2)).min() > 1e-4


def gradients(model: TextToImageTransformer, batch: Batch) -> dict[str, torch.Tensor]:
    model.zero_grad()
    model(**batch).loss.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


Gradients = dict[str, torch.Tensor]


def both_ways(model: TextToImageTransformer, batch: Batch) -> tuple[Gradients, Gradients]:
    """The gradients with reversible layers, and those with ordinary ones."""
    reversible = gradients(model, batch)
    model.config.reversible = False
    return reversible, gradients(model, batch)


def test_attending_in_lines_changes_nothing(model: TextToImageTransformer, batch: Batch) -> None:
    masked = gradients(model, batch)
    model.attend_in_lines()
    for name, ours in gradients(model, batch).items():
        torch.testing.assert_close(ours, masked[name], atol=1e-4, rtol=1e-4, msg=name)


@pytest.mark.parametrize(
    ("changes", "rtol"),
    [
        ({"sharing_groups": 2}, 1e-4),
        ({"sharing_groups": 4}, 1e-4),
        ({"sharing_groups": None}, 1e-4),
        ({"num_hidden_layers": 64, "layer_scale": 0.1}, 1e-3),
    ],
)
def test_reversible_gradients_equal_ordinary_ones(
    shape: dict[str, Any], batch: Batch, changes: dict[str, Any], rtol: float
) -> None:
    model = TextToImageTransformer(TextToImageConfig(**shape | changes))
    reversible, ordinary = both_ways(model, batch)
    for name, expected in ordinary.items():
        torch.testing.assert_close(reversible[name], expected, atol=1e-4, rtol=rtol, msg=name)
        assert expected.abs().max() > 0 or name.endswith("bias"), name


def test_reversible_gradients_under_autocast(model: TextToImageTransformer, batch: Batch) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        reversible, ordinary = both_ways(model, batch)
    for name, expected in ordinary.items():
        error = (reversible[name] - expected).norm() / expected.norm().clamp_min(1e-3)
        assert error < 0.05, name  # bfloat16 has 8 bits of mantissa


def test_reversible_gradients_accumulate(model: TextToImageTransformer, batch: Batch) -> None:
    once = gradients(model, batch)
    model(**batch).loss.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, 2 * once[name], atol=1e-5, rtol=1e-4)


def test_frozen_parameters_get_no_gradient(model: TextToImageTransformer, batch: Batch) -> None:
    model.groups[0].attention.requires_grad_(False)
    model(**batch).loss.backward()
    assert model.groups[0].attention.output.weight.grad is None
    assert model.groups[0].feed_forward.contract.weight.grad is not None


def test_a_second_backward_pass_is_refused(model: TextToImageTransformer, batch: Batch) -> None:
    loss = model(**batch).loss
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backward once for each forward"):
        loss.backward()


def living_tensors() -> list[torch.Tensor]:
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) is torch.Tensor]


def kept_bytes(model: TextToImageTransformer, forward: Callable[[], object]) -> int:
    """Bytes that a forward pass leaves: what autograd saved, and what Python still holds."""
    before = [*model.parameters(), *living_tensors()]
    own = {tensor.untyped_storage().data_ptr() for tensor in before}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in own:
            kept[tensor.untyped_storage().data_ptr()] = tensor  # held, so no address comes twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = forward()
    for tensor in living_tensors():  # such as those on the tape of the reversible layers
        keep(tensor)
    total = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    del result
    return total


def test_reversible_activations_are_flat_in_depth(shape: dict[str, Any], batch: Batch) -> None:
    kept = {}
    for reversible in (True, False):
        for depth in (16, 64):
            shaped = shape | {"num_hidden_layers": depth, "reversible": reversible}
            model = TextToImageTransformer(TextToImageConfig(**shaped))
            kept[reversible, depth] = kept_bytes(model, lambda m=model: m(**batch))
    assert kept[True, 16] == kept[True, 64]
    streams = 2 * 3 * 21 * 32 * 4  # two of [3, 21, 32] in float32 are on the tape
    assert streams < kept[True, 16]
    assert kept[False, 64] > 3 * kept[False, 16]
    assert kept[True, 16] < kept[False, 16] / 10


@pytest.mark.parametrize("token_shift", [True, False])
@pytest.mark.parametrize("last", ["convolutional", "full"])
def test_cached_generation_equals_uncached(
    shape: dict[str, Any],
    text_ids: torch.Tensor,
    image_codes: torch.Tensor,
    token_shift: bool,
    last: str,
) -> None:
    shape = shape | {"token_shift": token_shift, "last_attention_kind": last}
    model = TextToImageTransformer(TextToImageConfig(**shape))
    logits, cache = model.start(text_ids)
    training = model(text_ids, image_codes, return_logits=True).image_logits.detach()
    for place in range(16):
        torch.testing.assert_close(logits, training[:, place], atol=1e-5, rtol=1e-5)
        if place < 15:
            logits = model.step(image_codes[:, place], cache)


def test_models_load_as_saved_with_either_kernel(
    model: TextToImageTransformer, batch: Batch, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path)
    loaded, report = TextToImageTransformer.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    for field in fields(ModelSettings):
        assert getattr(loaded.config, field.name) == getattr(model.config, field.name), field
    expected = model(**batch).loss
    torch.testing.assert_close(loaded(**batch).loss, expected, atol=0, rtol=0)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        saved = sum(file.get_tensor(name).numel() for name in file.keys())  # noqa: SIM118
    assert saved == model.num_parameters()  # shared weights are stored once
    eager = TextToImageTransformer.from_pretrained(tmp_path, attn_implementation="eager")
    chosen = [one.config._attn_implementation for one in (loaded, eager)]
    assert chosen == ["sdpa", "eager"]
    torch.testing.assert_close(eager(**batch).loss, expected)


def test_inputs_of_another_length_are_refused(
    model: TextToImageTransformer, text_ids: torch.Tensor, image_codes: torch.Tensor
) -> None:
    with pytest.raises(InputError, match=r"text_ids .*must be \[sequences, 5\]"):
        model(text_ids[:, :4], image_codes)
    with pytest.raises(InputError, match=r"image_codes .*must be \[sequences, 16\]"):
        model(text_ids, image_codes[:, :15])


def test_the_papers_recipe_has_the_papers_numbers() -> None:
    # Section 3.3 of the paper, and the settings that the 2021 run published.
    recipe = RECIPES["paper"]
    assert (recipe.schedule.total_steps, recipe.schedule.warmup_steps) == (31_250, 3_125)
    assert recipe.optimizer.learning_rate == 2.5e-3
    assert recipe.optimizer.betas == (0.9, 0.96)
    assert recipe.optimizer.weight_decay == 0.045
    assert recipe.optimizer.max_gradient_norm == 4.0
    assert recipe.swarm.target_batch_size == 4096
    assert recipe.swarm.compression_threshold == 2**16
    assert recipe.model.convolution_kernel == 5
    drawn = recipe.generation
    assert (drawn.images_per_prompt, drawn.keep, drawn.top_k, drawn.top_p) == (128, 4, 256, None)
    assert drawn.scorer == "openai/clip-vit-base-patch32"


def operators_of(recipe: Recipe, layers: int | None = None) -> set[str]:
    model = build_model(recipe, layers)
    model.train()
    model(**example(recipe)).loss.backward()  # makes masks and angles, once
    with profile() as operators:
        model(**example(recipe)).loss.backward()
    return {event.key for event in operators.key_averages()}


def test_one_layer_runs_every_operator_of_the_whole_model() -> None:
    """So a monitor warms up in a moment, whatever its model: the paper's has 64 layers."""
    whole = operators_of(REHEARSAL)
    assert len(whole) > 20
    assert whole - operators_of(REHEARSAL, 1) == set()
    assert build_model(PAPER, 1).config.num_hidden_layers == 1
