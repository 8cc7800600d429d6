"""Published sizes, tokens and losses of models that were trained compute-optimally."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from calculator.hf_config import from_config
from calculator.parameters import count_parameters
from calculator.plan import Plan
from calculator.planner.scale import BESIROGLU, HOFFMANN, cerebras_loss
from calculator.resolution import resolve
from validation.claims.claim import Claim, Topic


@dataclass(frozen=True, slots=True)
class Trained:
    """One of the seven, as the Cerebras Model Zoo prints it.

    Attributes:
        name: its printed size, with its unit.
        layers: decoder layers.
        width: hidden size; the feed-forward layers have four times that.
        heads: attention heads.
        batch: sequences of 2,048 tokens in a step.
        steps: steps of the run.
        tokens: tokens of the run, as printed.
        training_flops: FLOPs in the table of training.
        evaluation_flops: FLOPs in the table of losses.
        loss: nats per token on the Pile's test set, as printed.
    """

    name: str
    layers: int
    width: int
    heads: int
    batch: int
    steps: int
    tokens: str
    training_flops: float
    evaluation_flops: float
    loss: str

    @property
    def parameters(self) -> int:
        """Parameters of transformers' GPT-2 with these shapes."""
        shapes = {"n_layer": self.layers, "n_embd": self.width, "n_head": self.heads}
        config = {"model_type": "gpt2", "n_positions": 2048, "vocab_size": 50_257, **shapes}
        model = from_config(config, self.name)
        return count_parameters(model, resolve(model, Plan()))


CEREBRAS: Final = (
    Trained("111M", 10, 768, 12, 120, 9_037, "2.22", 2.5e18, 2.6e18, "2.608"),
    Trained("256M", 14, 1088, 17, 264, 9_468, "5.12", 1.1e19, 1.3e19, "2.349"),
    Trained("590M", 18, 1536, 12, 264, 21_836, "11.8", 5.3e19, 6.1e19, "2.181"),
    Trained("1.3B", 24, 2048, 16, 528, 24_334, "26.3", 2.5e20, 2.8e20, "1.997"),
    Trained("2.7B", 32, 2560, 32, 528, 49_041, "53.0", 9.8e20, 1.1e21, "1.834"),
    Trained("6.7B", 32, 4096, 32, 1040, 62_522, "133", 5.9e21, 6.3e21, "1.704"),
    Trained("13B", 40, 5120, 40, 720, 174_335, "257", 2.1e22, 2.3e22, "1.572"),
)
UNITS: Final = {"M": (1e6, " million"), "B": (1e9, " billion")}


def cerebras() -> Topic:
    """Parameters, tokens and losses of the seven."""
    ratios = [model.evaluation_flops / model.training_flops - 1 for model in CEREBRAS]
    short = [1 - 6 * m.parameters * float(m.tokens) * 1e9 / m.training_flops for m in CEREBRAS]
    return Topic(
        "Cerebras-GPT's seven models, 2023",
        "cerebras-gpt",
        "Parameters from their shapes, tokens from steps and batches, the loss from the family's "
        f"own law. Their FLOPs are printed in two tables, which differ by {min(ratios):.0%} to "
        f"{max(ratios):.0%}; the law fits those beside the losses. Six per parameter and token "
        f"would be {min(short):.0%} to {max(short):.0%} less than the lower of them, because "
        "attention and the head are counted too.",
        (
            *(_size(model) for model in CEREBRAS),
            *(
                Claim(
                    f"{model.name}, {model.steps:,} steps of {model.batch} sequences",
                    model.tokens,
                    model.batch * model.steps * 2048 / 1e9,
                    " billion tokens",
                )
                for model in CEREBRAS
            ),
            *(
                Claim(
                    f"{model.name}, tokens per parameter",
                    "20",
                    float(model.tokens) * 1e9 / model.parameters,
                )
                for model in CEREBRAS
            ),
            *(
                Claim(
                    f"{model.name}, loss on the Pile",
                    model.loss,
                    cerebras_loss(model.evaluation_flops),
                    " nats",
                    margin=float(model.loss) / 100,
                )
                for model in CEREBRAS
            ),
            Claim("111M, warm-up of 375M tokens", "1500", 375e6 / (120 * 2048), " steps", 30),
            Claim(
                "256M, warm-up of 375M tokens",
                "1500",
                375e6 / (264 * 2048),
                " steps",
                note="1,500 are right for 111M; the card gives them for both.",
            ),
        ),
    )


def _size(model: Trained) -> Claim:
    scale, words = UNITS[model.name[-1]]
    return Claim(f"parameters of {model.name}", model.name[:-1], model.parameters / scale, words)


def chinchilla() -> Topic:
    """Recommendations of two fits to the same runs, for one budget."""
    budget = 5.76e23
    rounded = "Its printed coefficients are rounded; theirs, with more digits, gave 40."
    return Topic(
        "The best size for Gopher's budget, 2022 and 2024",
        "chinchilla",
        "5.76 × 10^23 FLOPs, for which Chinchilla's 70 billion parameters were chosen.",
        (
            Claim("tokens per parameter of 70 billion on 1.4 trillion", "20", 1.4e12 / 70e9),
            Claim(
                "by the third approach of Hoffmann et al.",
                "40",
                HOFFMANN.optimum(budget).parameters / 1e9,
                " billion",
                note=rounded,
            ),
            Claim(
                "by the fit of Besiroglu et al. to the same runs, beside the size chosen",
                "70",
                BESIROGLU.optimum(budget).parameters / 1e9,
                " billion",
                margin=7,
            ),
        ),
    )


def topics() -> Iterator[Topic]:
    """All of this module, the oldest first."""
    yield chinchilla()
    yield cerebras()
