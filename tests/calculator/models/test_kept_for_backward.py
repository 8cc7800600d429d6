"""Bytes that a layer keeps for the backward pass.

The coefficients were measured on real PyTorch 2.13 and transformers 5.23 (eager attention, and
PyTorch's flash, efficient and math kernels; two sequences or more): `x N d + q Q` for hidden size
d, N tokens and Q attention scores, once with dropout and once without.
"""

import pytest

from tests.calculator.kept import kept_per_layer, plan_of, shape_of

DROPOUT = pytest.mark.parametrize("dropout", [0.1, 0.0])
PRECISION = pytest.mark.parametrize("precision", ["fp32", "amp", "half"])

# model, precision: x and q with dropout, x and q without
EAGER = {
    ("bert-base", "fp32"): (66, 9, 64, 4),
    ("bert-base", "amp"): (42, 7, 40, 6),
    ("bert-base", "half"): (34, 5, 32, 2),
    ("gpt2-s", "fp32"): (114, 9, 112, 4),
    ("gpt2-s", "amp"): (86, 7, 84, 6),
    ("gpt2-s", "half"): (58, 5, 56, 2),
    ("gpt-j-6b", "fp32"): (106, 9, 104, 4),
    ("gpt-j-6b", "amp"): (86, 7, 84, 6),
    ("gpt-j-6b", "half"): (58, 7, 56, 6),
}


def coefficients(model: str, precision: str, dropout: float) -> tuple[int, int]:
    with_dropout_and_without = EAGER[model, precision]
    x, q = with_dropout_and_without[:2] if dropout else with_dropout_and_without[2:]
    return x, q


def copies(model: str, precision: str) -> int:
    """Autocast's 16-bit copies of a layer's 12 d^2 weights."""
    return 24 * shape_of(model).d ** 2 if precision == "amp" else 0


@DROPOUT
@pytest.mark.parametrize(("model", "precision"), EAGER)
def test_eager_attention_keeps_what_was_measured(
    model: str, precision: str, dropout: float
) -> None:
    s = shape_of(model)
    x, q = coefficients(model, precision, dropout)
    norms = 16 * s.N
    if model == "gpt-j-6b":  # one norm a layer, and tables of rotary angles
        norms = 8 * s.N + (16 if precision == "fp32" else 8) * s.S * s.r
    plan = plan_of(model, attention="eager", precision=precision, dropout=dropout)
    expected = x * s.N * s.d + q * s.Q + norms + copies(model, precision)
    assert kept_per_layer(model, plan) == expected


@DROPOUT
@pytest.mark.parametrize("model", ["bert-base", "gpt2-s"])
@pytest.mark.parametrize(
    ("kernel", "precision"),
    [
        ("flash", "amp"),
        ("flash", "half"),
        ("efficient", "fp32"),
        ("efficient", "amp"),
        ("efficient", "half"),
    ],
)
def test_fused_kernels_keep_a_logarithm_a_row_instead_of_the_scores(
    model: str, kernel: str, precision: str, dropout: float
) -> None:
    s = shape_of(model)
    x, _ = coefficients(model, precision, dropout)
    plan = plan_of(model, attention=kernel, precision=precision, dropout=dropout)
    # flash keeps its random state on the GPU, two blocks of 512 B; the efficient kernel in RAM
    random_state = 1024 if kernel == "flash" else 0
    expected = x * s.N * s.d + 4 * s.N * s.h + random_state + 16 * s.N + copies(model, precision)
    assert kept_per_layer(model, plan) == expected


@pytest.mark.parametrize("model", ["bert-base", "bert-large"])
def test_bert_in_16_bits_keeps_what_korthikanti_counted(model: str) -> None:
    # Korthikanti et al., 2022, equation 1: s b h (34 + 5 a s / h); they leave out the norms'
    # statistics, 16 bytes a token
    t = shape_of(model)
    s, b, h, a = t.S, t.B, t.d, t.h
    plan = plan_of(model, attention="eager", precision="half")
    assert kept_per_layer(model, plan) - 16 * s * b == 34 * s * b * h + 5 * a * s**2 * b


@PRECISION
@pytest.mark.parametrize("model", ["bert-base", "gpt2-s"])
def test_checkpointing_keeps_one_input_per_layer(model: str, precision: str) -> None:
    # of the residual stream, which is in 32 bits under autocast
    s = shape_of(model)
    plan = plan_of(model, precision=precision, checkpointing="full")
    assert kept_per_layer(model, plan) == (2 if precision == "half" else 4) * s.N * s.d


@PRECISION
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
@pytest.mark.parametrize("model", ["bert-base", "gpt2-s"])
def test_selective_checkpointing_keeps_all_but_the_core_of_attention(
    model: str, kernel: str, precision: str
) -> None:
    # Korthikanti et al., 2022, equation 6: the scores' term 5 a s^2 b goes, 34 s b h stays
    s = shape_of(model)
    x = EAGER[model, precision][0]
    plan = plan_of(
        model, attention=kernel, precision=precision, checkpointing="selective", dropout=0.1
    )
    assert kept_per_layer(model, plan) == x * s.N * s.d + 16 * s.N + copies(model, precision)


@pytest.mark.parametrize("model", ["bert-base", "gpt2-s", "gpt-j-6b", "t5-small"])
def test_reversible_layers_keep_nothing(model: str) -> None:
    assert kept_per_layer(model, plan_of(model, precision="fp32", reversible=True)) == 0
