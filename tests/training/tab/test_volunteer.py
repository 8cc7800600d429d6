"""A tab as a volunteer of a real run, held against the Python client: bits, files, optimizer."""

import base64
import math
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.sparse.rounds import make_swarm
from tests.training.tab.scripts import ask
from tests.training.tab.test_learning import random_model, shape_of, steps_of
from training.access import envelope
from training.access.envelope import FileError
from training.access.grants import peer_id_of
from training.optimizer.lamb import parameter_groups
from training.run.recipes import REHEARSAL
from training.sparse import catching_up, payload, report, shared
from training.sparse.codec import decode, encode
from training.sparse.layout import Layout
from training.sparse.report import Report
from training.sparse.shared import Contribution, SharedState, flatten
from training.sparse.store import FolderStore

LAYOUT = Layout((9000, 1, 70, 4096))


def random_vector(seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    scale = torch.randn(LAYOUT.elements, generator=generator).exp()
    return scale * torch.randn(LAYOUT.elements, generator=generator)


def text_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_a_tabs_update_keeps_the_same_elements_at_the_same_magnitudes() -> None:
    vector = random_vector(1)
    vector[4096:8192] = 0.5  # all alike
    answer = ask("sparse", vector=vector, sizes=LAYOUT.sizes)
    assert answer["bytes"] == LAYOUT.update_bytes
    found = decode(base64.b64decode(answer["content"]), LAYOUT)
    expected = decode(encode(vector, LAYOUT), LAYOUT)
    unlike = (LAYOUT.block_of != 1).nonzero().flatten()  # of equal elements, any may be kept
    assert torch.equal(found.places[unlike], expected.places[unlike])
    torch.testing.assert_close(found.values, expected.values, rtol=2**-7, atol=0)  # of bfloat16


def test_a_tab_reads_the_same_places_values_and_norm() -> None:
    content = encode(random_vector(2), LAYOUT)
    expected = decode(content, LAYOUT)
    answer = ask("read", content=text_of(content), sizes=LAYOUT.sizes)
    assert answer["places"] == expected.places.tolist()
    assert torch.equal(answer["values"], expected.values)
    assert answer["norm"] == expected.norm  # to the last bit


def test_exact_sums_are_pythons() -> None:
    values = [1e16, 1.0, -1e16, 1e-16, 0.1, -0.3, 2.0**-1074, 1.0, 2.0**-53, 2.0**-106, -(2.0**53)]
    assert ask("exactSum", values=values) == math.fsum(values)
    halfway = [1.0, 2.0**-53, 2.0**-106]  # of two equally near numbers not the even one
    assert ask("exactSum", values=halfway) == math.fsum(halfway) == 1 + 2.0**-52
    assert ask("exactSum", values=[]) == 0


def test_rounds_give_a_tab_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"learning_rate": 0.7, "longest": 2.0, "heaviest": 1.5}
    monkeypatch.setattr(shared, "LONGEST", 2.0)
    monkeypatch.setattr(shared, "HEAVIEST", 1.5)
    state = SharedState(random_vector(3), round_number=5, samples=77)
    store = FolderStore(tmp_path)
    checkpoint = store.get(catching_up.publish(store, state), 10**6)
    digests, rounds = [state.digest()], []
    for number in range(3):
        vectors = [(10 if n == 1 else 1) * random_vector(9 * number + n) for n in range(4)]
        updates = [encode(vector, LAYOUT) for vector in vectors]
        given = list(zip(updates, [16, 900, 7, 32][: 4 - number], strict=False))
        state.step([Contribution.of(n, decode(content, LAYOUT)) for content, n in given], 0.7)
        digests.append(state.digest())
        rounds.append([{"content": text_of(content), "samples": n} for content, n in given])
    state.step([], settings)
    answer = ask(
        "stepped",
        checkpoint=text_of(checkpoint),
        sizes=LAYOUT.sizes,
        rounds=[*rounds, []],
        settings=settings,
    )
    assert answer == [*digests, state.digest()]


def test_the_host_reads_a_tabs_payload_and_report(tmp_path: Path) -> None:
    swarm = make_swarm(tmp_path, "nobody")
    of = payload.Round(swarm.run, 3, "ab" * 32)
    update = ask("sparse", vector=torch.randn(swarm.layout.elements), sizes=swarm.layout.sizes)
    fields = {**asdict(of), "samples": 24}
    sent = ask("sealed", kind="payload", fields=fields, body=update["content"])
    found = payload.read(base64.b64decode(sent["content"]), of, swarm.layout, math.inf)
    assert found.samples == 24
    assert found.peer == sent["identity"] == sent["signer"] == peer_id_of(sent["text"])
    reached = {"state": 2.0, "connect": 1.0}
    told = Report("Åsa", "training", 1764110000.0, 1764110000.125, 3, 0.0001, 5, 0, reached)
    sent = ask("sealed", kind="report", fields={"run": swarm.run} | asdict(told), body="")
    found = report.read(base64.b64decode(sent["content"]), swarm.run, now=1764110001)
    assert found == (sent["identity"], told)


def test_a_tab_opens_what_a_python_peer_signed_and_nothing_else() -> None:
    key = RSAPrivateKey()
    content = envelope.seal("closing", {"run": "r", "number": 2, "end": "e"}, b"body", key)
    opened = ask("opened", kind="closing", content=text_of(content))
    assert opened["fields"] == {"run": "r", "number": 2, "end": "e"}
    assert base64.b64decode(opened["body"]) == b"body"
    assert opened["signer"] == peer_id_of(key.get_public_key().to_bytes().decode())
    with pytest.raises(AssertionError, match="Error"):
        ask("opened", kind="payload", content=text_of(content))
    for changed in (content[:-1] + b"x", content.replace(b'"number":2', b'"number":3')):
        with pytest.raises(AssertionError, match=r"Error: .*sign"):
            ask("opened", kind="closing", content=text_of(changed))


def test_a_tabs_local_steps_are_adamws() -> None:
    model = random_model()
    optimizer = torch.optim.AdamW(parameter_groups(model, REHEARSAL), betas=(0.9, 0.95))
    settings = {
        "betas": [0.9, 0.95],
        "weight_decay": REHEARSAL.optimizer.weight_decay,
        "max_gradient_norm": 1.0,
    }
    steps = steps_of(model, optimizer, longest=1.0)
    moved = ask("moved", kind="AdamW", settings=settings, **steps)
    torch.testing.assert_close(moved, flatten(list(model.parameters())), rtol=1e-5, atol=1e-6)


def test_a_tab_begins_again_when_rejected_and_keeps_what_never_arrived(tmp_path: Path) -> None:
    fates = ["refused", "taken", "rejected", "taken"]
    model = random_model()
    weights = flatten(list(model.parameters()))
    store = FolderStore(tmp_path)
    checkpoint = store.get(catching_up.publish(store, SharedState(weights, 0, 0)), 10**9)
    optimizer = {"betas": [0.9, 0.95], "weight_decay": 0.0, "max_gradient_norm": 1.0}
    about = {
        "run": "r",
        "model": shape_of(model),
        "micro_batch": 2,
        "rows": 4,
        "poll_seconds": 0,
        "schedule": {"warmup_steps": 0, "total_steps": len(fates)},
        "local": optimizer | {"seconds": 0, "learning_rate": 0.01},
        "outer": {"learning_rate": 0.7, "longest": 2.0, "heaviest": 1.5},
    }
    found = ask("followed", about=about, checkpoint=text_of(checkpoint), fates=fates)
    assert [told["leftOut"] for told in found["told"]] == [0, 0, 1, 1]
    assert [told["samples"] for told in found["told"]] == [0, 2, 2, 4]
    assert [bool(residual.any()) for residual in found["residuals"]] == [True, True, False, True]
    assert found["rounds"] == 2


@pytest.mark.parametrize("spoil", [lambda c: c[:-1], lambda c: b"\xff\xff" + c[2:]])
def test_a_tab_refuses_what_python_refuses(spoil: object) -> None:
    content = spoil(encode(random_vector(4), LAYOUT))  # type: ignore[operator]
    with pytest.raises(FileError):
        decode(content, LAYOUT)
    with pytest.raises(AssertionError, match="Error"):
        ask("read", content=text_of(content), sizes=LAYOUT.sizes)
