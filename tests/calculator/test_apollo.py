"""APOLLO beside AdamW; measured rows hold whole steps of the authors' class."""

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.optimizers.apollo import RANK
from calculator.plan import Optimizer, Plan
from calculator.program.origin import origin_of
from calculator.program.write import write_program
from calculator.report import Phase

PLAN = Plan(sequence_length=64, optimizer=Optimizer.APOLLO)
GPT2 = find_model("gpt2-s")
# 12 layers of 768, as in test_muon.py; transformers' GPT2LMHeadModel
MATRICES = 12 * (3 + 1 + 4 + 4) * 768 * 768
ALL = 124_439_808
BLOCK = 512


def test_a_matrix_keeps_a_projection_and_two_moments_of_its_rank() -> None:
    states = estimate(GPT2, PLAN).phases[Phase.UPDATE].optimizer
    # shorter and longer side of queries with keys and values, output, and both of feed-forward
    sides = ((768, 3 * 768), (768, 768), (768, 4 * 768), (768, 4 * 768))
    low = sum(RANK * shorter + 2 * RANK * longer for shorter, longer in sides)
    norms = 12 * len(sides) * BLOCK
    assert states == 4 * 12 * low + norms + 2 * 4 * (ALL - MATRICES)


def test_the_program_makes_the_authors_class_with_two_groups() -> None:
    program = write_program(origin_of("gpt2-s"), PLAN)
    assert "import apollo_torch" in program
    assert 'groups = [{"params": others}, {"params": matrices, **projected}]' in program
    assert '"rank": 128,' in program


def test_trainers_name_is_ours() -> None:
    assert Plan.parse({"optimizer": "apollo_adamw"}) == Plan(optimizer=Optimizer.APOLLO)
