"""training/sparse/assignment: announcements that judges follow, and the sequences they measure."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.sparse.rounds import first_state, make_swarm
from training.sparse import assignment
from training.sparse.assignment import SEQUENCES, Assignment, AssignmentError
from training.sparse.payload import Round
from training.sparse.swarm import Swarm

TEXT, IMAGE = 3, 5


@pytest.fixture
def swarm(tmp_path: Path, identities: list[str]) -> Swarm:
    return make_swarm(tmp_path, identities[0])


@pytest.fixture
def of(swarm: Swarm) -> Round:
    return swarm.round_of(first_state())


def make_batches(count: int) -> list[assignment.Batch]:
    generator = torch.Generator().manual_seed(5)
    return [
        {
            "text_ids": torch.randint(2**16, (SEQUENCES, TEXT), generator=generator),
            "image_codes": torch.randint(2**16, (SEQUENCES, IMAGE), generator=generator),
        }
        for _ in range(count)
    ]


def test_an_announcement_is_read_as_it_was_written(
    swarm: Swarm, of: Round, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    assert assignment.find(swarm, of) is None
    announced = Assignment(of, "e" * 64, {identities[1]: ("a" * 64, "b" * 64)})
    sha256 = assignment.publish(swarm, announced, keys[0])
    assert assignment.find(swarm, of) == (sha256, announced)


def test_only_the_runs_closer_announces_and_for_this_round_alone(
    swarm: Swarm, of: Round, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    shares = {identities[2]: ("a" * 64,)}
    assignment.publish(swarm, Assignment(of, "e" * 64, shares), keys[1])
    with pytest.raises(AssignmentError, match="signed by a stranger"):
        assignment.find(swarm, of)
    other = replace(of, start="1" * 64)
    assignment.publish(swarm, Assignment(other, "e" * 64, shares), keys[0])
    with pytest.raises(AssignmentError, match="starts from other weights"):
        assignment.find(swarm, of)


@pytest.mark.parametrize(
    "shares",
    [{"someone": ()}, {"someone": ("no digest",)}, {"someone": ("a" * 64,) * 65}],
    ids=["empty", "no digest", "too many"],
)
def test_shares_that_are_none_are_refused(
    swarm: Swarm, of: Round, keys: list[RSAPrivateKey], shares: dict[str, tuple[str, ...]]
) -> None:
    assignment.publish(swarm, Assignment(of, "e" * 64, shares), keys[0])
    with pytest.raises(AssignmentError, match="a judge's share is none"):
        assignment.find(swarm, of)


def test_sequences_are_read_as_they_were_packed() -> None:
    batches = make_batches(3)
    content = assignment.pack_sequences(batches)
    assert len(content) == 2 * 3 * SEQUENCES * (TEXT + IMAGE)
    for found, batch in zip(
        assignment.unpack_sequences(content, TEXT, IMAGE), batches, strict=True
    ):
        assert found.keys() == batch.keys()
        assert all(torch.equal(found[key], batch[key]) for key in batch)


def test_sequences_of_another_model_are_refused() -> None:
    content = assignment.pack_sequences(make_batches(2))
    for wrong in (b"", content[:-1], content[:-2], content[: len(content) // 2]):
        with pytest.raises(AssignmentError, match="not those of this run's model"):
            assignment.unpack_sequences(wrong, TEXT, IMAGE)
    with pytest.raises(AssignmentError, match="not those of this run's model"):
        assignment.unpack_sequences(content, TEXT, IMAGE + 2)
