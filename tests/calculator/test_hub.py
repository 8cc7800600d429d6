"""Reading a config.json from a local server that answers as the Hub does."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from calculator import hub
from calculator.__main__ import main
from calculator.errors import InputError
from tests.calculator.answers import refusal
from tests.training.answering import Answering, on_any_port, served

CONFIG = {"model_type": "gpt2", "n_layer": 3, "n_embd": 96, "n_head": 4}
# status, text, and header by the name of a repository with one trouble, as the Hub's for such ones
ANSWERS: dict[str, tuple[int, bytes, str]] = {
    "small": (200, json.dumps(CONFIG).encode(), ""),
    "missing": (401, b"", "RepoNotFound"),
    "adapter": (404, b"", "EntryNotFound"),
    "gated": (401, b"", "GatedRepo"),
    "refused": (403, b"", ""),
    "page": (200, b"<!doctype html><title>Sign in</title>", ""),
    "bytes": (200, b"\xff\xfe\x00", ""),
    "huge": (200, b" " * (hub.LARGEST + 10), ""),
    "broken": (503, b"", ""),
}
ASKED: list[tuple[str, str | None]] = []


class Hub(Answering):
    def do_GET(self) -> None:
        ASKED.append((self.path, self.headers["Authorization"]))
        owner, name, *rest = self.path.strip("/").split("/")
        assert (owner, rest) == ("me", ["resolve", "main", "config.json"])
        if name == "gated" and self.headers["Authorization"] == "Bearer hf_mine":
            name = "small"
        if name in ANSWERS:
            status, body, code = ANSWERS[name]
            self.answer(body, status, X_Error_Code=code)
        else:
            getattr(self, name)()

    def silent(self) -> None:
        time.sleep(0.5)

    def slow(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(50):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.02)

    def moved(self) -> None:
        port = self.server.server_address[1]
        there = f"http://localhost:{port}/me/small/resolve/main/config.json"
        self.answer(b"", 307, Location=there)


@pytest.fixture(autouse=True)
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = on_any_port(Hub)
    server.daemon_threads = False  # type: ignore[attr-defined]  # closing waits for them
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    ASKED.clear()
    with served(server) as found:
        monkeypatch.setenv("HF_ENDPOINT", found)
        yield found


def test_a_config_is_read_once_and_then_kept(tmp_path: Path) -> None:
    assert hub.read_hub_config("me/small") == CONFIG
    assert hub.read_hub_config("me/small") == CONFIG
    assert hub.read_hub_config("me/small", offline=True) == CONFIG
    assert ASKED == [("/me/small/resolve/main/config.json", None)]
    assert [path.name for path in tmp_path.rglob("*.json")] == ["me--small.json"]


def test_a_damaged_copy_is_read_again(tmp_path: Path) -> None:
    hub.read_hub_config("me/small")
    (kept,) = tmp_path.rglob("*.json")
    kept.write_text('{"model_')
    assert hub.read_hub_config("me/small") == CONFIG
    assert json.loads(kept.read_text()) == CONFIG


def test_where_nothing_can_be_kept_it_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert hub.read_hub_config("me/small") == CONFIG


def test_a_token_opens_a_gated_model_and_is_not_sent_to_the_host_that_a_redirect_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    for name in ("gated", "moved"):
        assert hub.read_hub_config(f"me/{name}") == CONFIG
    assert [token for _, token in ASKED] == ["Bearer hf_mine", "Bearer hf_mine", None]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", "neither in the catalog nor on the Hub"),
        ("adapter", "has no config.json on the Hub"),
        ("gated", r"is gated: accept its terms at .*/me/gated and set HF_TOKEN"),
        ("refused", "is gated"),
        ("page", "must be a config.json"),
        ("bytes", "must be text in UTF-8"),
        ("huge", "must have at most 8,000,000 bytes"),
        ("broken", "the Hub answered with status 503; try again"),
        ("silent", "the Hub did not answer in time; try again"),
        ("slow", "the Hub did not answer in time; try again"),
    ],
)
def test_each_trouble_has_its_own_words_and_nothing_is_kept(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "TIMEOUT", 0.3)
    monkeypatch.setattr(hub, "LONGEST_WAIT", 0.2)
    with pytest.raises(InputError, match=f"^model = 'me/{name}': .*{words}"):
        hub.read_hub_config(f"me/{name}")
    assert not [*tmp_path.rglob("*.json")]


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("HF_ENDPOINT", "http://127.0.0.1:1", "the Hub cannot be reached"),
        ("HF_ENDPOINT", "file:///etc", "must begin with https"),
        ("HF_HUB_OFFLINE", "1", "is not in the cache"),
    ],
)
def test_without_the_hub_the_way_out_is_named(
    variable: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=words):
        hub.read_hub_config("me/small")


@pytest.mark.parametrize("ending", ["", "/tree/main", "?library=transformers"])
def test_the_command_line_counts_a_model_that_the_catalog_lacks(
    ending: str, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"https://huggingface.co/me/small{ending}" if ending else "me/small"
    assert main(["estimate", name, "--json"]) == 0
    # 50,257 tokens and 1,024 places of 96; of each of 3 layers 12 h^2 + 13 h; a last norm
    count = (50_257 + 1_024) * 96 + 3 * (12 * 96**2 + 13 * 96) + 2 * 96
    answer = json.loads(capsys.readouterr().out)
    assert (answer["model"], answer["parameters"]) == ("me/small", count)
    assert main(["code", name, "--offline"]) == 0
    assert '"me/small"' in capsys.readouterr().out


def test_offline_is_an_option_and_asks_nobody_as_a_model_of_the_catalog(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "leave --offline out" in refusal(["estimate", "me/small", "--offline"], capsys)
    for name in ("distilbert/distilbert-base-uncased", "https://hf.co/openai-community/gpt2"):
        assert main(["estimate", name]) == 0
    assert not ASKED
