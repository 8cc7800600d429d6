"""Model sizes and numbers of tokens for a budget, by published fits, with their spread."""

from dataclasses import dataclass
from typing import Final

from calculator.planner.checks import check_positive

# Hoffmann et al., section 3: 'for every doubling of model size the tokens should double too';
# their 70B model saw 1.4T tokens, and Cerebras-GPT trained its family at this ratio
TOKENS_PER_PARAMETER: Final = 20


@dataclass(frozen=True, slots=True)
class LossSurface:
    r"""A fit of the loss over parameters and tokens.

    $$L(N, D) = E + \frac{A}{N^\alpha} + \frac{B}{D^\beta}$$

    with N the parameters and D the tokens; the loss is in nats per token of the fit's own corpus
    and tokenizer, so losses of two corpora must not be compared.

    Attributes:
        source: key of the publication.
        irreducible: E.
        parameter_factor: A.
        token_factor: B.
        parameter_exponent: alpha.
        token_exponent: beta.
    """

    source: str
    irreducible: float
    parameter_factor: float
    token_factor: float
    parameter_exponent: float
    token_exponent: float

    def loss(self, parameters: float, tokens: float) -> float:
        """Predicted loss in nats per token.

        Raises:
            InputError: if a value is not above 0.
        """
        check_positive(parameters=parameters, tokens=tokens)
        of_size = self.parameter_factor / parameters**self.parameter_exponent
        of_data = self.token_factor / tokens**self.token_exponent
        return float(self.irreducible + of_size + of_data)

    def optimum(self, flops: float) -> "Size":
        r"""The size with the lowest predicted loss at a budget of $C = 6 N D$ FLOPs.

        $$N = \left(\frac{\alpha A}{\beta B}\right)^{\frac{1}{\alpha + \beta}}
        \left(\frac{C}{6}\right)^{\frac{\beta}{\alpha + \beta}}$$

        Raises:
            InputError: if the budget is not above 0.
        """
        check_positive(flops=flops)
        both = self.parameter_exponent + self.token_exponent
        ratio = (self.parameter_exponent * self.parameter_factor) / (
            self.token_exponent * self.token_factor
        )
        parameters = ratio ** (1 / both) * (flops / 6) ** (self.token_exponent / both)
        return Size(float(parameters), float(flops / 6 / parameters))


@dataclass(frozen=True, slots=True)
class Size:
    """A model size and the tokens to train it on."""

    parameters: float
    tokens: float

    @property
    def flops(self) -> float:
        """6 FLOPs per parameter and token."""
        return 6 * self.parameters * self.tokens

    @property
    def tokens_per_parameter(self) -> float:
        """Tokens per parameter; about 20 in the published optima."""
        return self.tokens / self.parameters


HOFFMANN: Final = LossSurface("chinchilla", 1.69, 406.4, 410.7, 0.34, 0.28)
BESIROGLU: Final = LossSurface("besiroglu", 1.8172, 482.01, 2085.43, 0.3478, 0.3658)


def size_by_ratio(flops: float, ratio: float = TOKENS_PER_PARAMETER) -> Size:
    r"""The size at a fixed number of tokens per parameter.

    $$N = \sqrt{\frac{C}{6 r}}, \quad D = r N$$

    with C the budget in FLOPs and r the tokens per parameter.

    Source: chinchilla (section 3)

    Raises:
        InputError: if a value is not above 0.
    """
    check_positive(flops=flops, ratio=ratio)
    parameters = (flops / 6 / ratio) ** 0.5
    return Size(parameters, ratio * parameters)


@dataclass(frozen=True, slots=True)
class Optimum:
    """Recommendation of the published fits for one budget.

    Attributes:
        flops: the budget.
        by_ratio: 20 tokens per parameter.
        by_fit: each fit's own optimum, by the key of its source.
    """

    flops: float
    by_ratio: Size
    by_fit: dict[str, Size]

    @property
    def parameters(self) -> tuple[float, float]:
        """The fewest and the most parameters that any of them recommends."""
        sizes = [self.by_ratio.parameters, *(size.parameters for size in self.by_fit.values())]
        return min(sizes), max(sizes)


def compute_optimal(flops: float) -> Optimum:
    """Model size and tokens for a budget, by every published fit.

    Source: chinchilla (section 3.3); besiroglu (table 1)

    Raises:
        InputError: if the budget is not above 0.
    """
    fits = {fit.source: fit.optimum(flops) for fit in (HOFFMANN, BESIROGLU)}
    return Optimum(flops, size_by_ratio(flops), fits)


def cerebras_loss(flops: float) -> float:
    r"""Test loss on the Pile of a GPT trained on 20 tokens per parameter.

    $$\left(\frac{C}{5.984 \times 10^{22}}\right)^{-0.0737} + 0.5066$$

    with C the FLOPs of training, in nats per token of GPT-2's vocabulary. Valid from 111 million to
    13 billion parameters; the seven published losses lie within 1% of it.

    Source: cerebras-gpt (section 3.1)

    Raises:
        InputError: if the budget is not above 0.
    """
    check_positive(flops=flops)
    return float((flops / 5.984e22) ** -0.0737 + 0.5066)
