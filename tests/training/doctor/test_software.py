import json
import platform
import re
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.training.doctor.conftest import MakeSetup, expect
from tools.console import ROOT
from training.doctor import software
from training.doctor.findings import Verdict
from training.run import limits


def test_the_pins_are_those_of_the_extra() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    for pin in software.read_pins():
        assert f'"{pin}"' in text
    assert any(pin.startswith("hivemind==") for pin in software.read_pins())


def test_an_installed_package_has_the_pins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    required = ["torch==2.13.0 ; extra == 'training'", "pytest==9.2.0 ; extra == 'test'"]
    monkeypatch.setattr(software, "_checkout", lambda: tmp_path)
    monkeypatch.setattr("importlib.metadata.requires", lambda _name: required)
    assert software.read_pins() == required[:1]


def test_another_version_is_named_with_its_reason() -> None:
    differences, missing = software.compare(["numpy<1.0"])
    assert re.fullmatch(
        r"numpy is [\d.]+, not <1\.0: with 2\.4 or newer, hivemind .*", differences[0]
    )
    assert missing == []


def test_a_missing_package_is_named_and_one_for_another_system_is_not() -> None:
    pins = ["no-such-thing==1.0", "nor-this==2.0; sys_platform == 'win32'"]
    assert software.compare(pins) == ([], ["no-such-thing ==1.0 is missing"])


def test_differences_only_warn(make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "read_pins", lambda: ["numpy<1.0"])
    expect(software.look_at_packages(make_setup()), Verdict.WARNING, fix="[training]")
    monkeypatch.setattr(software, "read_pins", lambda: ["no-such-thing==1.0"])
    expect(software.look_at_packages(make_setup()), Verdict.PROBLEM)


def test_a_broken_package_is_told(make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        if name == "bitsandbytes":
            raise OSError("libcudart.so.13: cannot open shared object file\nand more")

    monkeypatch.setattr("training.doctor.setup.import_module", fail)
    finding = expect(software.look_at_packages(make_setup()), Verdict.PROBLEM)
    assert finding.cause.endswith(
        "bitsandbytes does not import (OSError: libcudart.so.13: cannot open shared object file)"
    )


def test_without_any_package_the_doctor_says_which_are_missing(tmp_path: Path) -> None:
    run_file = tmp_path / "run.toml"
    run_file.write_text('name = "our-run"\nrecipe = "tiny"\n')
    command = [sys.executable, "-S", "-m", "training", "doctor", str(run_file)]
    command += ["--folder", str(tmp_path / "volunteer"), "--json"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (1, "")
    findings = {one["point"]: one for one in json.loads(answer.stdout)["findings"]}
    assert findings["packages"]["cause"].startswith("torch is missing; ")
    assert findings["memory"]["cause"] == "not checked: torch does not import"
    assert findings["disk"]["verdict"] == "fine"


def test_windows_is_told_of_wsl(make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    expect(software.look_at_system(make_setup()), Verdict.PROBLEM, fix="wsl --install")


@pytest.mark.parametrize(
    ("machine", "verdict"), [("arm64", Verdict.FINE), ("x86_64", Verdict.PROBLEM)]
)
def test_a_mac_needs_apple_silicon(
    make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch, machine: str, verdict: Verdict
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    expect(software.look_at_system(make_setup()), verdict)


@pytest.mark.parametrize(
    ("url", "kind", "named"),
    [
        ("https://example.org/run", {"vcs_info": {"vcs": "git"}}, "git+https://example.org/run"),
        ("https://example.org/run.zip", {"archive_info": {}}, "https://example.org/run.zip"),
    ],
)
def test_the_command_that_installs_names_where_the_code_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, kind: dict[str, object], named: str
) -> None:
    origin = {"direct_url.json": json.dumps({"url": url} | kind)}
    installed = SimpleNamespace(read_text=origin.get)
    monkeypatch.setattr(software, "_checkout", lambda: tmp_path)
    monkeypatch.setattr(software.importlib.metadata, "distribution", lambda _: installed)
    expected = f'pip install "{software.DISTRIBUTION}[training] @ {named}"'
    assert software.install_command() == expected


@pytest.mark.parametrize(
    ("tested", "verdict"),
    [
        (((2, 7), (3, 4)), Verdict.WARNING),
        (((4, 0), (4, 1)), Verdict.PROBLEM),
        (((3, 0), (3, 99)), Verdict.FINE),
    ],
)
def test_python_is_judged_by_what_is_tested(
    make_setup: MakeSetup,
    monkeypatch: pytest.MonkeyPatch,
    tested: tuple[tuple[int, int], ...],
    verdict: Verdict,
) -> None:
    monkeypatch.setattr(software, "TESTED_PYTHONS", tested)
    expect(software.look_at_python(make_setup()), verdict)


def test_the_tested_pythons_are_those_of_the_workflow() -> None:
    workflow = (ROOT / ".github" / "workflows" / "site.yml").read_text()
    versions, _calculators = re.findall(r"python: \[(.*)\]", workflow)
    oldest, newest = software.TESTED_PYTHONS
    assert versions == f'"{oldest[0]}.{oldest[1]}", "{newest[0]}.{newest[1]}"'


RAISE = """
import resource
from training.run import limits
resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))
print(limits.raise_open_files(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("hard", "now"), [(5000, limits.WANTED_FILES), (600, 600)])
def test_a_low_limit_of_open_files_is_raised_as_far_as_allowed(hard: int, now: int) -> None:
    code = RAISE.format(hard=hard)
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == f"(256, {now}) {now}"


def test_a_low_limit_is_told(make_setup: MakeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "raise_open_files", lambda: (256, 600))
    finding = expect(software.look_at_open_files(make_setup()), Verdict.WARNING)
    assert finding.cause.startswith("at most 600")


def test_no_limit_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: unlimited)
    raised = limits.raise_open_files()
    assert raised[1] > limits.WANTED_FILES
