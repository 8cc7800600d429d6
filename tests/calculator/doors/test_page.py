"""`check` on the calculator's page says what the command line says, for the form's choices."""

from pathlib import Path
from typing import Any

import pytest

from calculator.doors.check import check_files
from tests.calculator.plans import ask

FILES = Path(__file__).parent / "files"
LONE = '{"output_dir": "out", "per_device_train_batch_size": 4}'


def asked(files: object, **params: object) -> dict[str, Any]:
    """The page's answer, asked until the search for changes has ended."""
    found: dict[str, Any] = ask("check", files=files, **params)
    while not all(run["done"] for run in found.get("value", ())):
        found = ask("check", files=files, **params)
    return found


def brought(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "text": (FILES / name).read_text("utf-8")} for name in names]


@pytest.mark.parametrize("card", ["t4", "a100-80"])
@pytest.mark.parametrize(
    "names", [("axolotl.yml",), ("program.py",), ("trl.yaml", "accelerate.yaml", "deepspeed.json")]
)
def test_the_page_says_what_the_command_line_says(
    names: tuple[str, ...], card: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FILES)
    (run,) = asked(brought(*names), gpu=card)["value"]
    (found,) = check_files(names, card, offline=True)
    assert (run["verdict"], run["assumed"]) == (found.verdict, found.assumed)
    assert run["patch"] == (found.repair.patch if found.repair else "")
    assert run["remedy"].startswith(found.remedy)
    assert set(found.notes) <= set(run["notes"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LONE, "model gpt2-l"),
        (LONE.replace("{", '{"model_name_or_path": "me/mine", ', 1), "of the form, gpt2-l"),
    ],
)
def test_the_form_has_the_model_where_no_file_names_a_known_one(text: str, words: str) -> None:
    (run,) = asked([{"name": "run.json", "text": text}], model="gpt2-l")["value"]
    assert words in " ".join([run["assumed"], *run["notes"]])
    assert run["plan"][0] == "Model: gpt2-l"
    assert run["query"]


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ([], "must be a list of 1 to 20 files"),
        ("run.yml", "must be a list of 1 to 20 files"),
        ([{"name": "run.yml"}], "must have a name and a text each"),
        ([{"name": "run.yml", "text": "a: [" + " " * 1_000_000}], "at most 1,000,000"),
        ([{"name": "run.yml", "text": "a: &a [*a]"}], "configures no training"),
    ],
)
def test_what_is_no_file_of_training_is_refused(files: object, rule: str) -> None:
    error = asked(files)["error"]
    assert error["type"] == "InputError"
    assert rule in error["message"]
