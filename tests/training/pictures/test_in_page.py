"""The model in the live page: what is packed for it, and its script held against the Python."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load

from benchmarks.seeing import shows
from tests.training.scripts import Scripts
from tests.training.tab import test_learning
from tools.console import ROOT
from training.model import checkpoint
from training.model.build import build_model, config_of
from training.model.captions import WordTokenizer
from training.model.transformer import TextToImageTransformer
from training.pictures import generate, in_page, sampling
from training.pictures.codes import CodeModel
from training.run import atomic
from training.run.live import LiveFolder, read_samples
from training.run.recipes import REHEARSAL, TINY, GenerationSettings
from training.shapes.samples import WORDS

RECORDED = ROOT / "docs" / "live" / "rehearsal"
ASK = """
import { readFileSync } from "node:fs";
import { idsOf } from "./docs/assets/drawing/caption.js";
import { chances, generator } from "./docs/assets/drawing/chance.js";
import { Painter } from "./docs/assets/drawing/painter.js";
import { choose, truncate } from "./docs/assets/drawing/sampling.js";
import { gate } from "./docs/assets/tab/layers.js";

delete globalThis.WebAssembly; // as where a browser's owner turned it off
let content;
const painter = () => new Painter(new Uint8Array(content).buffer);
const failing = (run) => { try { return run(); } catch (error) { return error.message; } };
const asked = {
  logits: ([ids, codes]) => {
    const { transformer } = painter();
    const read = (sequence) => {
      transformer.begin(sequence);
      const first = [...transformer.logits];
      return [first, ...codes.map((code) => (transformer.add(code), [...transformer.logits]))];
    };
    read(ids.toReversed()); // another picture, of which nothing may stay
    return read(ids);
  },
  values: (codes) => [...painter().decoder.decode(codes).values],
  drawn: (orders) => {
    const one = painter();
    const pixelsOf = (pictures) => [...pictures].map(({ pixels }) => [...pixels]);
    return orders.map(([caption, seed]) => pixelsOf(one.draw(caption, seed)));
  },
  truncated: (cases) => cases.map(([logits, settings]) => truncate(logits, settings)),
  chosen: ([codes, count]) => {
    const chance = chances(5, 0);
    return Array.from({ length: count }, () => choose(codes, chance()));
  },
  whole: ([state, count]) => {
    const next = generator(Uint32Array.from(state));
    return Array.from({ length: count }, () => next());
  },
  ids: (captions) => captions.map((caption) => failing(() => idsOf(caption, painter().about))),
  gelu(values) {
    const [gates, slopes, out] = Array.from({ length: 3 }, () => new Float32Array(values.length));
    gate(new Float32Array([...values.map(() => 1), ...values]), values.length, gates, slopes, out);
    return [...out];
  },
  opened: () => failing(() => painter() && "opened"),
};
const answers = {
  drawing({ order, values, file }) {
    content = file && readFileSync(file);
    return asked[order](values);
  },
};
"""
SCRIPTS = Scripts(ASK)


def ask(name: str, values: object = None, file: Path | None = None) -> Any:
    """Ask the page's own script, run by Node."""
    return SCRIPTS.ask("drawing", order=name, values=values, file=str(file) if file else None)


def random_model(**changes: object) -> TextToImageTransformer:
    """A small model whose every parameter matters and is a number of 16 bits."""
    model = test_learning.random_model(**changes).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())
    return model


@pytest.fixture
def packed(tmp_path: Path) -> Callable[[TextToImageTransformer], Path]:
    """Writes the file that the monitor would write for a model."""

    def pack(model: TextToImageTransformer) -> Path:
        (tmp_path / "drawing.safetensors").write_bytes(in_page.pack(model, TINY))
        return tmp_path / "drawing.safetensors"

    return pack


# And other places of words, attention by a wide kernel alone, a picture of one row.
SHAPES: list[dict[str, object]] = [
    *test_learning.SMALL_SHAPES,
    {"attention_kinds": ["convolutional"], "convolution_kernel": 5, "begin_id": 7, "padding_id": 2},
    {"image_side": 1, "text_length": 1, "reversible": False},
]


@pytest.mark.parametrize("changes", SHAPES)
def test_logits_are_the_models(packed: Callable[..., Path], changes: dict[str, object]) -> None:
    model = random_model(**changes)
    layout = model.config.layout
    random = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 20, (1, layout.text_length), generator=random)
    ids[0, layout.text_length // 2 :] = model.config.padding_id
    codes = torch.randint(0, 128, (1, layout.image_length), generator=random)
    with torch.no_grad():
        wanted = model(ids, codes, return_logits=True).image_logits[0]
    found = ask("logits", [ids[0].tolist(), codes[0, :-1].tolist()], packed(model))
    assert wanted.std() > 0.5  # they differ by far more than what is allowed
    torch.testing.assert_close(torch.tensor(found), wanted, atol=1e-4, rtol=0)


def test_the_pages_pixels_are_the_decoders(packed: Callable[..., Path]) -> None:
    model = random_model(image_side=8)
    codes = torch.randint(0, 128, (1, 64), generator=torch.Generator().manual_seed(4))
    vq = CodeModel.load("shapes").model
    with torch.no_grad():
        latents = vq.quantize.get_codebook_entry(codes.flatten(), (1, 8, 8, 8))
        wanted = vq.decode(latents, force_not_quantize=True).sample[0].flatten()
    found = torch.tensor(ask("values", codes[0].tolist(), packed(model)))
    assert len(found) == 3 * 32 * 32
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


@pytest.fixture(scope="module")
def recorded() -> tuple[TextToImageTransformer, Path]:
    """The model of the run that ships with the site, and its file for the page."""
    entry = LiveFolder(RECORDED).read_checkpoints()[-1]
    return checkpoint.load((RECORDED / entry.drawing).parent), RECORDED / entry.drawing


def test_the_page_draws_what_python_draws(
    recorded: tuple[TextToImageTransformer, Path], tmp_path: Path
) -> None:
    model, _ = recorded
    with torch.no_grad():
        for parameter in model.parameters():  # as in the file
            parameter.copy_(parameter.half().float())
    prompts = REHEARSAL.generation.prompts[:2]
    settings = replace(REHEARSAL.generation, temperature=0, images_per_prompt=1)
    content = in_page.pack(model, replace(REHEARSAL, generation=settings))
    (tmp_path / "drawing.safetensors").write_bytes(content or b"")
    ids = WordTokenizer(REHEARSAL.model.text_length)(prompts)
    pictures = CodeModel.load("shapes").decode(sampling.draw_codes(model, ids, settings))
    orders = [[prompt, 1] for prompt in prompts]
    found = ask("drawn", orders, tmp_path / "drawing.safetensors")
    for (pixels,), picture in zip(found, pictures, strict=True):
        wanted = picture.convert("RGBA").tobytes()
        differences = [abs(a - b) for a, b in zip(pixels, wanted, strict=True)]
        assert max(differences) <= 1  # a half may be rounded either way
        assert sum(differences) < 0.001 * len(wanted)


def test_the_site_ships_what_a_monitor_packs(recorded: tuple[TextToImageTransformer, Path]) -> None:
    model, file = recorded
    entry = LiveFolder(RECORDED).read_checkpoints()[-1]
    content = file.read_bytes()
    assert (entry.drawing_bytes, entry.drawing_sha256) == (len(content), atomic.sha256(file))
    assert atomic.sha256(RECORDED / str(entry.address)) == entry.sha256
    card = json.loads((RECORDED / "run.json").read_text())
    assert entry.step == card["schedule"]["total_steps"]
    again = in_page.pack(checkpoint.load(file.parent), REHEARSAL)
    ours, theirs = load(again), load(content)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert sum(part.numel() for part in model.parameters()) == 464_234


def test_the_recorded_runs_checkpoint_draws_captions() -> None:
    """176 of 192 pictures were right when this was written, 32 of each caption."""
    settings = replace(REHEARSAL.generation, images_per_prompt=8)
    prompts = read_samples(RECORDED)["prompts"]
    drawn = generate.illustrate(str(RECORDED), prompts, settings=settings)
    pairs = zip(drawn.prompts, drawn.rows, strict=True)
    right = [shows(picture, prompt) for prompt, row in pairs for picture in row]
    assert sum(right) >= 0.8 * len(right)


def test_a_seed_draws_the_same_again(packed: Callable[..., Path]) -> None:
    orders = [["a red circle", seed] for seed in (1, 1, 2)]
    first, again, other = ask("drawn", orders, packed(random_model()))
    assert len(first) == TINY.generation.images_per_prompt
    assert len({tuple(picture) for picture in first}) > 1
    assert first == again
    assert first != other


SETTINGS = [
    GenerationSettings(),
    GenerationSettings(temperature=0.5),
    GenerationSettings(temperature=2.0, top_k=5),
    GenerationSettings(top_k=500),
    GenerationSettings(top_p=0.75),
    GenerationSettings(top_p=0.01),
    GenerationSettings(temperature=0.7, top_k=20, top_p=0.9),
]


def test_the_page_chooses_among_the_codes_that_the_sampler_keeps() -> None:
    logits = 3 * torch.randn((1, 128), generator=torch.Generator().manual_seed(6))
    names = ("temperature", "top_k", "top_p")
    cases = [[logits[0].tolist(), {n: getattr(one, n) for n in names}] for one in SETTINGS]
    for settings, found in zip(SETTINGS, ask("truncated", cases), strict=True):
        weights, order = sampling.truncate(logits, settings)
        wanted = weights[0] / weights[0].sum()
        kept = int((wanted > 0).sum())
        assert [one["code"] for one in found] == order[0, :kept].tolist(), settings
        probabilities = torch.tensor([float(one["probability"]) for one in found])
        torch.testing.assert_close(probabilities, wanted[:kept], atol=1e-6, rtol=1e-4)


def test_codes_are_drawn_by_their_probabilities() -> None:
    codes = [{"code": 9, "probability": 0.6}, {"code": 4, "probability": 0.3}]
    codes.append({"code": 1, "probability": 0.1})
    drawn = ask("chosen", [codes, 20_000])
    shares = [drawn.count(one["code"]) / len(drawn) for one in codes]
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.015)


def test_the_random_numbers_are_those_of_xoshiro128_starstar() -> None:
    # What the authors' own program, xoshiro128starstar.c 1.1, gives from the state 1, 2, 3, 4.
    wanted = [11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034]
    assert ask("whole", [[1, 2, 3, 4], len(wanted)]) == wanted


def test_gelu_is_as_exact_as_its_formula_says() -> None:
    """Abramowitz and Stegun give the normal distribution to 7.5e-8 in 26.2.17."""
    values = torch.cat([torch.linspace(-12, 12, 241), torch.tensor([0.0, 1e-6, -40.0, 40.0])])
    wanted = torch.nn.functional.gelu(values.double())
    found = torch.tensor(ask("gelu", values.double().tolist()), dtype=torch.float64)
    rounding = torch.finfo(torch.float32).eps * wanted.abs()
    assert bool(((found - wanted).abs() <= 7.5e-8 * values.abs() + rounding).all())


def test_captions_have_the_tokenizers_ids_or_it_is_told_why_not(
    packed: Callable[..., Path],
) -> None:
    captions = ["a red circle", " A  Yellow\ttriangle ", "a green square left of a blue circle"]
    file = packed(random_model(text_length=8))
    *found, unknown, empty, long = ask("ids", [*captions, "a purple circle", "  ", "a " * 9], file)
    assert found == WordTokenizer(8)(captions).tolist()
    words = ", ".join(WORDS)
    assert unknown == f"The model never saw the word “purple”. It knows these: {words}."
    assert empty == "Type a caption first."
    assert long == "The caption has 9 words. The model reads at most 8."


def test_only_small_plain_models_of_words_and_16_bits_are_packed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, beyond = build_model(TINY), build_model(TINY)
    assert in_page.pack(model, TINY) is not None
    with torch.no_grad():
        next(beyond.parameters()).fill_(1e6)
    assert in_page.pack(beyond, TINY) is None
    hub = replace(TINY, data=replace(TINY.data, tokenizer="google-t5/t5-small"))
    assert in_page.pack(model, hub) is None
    assert in_page.pack(model, replace(TINY, data=replace(TINY.data, codes=None))) is None
    large = replace(TINY, model=replace(TINY.model, hidden_size=512))
    with torch.device("meta"):
        assert in_page.pack(TextToImageTransformer(config_of(large)), large) is None
    attentive = CodeModel.load("shapes")
    attentive.model.register_to_config(mid_block_add_attention=True)
    monkeypatch.setattr(CodeModel, "load", lambda name: attentive)
    assert in_page.pack(model, TINY) is None


Header = dict[str, Any]


def change_header(content: bytes, change: Callable[[Header], object]) -> bytes:
    """The file with another header."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


def with_a_huge(field: str) -> Callable[[Header], None]:
    """A change that makes the model claim such a size."""

    def change(header: Header) -> None:
        about = json.loads(header["__metadata__"]["about"])
        about["model"][field] = 10**9
        header["__metadata__"]["about"] = json.dumps(about)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda header: header.pop("model.final_norm.bias"),
            "the weights have no model.final_norm.bias of 32 numbers",
        ),
        (
            lambda header: header["model.image_bias"].update(shape=[1]),
            "the weights have no model.image_bias of 128 numbers",
        ),
        (
            lambda header: header["model.image_bias"].update(data_offsets=[10**9, 10**9 + 256]),
            "the weights have no model.image_bias of 128 numbers",
        ),
        (with_a_huge("image_side"), "the model is too large for a page"),
        (
            with_a_huge("hidden_size"),
            "the weights have no model.text_embedding.weight of 38 × 1000000000 numbers",
        ),
        (
            lambda header: header["__metadata__"].update(about='{"version": 2}'),
            "the weights are in a format that this page does not know",
        ),
    ],
)
def test_a_file_that_is_not_such_a_model_is_refused(
    packed: Callable[..., Path], change: Callable[[Header], object], words: str
) -> None:
    file = packed(random_model())
    content = file.read_bytes()
    assert ask("opened", None, file) == "opened"
    file.write_bytes(change_header(content, change))
    assert ask("opened", None, file) == words
    file.write_bytes(content[:100])
    assert ask("opened", None, file) == "the file is cut short"


def test_a_checkpoint_lists_its_file_for_the_page_until_it_is_removed(tmp_path: Path) -> None:
    live, model = LiveFolder(tmp_path), build_model(TINY)
    drawing = in_page.pack(model, TINY)
    folder = checkpoint.publish(live, model, 10, 3.0, "", drawing=drawing)
    (entry,) = live.read_checkpoints()
    assert entry.drawing == "checkpoints/000010/drawing.safetensors"
    assert (folder / checkpoint.DRAWING).read_bytes() == drawing
    assert entry.drawing_sha256 == atomic.sha256(folder / checkpoint.DRAWING)
    assert entry.drawing_bytes == len(drawing or b"")
    for step in range(11, 11 + checkpoint.KEPT):
        checkpoint.publish(live, model, step, 3.0, "")
    assert live.read_checkpoints()[0].drawing is None
    assert not folder.exists()
