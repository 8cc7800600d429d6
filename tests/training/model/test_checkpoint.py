import contextlib
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from calculator.errors import InputError
from tests.training.hub_repository import HubRepository
from training.model import build, checkpoint, configuration
from training.model.build import build_model, config_of
from training.model.transformer import TextToImageTransformer
from training.run.live import LiveFolder
from training.run.recipes import TINY


def new_model(value: float) -> TextToImageTransformer:
    model = build_model(TINY)
    with torch.no_grad():
        next(model.parameters()).fill_(value)
    return model


def test_a_volunteer_gets_what_the_monitor_published(tmp_path: Path) -> None:
    live = LiveFolder(tmp_path)
    checkpoint.publish(live, new_model(1.0), 10, 3.5, "sooner")
    checkpoint.publish(live, new_model(2.0), 20, 3.0, "later")
    step, model = checkpoint.fetch(str(tmp_path))
    assert step == 20
    for ours, theirs in zip(model.parameters(), new_model(2.0).parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_only_the_newest_files_are_kept_and_the_list_says_so(tmp_path: Path) -> None:
    live = LiveFolder(tmp_path)
    for step in range(1, checkpoint.KEPT + 3):
        checkpoint.publish(live, new_model(step), step, None, "")
    entries = json.loads((tmp_path / "checkpoints.json").read_text())
    assert [entry["step"] for entry in entries] == [1, 2, 3, 4, 5]
    there = [entry["address"] is not None for entry in entries]
    assert there == [False, False, True, True, True]
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["000003", "000004", "000005"]
    assert all((tmp_path / e["address"]).exists() for e in entries if e["address"])


def test_a_run_without_entries_has_published_nothing(tmp_path: Path, hub: HubRepository) -> None:
    LiveFolder(tmp_path).write_checkpoints([])
    for live in (str(tmp_path), str(tmp_path / "none"), f"{hub.address}/live/"):  # which says 404
        with pytest.raises(checkpoint.NothingPublishedError, match="no checkpoint is published"):
            checkpoint.fetch(live)


def test_a_place_that_does_not_answer_is_no_run_without_a_checkpoint() -> None:
    with pytest.raises(OSError, match="refused"):
        checkpoint.fetch("http://127.0.0.1:9/live/")


# What others may have written


@pytest.fixture
def published(tmp_path: Path) -> tuple[LiveFolder, Path]:
    live = LiveFolder(tmp_path)
    return live, checkpoint.publish(live, new_model(1.0), 10, None, "")


@pytest.mark.parametrize(
    "change",
    [
        lambda state: dict(list(state.items())[1:]),
        lambda state: state | {"extra.weight": torch.ones(2)},
        lambda state: state | {"text_bias": torch.ones(3)},
        lambda state: {name: tensor.int() for name, tensor in state.items()},
    ],
    ids=["without one", "with another", "with another shape", "in whole numbers"],
)
@pytest.mark.parametrize("config", [None, config_of(TINY)])
def test_weights_that_are_not_all_of_the_models_are_refused(
    published: tuple[LiveFolder, Path], change: Any, config: Any
) -> None:
    live, folder = published
    weights = folder / checkpoint.WEIGHTS
    save_file(change(load_file(weights)), weights)
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    live.write_checkpoints([replace(entry, sha256=digest) for entry in live.read_checkpoints()])
    with pytest.raises(checkpoint.CheckpointError, match=r"is no such model|has tensors of I32"):
        checkpoint.fetch(str(live.path), config=config)


@pytest.mark.parametrize("name", [checkpoint.WEIGHTS, checkpoint.CONFIG, checkpoint.STATES])
def test_a_file_unlike_its_sum_is_refused(tmp_path: Path, name: str) -> None:
    live = LiveFolder(tmp_path)
    folder = checkpoint.publish(live, new_model(1.0), 10, None, "", states_of(1.0))
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)

    def fetch() -> None:
        checkpoint.fetch(str(tmp_path))
        checkpoint.fetch_states(str(tmp_path), 10, states_of(0.0))

    with pytest.raises(checkpoint.CheckpointError, match="is not what the list says"):
        fetch()
    if name == checkpoint.CONFIG:  # who knows the run's model does not read the file at all
        assert checkpoint.fetch(str(tmp_path), config=config_of(TINY))[0] == 10


def test_a_configuration_names_no_kernel_and_no_code(
    published: tuple[LiveFolder, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder = published
    path = folder / checkpoint.CONFIG
    named = {
        "attn_implementation": "someone/kernel",
        "_attn_implementation": "someone/kernel",
        "auto_map": {"AutoModel": "evil.Model"},
        "quantization_config": {"quant_method": "bitsandbytes"},
    }
    path.write_text(json.dumps(json.loads(path.read_text()) | named))

    monkeypatch.setattr(TextToImageTransformer, "from_pretrained", None)  # does not read the file
    model = checkpoint.load(folder)
    assert model.config._attn_implementation == "sdpa"
    assert not hasattr(model.config, "auto_map")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model_type": "t5"}, "model_type"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"hidden_size": "64"}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"image_side": 2**19}, "image_side"),
        ({"attention_kinds": []}, "attention_kinds"),
        ({"attention_kinds": ["diagonal"]}, "config"),
        ({"convolution_kernel": -1}, "convolution_kernel"),
        ({"convolution_kernel": 4}, "convolution_kernel"),
        ({"hidden_size": 30}, "hidden_size"),
        ({"head_size": 7}, "head_size"),
        ({"sharing_groups": 0}, "sharing_groups"),
        ({"begin_id": -1}, "begin_id"),
    ],
)
def test_configurations_of_no_model_are_refused(change: dict[str, Any], field: str) -> None:
    content = json.dumps(config_of(TINY).to_dict() | change).encode()
    with pytest.raises(InputError) as caught:
        build.parse_config(content)
    assert caught.value.field == field


def test_more_layers_than_tensors_are_not_built(published: tuple[LiveFolder, Path]) -> None:
    _, folder = published
    config = config_of(replace(TINY, model=replace(TINY.model, num_hidden_layers=2**19)))
    with pytest.raises(checkpoint.CheckpointError, match="fewer tensors than the model has layers"):
        checkpoint.read(folder / checkpoint.WEIGHTS, config)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@given(st.sampled_from(sorted(configuration._KINDS)), json_values)
def test_whatever_stands_in_a_configuration_it_is_read_or_refused(name: str, value: Any) -> None:
    content = json.dumps(config_of(TINY).to_dict() | {name: value}).encode()
    with contextlib.suppress(InputError):
        build.parse_config(content)


@given(st.binary(max_size=200) | st.sampled_from([b"[" * 10**5, b"{}", b"[1]", b"\xff"]))
def test_whatever_is_no_configuration_is_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        build.parse_config(content)


entries = st.fixed_dictionaries(
    {},
    optional={
        name: json_values
        | st.sampled_from(["0" * 64, "http://[", "file:///etc/passwd", "../..", "a\0b", "http:x"])
        for name in ("step", "loss", "time", "address", "sha256", "config_sha256")
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(entries, max_size=3) | json_values)
def test_whatever_stands_in_a_list_it_is_read_or_refused(tmp_path: Path, value: Any) -> None:
    (tmp_path / "checkpoints.json").write_text(json.dumps(value))
    with pytest.raises((checkpoint.CheckpointError, OSError)):
        checkpoint.fetch(str(tmp_path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_weights_with_other_bytes_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    weights = tmp_path / "good.safetensors"
    if not weights.exists():
        save_file(new_model(1.0).state_dict(), weights)
    content = bytearray(weights.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, 4000) | st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.none() | st.integers(0, len(content)))
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(content[:cut])
    with contextlib.suppress(checkpoint.CheckpointError):
        checkpoint.read(broken, config_of(TINY))


def states_of(value: float) -> list[torch.Tensor]:
    """As an optimizer with 8-bit states has them: codes and scales."""
    return [torch.full((300,), int(value), dtype=torch.uint8), torch.full((3,), value)]


def test_a_checkpoint_holds_the_optimizers_states(tmp_path: Path) -> None:
    live = LiveFolder(tmp_path)
    checkpoint.publish(live, new_model(1.0), 10, None, "", states_of(3.0))
    states = checkpoint.fetch_states(str(tmp_path), 10, states_of(0.0))
    assert all(torch.equal(a, b) for a, b in zip(states, states_of(3.0), strict=True))
    assert checkpoint.fetch_states(str(tmp_path), 9, states_of(0.0)) is None  # of another step
    checkpoint.publish(live, new_model(1.0), 20, None, "")
    assert checkpoint.fetch_states(str(tmp_path), 20, states_of(0.0)) is None


def test_states_of_another_optimizer_or_infinite_ones_are_refused(tmp_path: Path) -> None:
    live = LiveFolder(tmp_path)
    checkpoint.publish(live, new_model(1.0), 10, None, "", states_of(1.0))
    with pytest.raises(checkpoint.CheckpointError, match="another optimizer's"):
        checkpoint.fetch_states(str(tmp_path), 10, [torch.zeros(300), torch.zeros(3)])
    broken = [torch.zeros(300, dtype=torch.uint8), torch.full((3,), torch.inf)]
    checkpoint.publish(live, new_model(1.0), 20, None, "", broken)
    with pytest.raises(checkpoint.CheckpointError, match="not finite"):
        checkpoint.fetch_states(str(tmp_path), 20, states_of(0.0))
