"""training/sparse/waiting: bad members end no round, and a slow line gets its turn."""

import hashlib
import itertools
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey

from calculator.errors import InputError
from tests.training.sparse.clocks import Clock
from tests.training.sparse.rounds import LAYOUT, SETTINGS, make_host, make_report
from training.run.recipes import MOST_PAYLOADS
from training.sparse import payload
from training.sparse.codec import encode
from training.sparse.host import Host
from training.sparse.judging import Judge
from training.sparse.waiting import Waiting

HASTY = replace(SETTINGS, grace=2.0, longest=15.0, seconds=1.0)


@pytest.mark.parametrize(
    ("now", "taken", "kept", "due"),
    [
        (0.9, "abc", "abc", False),  # all are there, but the local steps are not over
        (1.0, "abc", "abc", True),
        (1.0, "abc", "", False),  # nothing of use has come
        (14.9, "abc", "", False),
        (15.0, "abc", "", True),
        (14.9, "a", "a", False),  # no quorum
        (15.0, "a", "a", True),
        (99.0, "", "", False),
    ],
)
def test_a_round_closes_by_what_it_keeps(now: float, taken: str, kept: str, due: bool) -> None:
    assert Waiting(HASTY, 0.0).is_due(now, set(taken), set(kept), set("abc")) == due


@pytest.mark.parametrize(
    ("field", "inside", "outside"),
    [
        ("quorum", (1, MOST_PAYLOADS), (0, MOST_PAYLOADS + 1)),
        ("grace", (0.0,), (-0.1, math.nan)),
        ("longest", (0.0,), (-0.1, math.nan)),
        ("outer_learning_rate", (10,), (0.0, 10.1)),
    ],
)
def test_rounds_have_settings_within_reason(
    field: str, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    for value in inside:
        replace(SETTINGS, **{field: value})
    for value in outside:
        with pytest.raises(InputError, match=field):
            replace(SETTINGS, **{field: value})


def test_the_grace_period_runs_from_a_quorum_of_kept_updates() -> None:
    waiting, everybody = Waiting(HASTY, 0.0), set("abcd")
    # x and y sent what is of no use
    looks = [(3.0, "a", False), (5.0, "ab", False), (6.9, "ab", False), (7.0, "ab", True)]
    for now, kept, due in looks:
        assert waiting.is_due(now, "xyab", kept, everybody) is due, now


def test_whoever_was_missing_is_waited_for_in_the_next_round() -> None:
    waiting, everybody = Waiting(HASTY, 0.0), {"fast", "other", "slow"}
    fast = {"fast", "other"}
    assert [waiting.is_due(now, fast, fast, everybody) for now in (1.0, 3.0)] == [False, True]
    waiting.close(3.0, fast, everybody)
    assert not waiting.is_due(4.0, fast, fast, everybody)
    assert not waiting.is_due(17.9, fast, fast, everybody), "longer than the grace period"
    assert waiting.is_due(12.0, everybody, everybody, everybody)


def test_whoever_is_left_out_three_times_running_is_not_waited_for() -> None:
    waiting = Waiting(HASTY, 0.0)
    for number in range(3):
        assert waiting.expected({"good", "bad"}, ()) == {"good", "bad"}
        waiting.close(float(number), {"good"}, {"good", "bad"})
    assert waiting.expected({"good", "bad"}, ()) == {"good"}
    waiting.close(9.0, {"good", "bad"}, {"good"})
    assert waiting.expected({"good", "bad"}, ()) == {"good", "bad"}
    assert waiting.expected({"good"}, {"bad"}) == {"good"}


def make_update(host: Host, key: RSAPrivateKey, sign: float, seed: int) -> bytes:
    """An update towards zero, which lowers the loss below, or away from it."""
    noise = torch.randn(LAYOUT.elements, generator=torch.Generator().manual_seed(seed))
    vector = sign * 1e-2 * host.state.weights * noise.abs()
    return payload.write(host.swarm.round_of(host.state), 16, encode(vector, LAYOUT), key)


def losses(number: int, weights: torch.Tensor) -> list[float]:
    """Squares of the weights, on four random parts of them."""
    generator = torch.Generator().manual_seed(number)
    parts = torch.randperm(len(weights), generator=generator).split(len(weights) // 4 + 1)
    return [float(weights[part].square().mean()) for part in parts]


def test_two_bad_members_end_no_round_before_the_honest_have_sent(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    """Without that, 94 rounds ended empty in 300 seconds, and no honest update was taken."""
    clock = Clock()
    host = make_host(tmp_path, identities[0], settings=HASTY, clock=clock, judge=Judge(losses))
    bad, honest = keys[:2], keys[2:]
    closed = []
    for number in range(6):
        start = clock.now
        for place, key in enumerate(bad):
            host.take_report(make_report(key), b"")
            host.take_payload(make_update(host, key, -1.0, 100 * number + place), b"")
        for second in range(1, 60):
            clock.now = start + second / 4
            if second == 2:
                for key in honest:
                    host.take_report(make_report(key), b"")
            if second == 8:  # their local steps and their uploads took two seconds
                for place, key in enumerate(honest):
                    host.take_payload(make_update(host, key, 1.0, 100 * number + 10 + place), b"")
            host.judge_updates()
            if (one := host.close_if_due(keys[0])) is not None:
                closed.append(one)
                break
        assert clock.now - start == 2.0
    assert [{one.peer for one in round_.taken} for round_ in closed] == [set(identities[2:])] * 6
    assert all(round_.left_out.keys() == set(identities[:2]) for round_ in closed)


@pytest.mark.parametrize("restarts", [False, True])
def test_of_copies_the_one_that_came_first_is_taken(
    tmp_path: Path, keys: list[RSAPrivateKey], identities: list[str], restarts: bool
) -> None:
    """The copier's identity comes first in the order of the list, and its file's sum as well."""
    clock = Clock()

    def start() -> Host:
        judge = Judge(losses)
        return make_host(tmp_path, identities[3], settings=HASTY, clock=clock, judge=judge)

    host = start()
    content, of = make_update(host, keys[2], 1.0, 10), host.swarm.round_of(host.state)
    first, update = host.take_payload(content, b""), content[-LAYOUT.update_bytes :]
    copies = (payload.write(of, samples, update, keys[0]) for samples in itertools.count(16))
    host.take_payload(next(c for c in copies if hashlib.sha256(c).hexdigest() < first), b"")
    if restarts:
        host = start()
    clock.now = HASTY.longest
    host.judge_updates()
    closed = host.close_if_due(keys[3])
    assert [one.peer for one in closed.taken] == [identities[2]]
    assert closed.left_out == {identities[0]: "it is a copy of another peer's update"}
