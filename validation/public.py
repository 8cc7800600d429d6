"""Measurements that others have published, as data, and what the calculator says to each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.report import Phase, Report
from calculator.units import GiB, MiB


@dataclass(frozen=True, slots=True)
class Published:
    """One published figure: in words, the model, what was done to it, and bytes.

    `reserved` is what the allocator held, where the publication has it.
    """

    words: str
    model: str
    options: Mapping[str, str]
    bytes: int
    reserved: int | None = None

    @property
    def plan(self) -> Plan:
        """The options as a plan."""
        return Plan.parse(self.options)


@dataclass(frozen=True, slots=True)
class Publication:
    """Figures that were made alike, in one place.

    `context` is what the publication itself measured before any model was there, in bytes.
    """

    title: str
    address: str
    rows: tuple[Published, ...]
    context: int = 0

    def pairs(self) -> list[tuple[Published, Report]]:
        """Each row with the calculator's report on the same options."""
        return [(row, estimate(find_model(row.model), row.plan)) for row in self.rows]


# Its script prints nvidia-smi's bytes // 1024**2 as MB. In 2022 BERT had only eager attention, and
# the library's own AdamW and Adafactor, its Trainer's defaults, went from tensor to tensor.
_GUIDE_COMMON: Final = {"attention": "eager", "sequence_length": "512", "update": "loop"}
# Before PyTorch 2.0, zero_grad() filled gradients with zeros and kept them through the next
# forward pass. That is what the calculator counts under accumulation, whatever the number.
_KEPT_GRADIENTS: Final = {"accumulation": "2"}
_FOUR: Final = {"batch_size": "4", **_KEPT_GRADIENTS}
_SMALL: Final = {"batch_size": "1", "accumulation": "4"}
_LEAST: Final = {**_SMALL, "checkpointing": "full", "precision": "amp"}
_EIGHT_BIT: Final = {"optimizer_bits": "8", "update": "foreach"}
_IN_STEPS: Final = "batch 1, 4 accumulated"

_GUIDE: Final = (
    (14_949, "fp32, batch 4", {"precision": "fp32", **_FOUR}),
    (8_681, f"fp32, {_IN_STEPS}", {"precision": "fp32", **_SMALL}),
    (
        6_775,
        f"fp32, {_IN_STEPS}, checkpointing",
        {"precision": "fp32", **_SMALL, "checkpointing": "full"},
    ),
    (13_939, "16-bit autocast, batch 4", {"precision": "amp", **_FOUR}),
    (7_275, f"16-bit autocast, {_IN_STEPS}, checkpointing", _LEAST),
    (12_295, "fp32, batch 4, Adafactor", {"precision": "fp32", **_FOUR, "optimizer": "adafactor"}),
    (
        4_847,
        f"16-bit autocast, {_IN_STEPS}, checkpointing, Adafactor",
        {**_LEAST, "optimizer": "adafactor"},
    ),
    (13_085, "fp32, batch 4, 8-bit Adam", {"precision": "fp32", **_FOUR, **_EIGHT_BIT}),
    (
        5_363,
        f"16-bit autocast, {_IN_STEPS}, checkpointing, 8-bit Adam",
        {**_LEAST, **_EIGHT_BIT},
    ),
)

# Two columns without headings, in GiB with one decimal; batch 1, as the file's own script says.
# torch.optim had no foreach in 2021.
_SITE_COMMON: Final = {
    "attention": "eager",
    "batch_size": "1",
    "precision": "mixed",
    "update": "loop",
    **_KEPT_GRADIENTS,
}
_SITE_GIB: Final = {
    "gpt3-s": {
        256: (2.6, 2.7),
        512: (2.8, 3.1),
        1024: (3.7, 3.9),
        2048: (6.3, 7.0),
        3072: (10.3, 10.7),
        4096: (14.9, 16.3),
    },
    "gpt3-m": {
        256: (6.8, 7.0),
        512: (7.1, 7.2),
        1024: (9.0, 11.7),
        2048: (15.0, 15.5),
        3072: (20.0, 24.1),
    },
    "gpt3-l": {256: (14.4, 15.3), 512: (14.5, 15.2), 1024: (16.2, 17.0), 2048: (22.7, 23.7)},
}


def _site_rows() -> Iterator[Published]:
    for model, lengths in _SITE_GIB.items():
        for length, (allocated, reserved) in lengths.items():
            yield Published(
                f"{find_model(model).title}, {length:,} tokens",
                model,
                {**_SITE_COMMON, "sequence_length": str(length)},
                round(allocated * GiB),
                round(reserved * GiB),
            )


GUIDE: Final = Publication(
    title="Hugging Face, 2022. Performance and Scalability",
    address="https://huggingface.co/docs/transformers/v4.19.2/en/performance",
    rows=tuple(
        Published(words, "bert-large", {**_GUIDE_COMMON, **options}, megabytes * MiB)
        for megabytes, words, options in _GUIDE
    ),
    context=1_343 * MiB,
)
SITE: Final = Publication(
    title="Training Transformers Together, 2021. mem_data.txt",
    address="https://github.com/training-transformers-together/"
    "training-transformers-together.github.io/blob/e39ea66c06fea6cb78c7cd61826f7de147542382/"
    "mem_data.txt",
    rows=tuple(_site_rows()),
)


def as_classifier(row: Published) -> int:
    """The peak in bytes when the model scores two classes instead of every word.

    The calculator has only the masked-language-model head. So it counts a vocabulary of two words,
    and the missing words get their weights, gradients and states back. Their gradient comes last
    in a backward pass, so it is there at the peak only where gradients stay from step to step.
    """
    architecture, plan = find_model(row.model), row.plan
    whole = estimate(architecture, plan)
    small = estimate(replace(architecture, vocabulary_size=2), plan)
    update, without = whole.phases[Phase.UPDATE], small.phases[Phase.UPDATE]
    words = update.weights - without.weights + update.optimizer - without.optimizer
    if whole.plan.accumulation > 1:
        words += update.gradients - without.gradients
    before = (small.phases[phase].total + words for phase in Phase if phase != Phase.UPDATE)
    return max(*before, update.total)
