"""Checkpoints on the Hub: its interface is spoken by a server on this machine."""

import hashlib
import logging
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.training.hub_repository import TOKEN, HubRepository, use_hub
from tests.training.processes import wait_for
from training.model import checkpoint
from training.model.build import build_model
from training.monitor import publish
from training.rehearsal.command import free_port
from training.run import atomic
from training.run.live import CheckpointEntry, Contributor, LiveFolder
from training.run.recipes import TINY
from training.run.runfile import RunFile

# huggingface_hub hands files to httpx in a way that httpx deprecates
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")

RUN = RunFile("ours", "tiny", title="Our run", checkpoints="someone/model", license="apache-2.0")
MODEL = build_model(TINY)


@pytest.fixture
def hub(hub: HubRepository, monkeypatch: pytest.MonkeyPatch) -> HubRepository:
    use_hub(monkeypatch, hub.address)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return hub


@pytest.fixture
def live(tmp_path: Path) -> LiveFolder:
    live = LiveFolder(tmp_path / "live")
    checkpoint.publish(live, MODEL, 10, 3.25, "2026-01-01T00:00:00.000Z")
    live.write_peers([Contributor("a1", "Ada", 640, 60.0, "", "", "training", 10)])
    return live


def test_a_checkpoint_is_one_commit_with_its_sum(hub: HubRepository, live: LiveFolder) -> None:
    address = publish.publish_newest(RUN, live)
    assert publish.publish_newest(RUN, live) is None  # it is there already
    assert (len(hub.commits), hub.uploads) == (1, 1)
    assert hub.messages == ["Step 10, loss 3.250"]
    names = {"model.safetensors", "config.json", "model.safetensors.sha256", "README.md"}
    assert set(hub.newest) == names
    digest = hashlib.sha256(hub.newest["model.safetensors"]).hexdigest()
    entry = live.read_checkpoints()[-1]
    assert digest == entry.sha256
    assert hub.newest["model.safetensors.sha256"].decode() == f"{digest}  model.safetensors\n"
    assert entry.address == address
    (oid,) = hub.commits
    assert address == f"{hub.address}/someone/model/resolve/{oid}/model.safetensors"
    card = hub.newest["README.md"].decode()
    assert card.startswith("---\n")
    for words in (
        "license: apache-2.0",
        "# Our run, step 10",
        "| recipe | tiny |",
        "| 3.250 |",
        "| shapes |",
        "1, 640 sequences",
        entry.sha256,
        "python -m training generate someone/model",
    ):
        assert words in card


@pytest.mark.parametrize(
    ("recipe", "rows"),
    [
        ("paper", {"| target batch | 4,096 sequences |"}),
        ("sparse", {"| local steps | 1 s in a step |"}),
        ("language", {"pipeline_tag: text-generation", "| model_type | llama |"}),
    ],
)
def test_a_card_tells_of_steps_and_purpose(tmp_path: Path, recipe: str, rows: set[str]) -> None:
    entry = CheckpointEntry(2, 1.25, "2026-01-01T00:00:00.000Z", None, "0" * 64)
    card = publish.make_card(RunFile("our-run", recipe), LiveFolder(tmp_path), entry)
    assert rows <= set(card.splitlines())
    assert ("VQ-GAN" in card) is (recipe != "language")


def test_a_refusal_names_the_token_and_never_shows_it(
    hub: HubRepository, live: LiveFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of-a-stranger")
    with pytest.raises(publish.PublishError, match="HF_TOKEN") as caught:
        publish.publish_newest(RUN, live)
    assert "401" in str(caught.value)
    assert "hf_of-a-stranger" not in str(caught.value)
    assert not hub.commits


def test_an_unreachable_hub_is_one_line(live: LiveFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    use_hub(monkeypatch, f"http://127.0.0.1:{free_port()}")
    with pytest.raises(publish.PublishError, match=r"^someone/model: .+") as failed:
        publish.publish_newest(RUN, live)
    assert len(str(failed.value).splitlines()) == 1


def test_the_uploader_tries_until_it_is_there(
    hub: HubRepository, live: LiveFolder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hub.fail = {"upload": 1, "commit": 1}
    said: list[str] = []
    uploader = publish.Uploader(RUN, live, said.append, first_pause=0.05)
    assert uploader.finish(20.0)
    assert hub.uploads == 1, "a failed commit sends no weights again"
    wait_for("the sentence", lambda: any("is on the Hub: " in sentence for sentence in said))
    assert sum("trying again" in sentence for sentence in said) == 2
    checkpoint.publish(live, MODEL, 20, None, "later")
    uploader.look()
    wait_for("the second commit", lambda: len(hub.commits) == 2)
    assert uploader.finish(20.0)
    uploader.close()
    assert hub.messages[-1] == "Step 20"
    assert TOKEN not in "".join(said) + caplog.text


def test_volunteers_load_from_the_hub(hub: HubRepository, live: LiveFolder, tmp_path: Path) -> None:
    publish.publish_newest(RUN, live)
    for entry in (live.path / "checkpoints").iterdir():
        for file in entry.iterdir():
            file.unlink()
    percents: list[int] = []
    step, model = checkpoint.fetch(str(live.path), tmp_path / "mine", percents.append)
    assert step == 10
    assert model.config.recipe == "tiny"
    torch.testing.assert_close(model.state_dict(), MODEL.state_dict(), rtol=0, atol=0)
    assert percents[-1] == 100
    assert percents == sorted(percents)
    assert not list((tmp_path / "mine").iterdir())


def test_files_that_the_hub_keeps_outlive_those_here(hub: HubRepository, live: LiveFolder) -> None:
    address = publish.publish_newest(RUN, live)
    for step in range(20, 70, 10):
        checkpoint.publish(live, MODEL, step, None, "later")
    entries = live.read_checkpoints()
    assert entries[0].address == address
    assert [entry.address is None for entry in entries] == [False, True, True, False, False, False]
    assert hub.uploads == 1


def test_lists_that_lead_elsewhere_are_refused(live: LiveFolder, tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"secret")
    for address in ("../model.safetensors", str(weights)):
        entry = replace(live.read_checkpoints()[0], address=address, sha256=atomic.sha256(weights))
        live.write_checkpoints([entry])
        with pytest.raises(checkpoint.CheckpointError, match="not in that folder"):
            checkpoint.fetch(str(live.path))
