"""Links between GPUs: their rates, and the bytes that go over them."""

from dataclasses import replace

import pytest

from calculator.autograd.ledger import ALL_GATHER, ALL_REDUCE
from calculator.cards import find_card
from calculator.clock import Work, seconds
from calculator.clock.links import REACHED, Traffic, link_of, traffic
from calculator.plan import Plan
from calculator.techniques.collectives import SEND, Collective, Group

GIGA = 10**9
A100 = find_card("a100-80")
NOTHING = Work(0, 0, 0, 0, 0, 0, 0, 0, 0)


def test_cards_have_the_links_of_their_makers_sheets() -> None:
    # NVLink of 300, 600, 900 and 1,800 GB/s both ways; PCIe of 3.0 to 5.0, 16 lanes
    nvlink = {"v100-32": 150, "a100-40": 300, "h100": 450, "b200": 900}
    pcie = {"t4": 15.75, "rtx-4090": 31.5, "h100-pcie": 63, "rtx-5090": 63}
    for name, gigabytes in (nvlink | pcie).items():
        assert link_of(find_card(name)) == gigabytes * GIGA, name


def test_rings_send_what_nccl_says() -> None:
    # nccl-tests, doc/PERFORMANCE.md: an all-reduce of S bytes on n GPUs has a bus factor 2 (n-1)/n
    eight = Plan.parse({"gpus": 8})
    assert traffic([Collective(ALL_REDUCE, (8,))], eight) == Traffic(near=14)
    assert traffic([Collective(ALL_GATHER, (8,))], eight) == Traffic(near=7)


def test_gpus_of_a_machine_share_its_network_cards() -> None:
    # of 16 shards 8 are in each machine, so each card has an eighth of the ring's bytes
    shards = Plan.parse({"gpus": 16})
    assert traffic([Collective(ALL_GATHER, (16,))], shards) == Traffic(near=15, far=15 / 8)
    # where 8 GPUs divide layers, copies are in other machines, each with a card of its own
    divided = Plan.parse({"gpus": 16, "tensor_parallel": 8})
    assert traffic([Collective(ALL_REDUCE, (16,))], divided) == Traffic(far=16)
    assert traffic([Collective(ALL_REDUCE, (8,), Group.LAYERS)], divided) == Traffic(near=14)


def test_stages_are_in_one_machine_where_they_fit_into_it() -> None:
    sent = Collective(SEND, (5,), Group.STAGES)
    assert traffic([sent], Plan.parse({"pipeline_parallel": 8})) == Traffic(near=5)
    wide = Plan.parse({"pipeline_parallel": 2, "tensor_parallel": 8, "gpus": 16})
    assert traffic([sent], wide) == Traffic(far=5)


def test_overlapped_exchanges_take_what_is_left_after_the_products() -> None:
    busy = replace(NOTHING, narrow=10**15)
    alone = seconds(busy, A100)
    hidden = Traffic(near=alone * 300 * GIGA * REACHED)
    assert seconds(replace(busy, overlapped=hidden), A100) == pytest.approx(alone)
    half = replace(busy, overlapped=hidden, overlap=0.5)
    assert seconds(half, A100) == pytest.approx(1.5 * alone)
