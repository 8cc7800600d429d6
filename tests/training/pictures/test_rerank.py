"""The scorer of the shapes against pictures that it has not seen, judged by their pixels."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks import train_scorer
from benchmarks.seeing import fits, look, shows
from calculator.errors import InputError
from training.pictures.codes import CodeModel
from training.pictures.rerank import Scorer
from training.shapes.samples import Sample

CAPTIONS, PICTURES, KEPT, RIGHT = 60, 32, 4, 0.25


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return Scorer.load("shapes")


@pytest.fixture(scope="module")
def samples(vq_gan: CodeModel) -> list[Sample]:
    """Held-out pictures, every second of which went through the VQ-GAN."""
    return train_scorer.make_samples(512, vq_gan, train_scorer.HELD_OUT_SEED)


def test_the_judge_knows_what_a_picture_shows(samples: list[Sample]) -> None:
    right = [shows(sample.image, sample.caption) for sample in samples]
    assert np.mean(right[1::2]) == 1  # as drawn
    assert np.mean(right[::2]) >= 0.97  # through the VQ-GAN


def test_the_judge_refuses_what_a_picture_does_not_show() -> None:
    image = Image.new("RGB", (32, 32), (246, 244, 238))
    image.paste((214, 48, 49), (4, 4, 13, 13))
    image.paste((45, 98, 214), (4, 18, 13, 27))
    assert shows(image, "a red square above a blue square")
    assert shows(image, "a blue square below a red square")
    for caption in (
        "a red square",
        "a red square below a blue square",
        "a red square left of a blue square",
        "a red circle above a blue square",
        "a blue square above a red square",
        "a green square above a blue square",
    ):
        assert not shows(image, caption)


def test_most_held_out_pictures_find_their_caption(scorer: Scorer, vq_gan: CodeModel) -> None:
    # 1 of 400 would by chance; train_scorer said 75.6 % of 1,024 when these weights were made
    assert train_scorer.measure(scorer, 512, vq_gan) >= 0.7


def test_the_best_four_are_right_more_often_than_any(scorer: Scorer, samples: list[Sample]) -> None:
    random = np.random.default_rng(0)
    looks = [look(sample.image) for sample in samples]
    pairs = zip(looks, samples, strict=True)
    captions = sorted({sample.caption for seen, sample in pairs if fits(seen, sample.caption)})
    shares = []
    for caption in random.choice(captions, CAPTIONS, replace=False):
        fitting = np.array([fits(seen, caption) for seen in looks])
        alike = np.array([len(seen) == 1 + (len(caption.split()) > 3) for seen in looks])
        right = random.choice(fitting.nonzero()[0], round(PICTURES * RIGHT))
        wrong = random.choice((alike & ~fitting).nonzero()[0], PICTURES - len(right), replace=False)
        drawn = [*right, *wrong]
        best = scorer.choose([samples[place].image for place in drawn], caption, KEPT)
        scores = [score for _, score in best]
        assert scores == sorted(scores, reverse=True)
        shares.append(np.mean([fitting[drawn[place]] for place, _ in best]))
    print(f"right among the best {KEPT} of {PICTURES}: {np.mean(shares):.3f}, of any: {RIGHT}")
    assert np.mean(shares) >= 0.85


def test_training_tells_captions_apart_also_once_saved(
    tmp_path: Path, samples: list[Sample]
) -> None:
    torch.manual_seed(0)
    singles = [sample for sample in samples if len(sample.caption.split()) == 3][:96]
    new = train_scorer.new_scorer()
    train_scorer.train(new, singles, steps=25, batch_size=32, learning_rate=2e-3)
    captions = sorted({sample.caption for sample in singles})
    scores = new.compare([sample.image for sample in singles], captions)
    found = [captions[place] for place in scores.argmax(dim=1).tolist()]
    right = [name == sample.caption for name, sample in zip(found, singles, strict=True)]
    assert np.mean(right) > 4 / len(captions)  # 1 / 12 by chance
    new.save(tmp_path)
    again = Scorer.load(tmp_path).compare([sample.image for sample in singles], captions)
    assert torch.allclose(again, scores, atol=1e-3)


def test_what_is_no_scorer_is_refused(tmp_path: Path, scorer: Scorer) -> None:
    with pytest.raises(InputError, match="scorer"):
        Scorer.load(tmp_path)
    with pytest.raises(InputError, match="keep"):
        scorer.choose([Image.new("RGB", (32, 32))], "a red circle", 2)
