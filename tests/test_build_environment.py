"""tools/environment.py and tools/console.py: what is installed when, and how failures read."""

import sys
from pathlib import Path

import pytest

from tools import console, environment
from tools.console import BuildError
from tools.environment import Group


class Installer:
    """Stands in for uv and pip: remembers the files that each was asked to install."""

    def __init__(self) -> None:
        self.installed: list[str] = []
        self.with_pip: list[str] = []
        self.failing: tuple[str, ...] = ()
        self.has_uv = True

    def __call__(self, command: list[str | Path], failure: str, **_: object) -> str:
        if "config" in command or "ensurepip" in command:
            return ""
        name, with_pip = Path(command[-1]).name, "uv" not in command
        if name in self.failing or not (with_pip or self.has_uv):
            raise BuildError(failure)
        if name != "uv.txt":
            (self.with_pip if with_pip else self.installed).append(name)
        return ""


@pytest.fixture
def installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    """An empty environment in a temporary folder, whose pip is an Installer."""
    for group in Group:
        (tmp_path / f"{group}.txt").write_text(f"# {group}\n")
    stamps = tmp_path / "stamps"
    stamps.mkdir()
    (stamps / "python").write_text(environment._base_python())
    monkeypatch.setattr(environment, "REQUIREMENTS", tmp_path)
    monkeypatch.setattr(environment, "STAMPS", stamps)
    monkeypatch.setattr(environment, "VENV", tmp_path / "venv")
    monkeypatch.setattr(environment, "venv_python", lambda: Path(sys.executable))
    environment._pip_settings.cache_clear()
    environment._pip.cache_clear()
    stand_in = Installer()
    monkeypatch.setattr(environment, "run", stand_in)
    return stand_in


def test_only_a_changed_requirement_file_is_installed_again(
    installer: Installer, tmp_path: Path
) -> None:
    for _ in range(2):
        environment.ensure([Group.SITE, Group.TEST])
    assert installer.installed == ["site.txt", "test.txt"]
    (tmp_path / "site.txt").write_text("# other\n")
    environment.ensure([Group.SITE, Group.TEST])
    assert installer.installed == ["site.txt", "test.txt", "site.txt"]


def test_pip_installs_where_there_is_no_uv_and_a_failed_installation_is_tried_again(
    installer: Installer,
) -> None:
    installer.failing = ("site.txt",)
    with pytest.raises(BuildError, match=r"site\.txt"):
        environment.ensure([Group.SITE])
    installer.failing = ()
    environment.ensure([Group.SITE])
    assert (installer.installed, installer.with_pip) == (["site.txt"], [])
    installer.has_uv = False
    environment.ensure([Group.TEST])
    assert (installer.installed, installer.with_pip) == (["site.txt"], ["test.txt"])


@pytest.mark.parametrize("has_pip", [True, False])
def test_pip_is_this_pythons_own_and_put_into_the_environment_only_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, has_pip: bool
) -> None:
    asked: list[list[str | Path]] = []
    monkeypatch.setattr(environment, "run", lambda command, _: asked.append(command))
    monkeypatch.setattr(environment.importlib.util, "find_spec", lambda _: has_pip or None)
    python = environment.venv_python()
    owner = sys.executable if has_pip else python
    assert environment._pip.__wrapped__() == [owner, "-m", "pip"]
    assert asked == ([] if has_pip else [[python, "-m", "ensurepip"]])


def test_uv_looks_where_pip_is_told_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    said = """\
:env:.find-links='/wheels /more'
global.find-links='/not this'
global.extra-index-url='\\nhttps://a.example/simple\\nhttps://b.example/simple'
global.default-timeout='60'
"""
    environment._pip.cache_clear()
    monkeypatch.setattr(environment, "run", lambda *_: said)
    assert environment._pip_settings.__wrapped__() == {
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
    }


@pytest.mark.parametrize(
    ("failing", "has_gpu", "taken"),
    [
        ((), False, "torch-cpu.txt"),
        (("torch-cpu.txt",), False, "torch.txt"),  # pip is offered no build for CPUs
        ((), True, "torch.txt"),
    ],
)
def test_torch_is_the_build_for_cpus_where_there_is_one_and_no_gpu(
    installer: Installer,
    monkeypatch: pytest.MonkeyPatch,
    failing: tuple[str, ...],
    has_gpu: bool,
    taken: str,
) -> None:
    monkeypatch.setattr(environment.shutil, "which", lambda name: name if has_gpu else None)
    installer.failing = failing
    environment.ensure([Group.TORCH])
    environment.ensure([Group.TORCH])
    assert installer.installed == [taken]


@pytest.mark.parametrize(
    ("output", "meaning"),
    [
        ("Temporary failure in name resolution", "network cannot be reached"),
        ("npm error code ENOTFOUND", "network cannot be reached"),
        ("error: command 'gcc' failed: No such file", "no working C compiler"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "does not match its pin"),
        ("ERROR: No matching distribution found for a==1", "no build for this Python"),
    ],
)
def test_a_failure_is_said_in_plain_words_before_its_output(output: str, meaning: str) -> None:
    program = f"import sys; print({output!r}); sys.exit(3)"
    with pytest.raises(BuildError) as caught:
        console.run([sys.executable, "-c", program], "It did not work.")
    sentence, explanation, *rest = str(caught.value).splitlines()
    assert sentence == "It did not work."
    assert meaning in explanation
    assert rest == [f"    | {output}"]


def test_a_program_that_is_not_there_is_a_plain_failure(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"^It did not start\. \("):
        console.run([tmp_path / "nothing"], "It did not start.")


def test_every_pin_has_a_hash_and_no_file_names_a_registry() -> None:
    for path in (console.ROOT / "requirements").glob("*.txt"):
        pins = [line for line in path.read_text().splitlines() if "==" in line]
        assert pins
        assert all(line.endswith("\\") for line in pins if not line.startswith("#"))
        assert "://" not in path.read_text()


def test_files_that_share_a_package_pin_the_same_version() -> None:
    versions: dict[str, set[str]] = {}
    for path in (console.ROOT / "requirements").glob("*.txt"):
        if path.stem == "torch-cpu":  # has torch's other build on purpose
            continue
        for line in path.read_text().splitlines():
            if line[:1].isalpha():
                pin, _, marker = line.rstrip(" \\").partition(" ; ")
                name, version = pin.split("==")
                versions.setdefault(f"{name} ; {marker}", set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
