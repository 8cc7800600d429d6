import threading
from pathlib import Path

import pytest

from calculator.errors import InputError
from training.__main__ import _make_join, _make_monitor, default_folder, main, make_parser
from training.rehearsal.command import RehearsalOptions, name_of, rehearse
from training.run.runfile import RunFile, load


def test_a_bad_run_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text('name = "Our run"\nrecipe = "tiny"\n')
    assert main(["join", str(tmp_path / "run.toml")]) == 2
    error = capsys.readouterr().err
    assert error == "error: name = 'Our run': 1 to 40 of a-z, 0-9 and -\n"


@pytest.mark.parametrize(
    ("option", "value", "field"),
    [("--minutes", "0.0", "minutes"), ("--peers", "0", "peers"), ("--recipe", "tyny", "recipe")],
)
def test_a_rehearsal_refuses_what_makes_no_sense(
    capsys: pytest.CaptureFixture[str], option: str, value: str, field: str
) -> None:
    assert main(["rehearse", option, value]) == 2
    assert capsys.readouterr().err.startswith(f"error: {field} = '{value}': ")


def test_a_rehearsal_does_not_write_over_another(tmp_path: Path) -> None:
    (tmp_path / "run.toml").touch()
    with pytest.raises(InputError, match="must not hold another rehearsal"):
        rehearse(RehearsalOptions(folder=tmp_path))


def test_runs_and_roles_have_folders_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    run = RunFile(name="our-run", recipe="tiny")
    folder = Path("/state/training-transformers-together/our-run")
    assert default_folder(run, "join") == folder / "join"
    assert default_folder(run, "monitor") == folder / "monitor"


def test_volunteers_have_names() -> None:
    names = [name_of(index) for index in range(20)]
    assert len(set(names)) == 20


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["join", "--no-doctor"], "exchange"),
        (["monitor", "--announce", "/ip4/203.0.113.5/tcp/1"], "announce"),
        (["monitor", "--behind-firewall"], "behind-firewall"),
    ],
    ids=" ".join,
)
def test_options_of_averaging_are_refused(tmp_path: Path, words: list[str], field: str) -> None:
    (tmp_path / "run.toml").write_text('name = "our-run"\nrecipe = "sparse"\n')
    command, *more = words
    options = make_parser().parse_args([command, str(tmp_path / "run.toml"), *more])
    make_work = _make_join if command == "join" else _make_monitor
    with pytest.raises(InputError) as refused:
        make_work(load(options.run), tmp_path / "x", options)(threading.Event())
    assert refused.value.field == field


def test_local_steps_do_not_roll_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text('name = "our-run"\nrecipe = "sparse"\n')
    assert main(["rollback", str(tmp_path / "run.toml"), "3"]) == 2
    assert "error: recipe = " in capsys.readouterr().err
