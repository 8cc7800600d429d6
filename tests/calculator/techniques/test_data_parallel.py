"""DDP: buckets, and what it refuses; measured rows hold whole steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.plan import DataParallel, Plan
from calculator.report import Phase
from calculator.techniques.data_parallel import BUCKET, FIRST_BUCKET, buckets

MIB = 2**20


def test_the_first_bucket_is_small_so_that_the_first_reduction_starts_early() -> None:
    # torch 2.13: dist._DEFAULT_FIRST_BUCKET_BYTES and DistributedDataParallel's bucket_cap_mb
    assert (FIRST_BUCKET, BUCKET) == (1 * MIB, 25 * MIB)
    assert buckets([MIB // 2, MIB // 2, 25 * MIB, 24 * MIB, 8 * MIB, 3]) == (
        MIB,
        25 * MIB,
        32 * MIB,
        3,
    )


@given(st.lists(st.integers(1, 40 * MIB)))
def test_every_gradient_is_in_one_bucket(gradients: list[int]) -> None:
    found = buckets(gradients)
    assert sum(found) == sum(gradients)
    assert all(size >= BUCKET for size in found[1:-1])


def test_plain_buckets_cost_as_much_as_the_gradients_and_views_cost_nothing() -> None:
    gpt2 = find_model("gpt2-s")
    # 124,439,808 parameters in 32 bits, as transformers' GPT2LMHeadModel has them
    gradients = 4 * 124_439_808
    updates = {
        way: estimate(gpt2, Plan(gpus=8, data_parallel=way)).phases[Phase.UPDATE].gradients
        for way in (DataParallel.DDP, DataParallel.DDP_VIEW)
    }
    assert updates[DataParallel.DDP] == pytest.approx(2 * gradients, rel=1e-5)
    assert updates[DataParallel.DDP_VIEW] == pytest.approx(gradients, rel=1e-5)
    (reduced,) = estimate(gpt2, Plan(gpus=8)).as_json()["collectives"]
    assert reduced["name"] == "all_reduce"
    assert reduced["bytes"] == gradients


def test_the_number_of_copies_changes_nothing_on_one_of_them() -> None:
    bert = find_model("bert-base")
    assert estimate(bert, Plan(gpus=2)).phases == estimate(bert, Plan(gpus=1024)).phases
