import asyncio
from collections import Counter
from itertools import pairwise
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.averaging import expectant
from tests.training.forks import Fork
from tests.training.processes import PATIENCE
from training.averaging import matchmaking
from training.averaging.matchmaking import LARGEST, MOST_BITS, bits_for, group_of, meet
from training.records.kinds import MOST_GROUP_BITS


def peers(count: int) -> list[str]:
    return [f"peer {number}" for number in range(count)]


@given(st.integers(0, 10**7))
def test_groups_are_half_full_to_full_on_average(count: int) -> None:
    bits = bits_for(count)
    assert 0 <= bits <= MOST_BITS == MOST_GROUP_BITS
    if count <= LARGEST:
        assert bits == 0
    elif bits < MOST_BITS:
        assert LARGEST / 2 < count / 2**bits <= LARGEST


def test_few_peers_are_one_group() -> None:
    assert meet("peer 0", peers(LARGEST), "step 1") == ("", LARGEST)
    assert meet("alone", [], "step 1") == ("", 1)


def test_all_peers_agree_on_their_groups() -> None:
    everyone = peers(200)
    groups = {peer: meet(peer, everyone, "step 7") for peer in everyone}
    sizes = Counter(group for group, _ in groups.values())
    assert all(size == sizes[group] for group, size in groups.values())
    assert sum(sizes.values()) == 200
    assert len(sizes) == 8


def test_every_round_divides_the_peers_differently() -> None:
    everyone = peers(1_000)
    bits = bits_for(1_000)
    partners = []
    for number in range(6):
        own = group_of("peer 0", f"step {number}", bits)
        together = {p for p in everyone if group_of(p, f"step {number}", bits) == own}
        partners.append(together - {"peer 0"})
    for first, second in pairwise(partners):
        assert len(first & second) < len(first) / 3  # by chance 1 in 32


def test_whoever_finds_no_leader_looks_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, now = [], [0.0]

    async def get(*_: object, **_options: object) -> None:
        looks.append(now[0])

    async def sleep(seconds: float) -> None:
        now[0] += max(0.0, seconds)

    async def look() -> None:
        search = matchmaking.CalmSearch(MagicMock(get=get), "step", "1", None)
        for pause in (0.0, 0.0, 9.0):
            now[0] += pause
            assert await search.get_averagers("step.0b1", only_active=True) == []

    monkeypatch.setattr("training.averaging.matchmaking.asyncio.sleep", sleep)
    monkeypatch.setattr("training.averaging.matchmaking.time.monotonic", lambda: now[0])
    asyncio.run(look())
    assert looks == [0.0, matchmaking.LOOK_SECONDS, matchmaking.LOOK_SECONDS + 9.0]


@pytest.mark.parametrize("count", [1_000, 4_000])
def test_two_rounds_bring_nearly_everybody_together(count: int) -> None:
    everyone, bits = peers(count), bits_for(count)
    known = {"peer 0"}
    for number in range(3):
        groups = {p: group_of(p, f"step {number}", bits) for p in everyone}
        reached = {groups[p] for p in known}
        known = {p for p in everyone if groups[p] in reached}
        if number == 1:
            assert len(known) > 0.1 * count
    assert len(known) == count


@pytest.mark.swarm
def test_a_group_closes_when_complete_and_a_cancelled_round_leaves_it_free(tmp_path: Path) -> None:
    program = Path(expectant.__file__)
    code, said = Fork([], tmp_path, tmp_path / "terminal.txt", program=program).run(PATIENCE)
    assert code == 0, said
    assert "waiting for LOOKING_FOR_GROUP" in said
    assert "mean 0.5" in said
