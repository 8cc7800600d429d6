"""Parts of a rehearsal in chaos, and its comparison."""

import math
import threading
from dataclasses import replace
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey

from benchmarks import misbehaving
from benchmarks.chaos import BROKEN_SHARD, RECIPES, SMOOTHED, Calm, _loss_at, _step_of, break_shard
from training.__main__ import make_parser
from training.data import streaming
from training.model.build import build_model
from training.monitor.monitor import Monitor
from training.rehearsal.command import RehearsalOptions
from training.run.recipes import REHEARSAL, SPARSE, TINY, TINY_SPARSE, find_recipe
from training.run.supervisor import COMMAND
from training.sparse import payload
from training.sparse.closing import Swarm
from training.sparse.codec import decode, encode
from training.sparse.host import Host, NotTakenError
from training.sparse.layout import Layout
from training.sparse.payload import Round
from training.sparse.peer import ErrorFeedback, Peer
from training.sparse.shared import SharedState
from training.sparse.store import FolderStore
from training.volunteer import peer


def test_one_shard_is_broken_and_the_others_are_as_they_were(tmp_path: Path) -> None:
    source = streaming.prepare(TINY)
    folder = break_shard(TINY, tmp_path / "shards")
    changed = [
        path.name
        for path in sorted(source.glob("*.parquet"))
        if (folder / path.name).read_bytes() != path.read_bytes()
    ]
    assert changed == [sorted(source.glob("*.parquet"))[BROKEN_SHARD].name]
    assert len(list(folder.glob("*.parquet"))) == len(list(source.glob("*.parquet")))


def test_a_poisoner_is_started_as_a_volunteer_is() -> None:
    volunteer, poisoner = (signature(each).parameters for each in (peer.join, misbehaving.poison))
    assert list(poisoner)[1:] == list(volunteer)[1:]
    assert len(poisoner) == len(volunteer)


def test_losses_are_compared_at_the_same_step() -> None:
    lines: list[dict[str, Any]] = [{"step": n, "loss": 100.0 - n} for n in range(1, 60)]
    lines[39]["loss"] = None  # nobody reported one
    expected = [100.0 - n for n in range(40 - SMOOTHED, 40)]
    assert _loss_at(lines, 40) == pytest.approx(sum(expected) / SMOOTHED)


def test_losses_are_compared_after_the_same_number_of_sequences() -> None:
    lines = [{"step": n, "samples": 0 if n == 3 else 32} for n in range(1, 10)]
    assert [_step_of(lines, count) for count in (1, 32, 33, 64, 65, 256)] == [1, 1, 2, 2, 4, 9]


def test_the_chaotic_recipes_differ_in_the_exchange_alone() -> None:
    chaos, local = (find_recipe(str(RECIPES[key])) for key in ("averaging", "local"))
    assert replace(chaos, swarm=REHEARSAL.swarm) == REHEARSAL
    assert chaos.swarm.aggregation != REHEARSAL.swarm.aggregation
    assert replace(local, sparse=SPARSE.sparse) == SPARSE


def test_the_host_takes_none_of_the_files_that_the_poisoner_sends(tmp_path: Path) -> None:
    parameters = [p for p in build_model(TINY_SPARSE).parameters() if p.requires_grad]
    key, store = RSAPrivateKey(), FolderStore(tmp_path)
    swarm = Swarm("our-run", Layout.of(parameters), store, set(), 1.0)
    host = Host(swarm, store, SharedState.of(parameters), TINY_SPARSE.sparse)
    files = misbehaving.bad_files("our-run", 0, key)
    assert len({content for _, content in files}) == 8
    for kind, content in files:
        take = host.take_report if kind == "report" else host.take_payload
        if (kind, content) == files[-1]:  # a stranger's own: only a grant could show that
            take(content, b"")
        else:
            with pytest.raises(NotTakenError):
                take(content, b"")
    assert not host.taken()


def test_a_forger_claims_tenfold_and_keeps_the_length_of_its_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, name in (
        *((ErrorFeedback, "offer"), (ErrorFeedback, "give_up")),
        *((payload, "write"), (Peer, "_settle")),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # set back at the end
    misbehaving.forge(-1.0)
    layout = Layout.of([torch.nn.Parameter(torch.zeros(64, 64))])
    feedback, learned = ErrorFeedback(layout), torch.randn(layout.elements)
    sent = decode(feedback.offer(learned), layout)
    honest = decode(encode(learned, layout), layout)
    assert torch.equal(sent.places, honest.places)
    assert torch.equal(sent.values, -honest.values)
    of = Round("our-run", 0, "0" * 64)
    content = payload.write(of, 32, encode(learned, layout), RSAPrivateKey())
    assert payload.read(content, of, layout, math.inf).samples == 320


def test_the_calm_run_ends_after_as_many_sequences(tmp_path: Path) -> None:
    options = RehearsalOptions(minutes=10.0, peers=4, folder=tmp_path)
    calm = Calm(options, tmp_path, threading.Event(), sequences=17_216)
    parsed = make_parser().parse_args(calm.monitor.command[len(COMMAND) :])
    assert (parsed.sequences, parsed.minutes) == (17_216, 10.0)


@pytest.mark.parametrize(("counted", "over"), [(17_215, False), (17_216, True)])
def test_the_monitor_ends_a_run_after_so_many_sequences(counted: int, over: bool) -> None:
    monitor: Any = SimpleNamespace(
        step=5,
        samples=counted,
        recipe=TINY,
        options=SimpleNamespace(sequences=17_216, minutes=None),
    )
    assert Monitor.is_over.__get__(monitor) is over
