"""Location of the source: tools/source.py, citations.py and filling.py; no page forgets it."""

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tools import citations, filling, source
from tools.console import ROOT, BuildError
from tools.source import ARCHIVE, NAME, Source, find_source, web_address, write_archive

REPOSITORY = "https://github.com/we/run"


def test_a_remote_becomes_an_address_that_others_can_open() -> None:
    ssh = ("git@github.com:we/run.git", "ssh://git@github.com:22/we/run.git")
    for remote in (REPOSITORY, f"{REPOSITORY}.git", f"{REPOSITORY}/", *ssh):
        assert web_address(remote) == REPOSITORY, remote
    with_secret = "https://me:secret@example.org:8443/a/b"
    assert web_address(with_secret) == "https://example.org:8443/a/b"
    local = (
        "",
        "../elsewhere",
        "/srv/git/run.git",
        "file:///srv/git/run.git",
        "https://localhost/a",
    )
    for remote in (*local, "https://github.com/", "https://example.org/a b;rm"):
        assert web_address(remote) == "", remote


def test_the_environment_goes_before_the_clones_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "ROOT", tmp_path)
    monkeypatch.delenv("SOURCE_URL", raising=False)
    monkeypatch.setenv("SITE_URL", "https://example.org/site")
    assert find_source() == Source("", "https://example.org/site/")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    remote = ["git", "remote", "add", "origin", "git@example.org:us/run.git"]
    subprocess.run(remote, cwd=tmp_path, check=True)
    assert find_source().repository == "https://example.org/us/run"
    monkeypatch.setenv("SOURCE_URL", REPOSITORY)
    assert find_source().repository == REPOSITORY
    monkeypatch.setenv("SOURCE_URL", "we/run")
    with pytest.raises(BuildError, match="SOURCE_URL = we/run: must be the web address"):
        find_source()


def test_commands_install_from_the_repository_else_from_the_sites_archive() -> None:
    known, whole, relative = Source(REPOSITORY), Source("", "https://example.org/"), Source()
    assert known.install("training") == f'pip install "{NAME}[training] @ git+{REPOSITORY}"'
    assert whole.install("a") == f'pip install "{NAME}[a] @ https://example.org/{ARCHIVE}"'
    assert relative.install("a") == f'pip install "./{ARCHIVE}[a]"'
    assert [one.needs_download for one in (known, whole, relative)] == [False, False, True]
    assert known.get == (f"git clone {REPOSITORY} {NAME}", f"cd {NAME}")
    assert whole.get[0] == f"curl -LO https://example.org/{ARCHIVE}"


def test_notebooks_of_github_open_in_colab_and_kaggle_where_they_are_published() -> None:
    address = "https://colab.research.google.com/github/we/run/blob/notebooks/join.ipynb"
    published = Source(REPOSITORY, "", "notebooks")
    assert published.colab("join.ipynb") == address
    place = "src=https://github.com/we/run/blob/notebooks/join.ipynb"
    assert published.kaggle("join.ipynb").endswith(place)
    assert Source(REPOSITORY).colab("join.ipynb") == Source(REPOSITORY).kaggle("join.ipynb") == ""
    assert Source("https://gitlab.com/we/run", "", "notebooks").colab("join.ipynb") == ""


def test_archives_of_the_same_files_are_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "files", lambda: ["build.py", "tools/source.py"])
    for name, now in (("one.tar.gz", 1e9), ("two.tar.gz", 2e9)):
        monkeypatch.setattr("gzip.time.time", lambda now=now: now)
        write_archive(tmp_path / name)
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


def test_the_archive_has_every_source_and_can_be_built(tmp_path: Path) -> None:
    write_archive(tmp_path / "one.tar.gz")
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        names = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    assert names == set(source.files())
    assert {"build.py", "pyproject.toml", "training/__main__.py", "LICENSE"} <= names
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    environment["GIT_CEILING_DIRECTORIES"] = str(tmp_path)
    program = "from tools import source; print(len(source.files()))"
    command = [sys.executable, "-c", program]
    listed = subprocess.check_output(command, cwd=tmp_path / NAME, env=environment)
    assert int(listed) == len(names)  # without git, too


def test_cited_files_and_modules_become_links_once(tmp_path: Path) -> None:
    page = tmp_path / "deep" / "index.html"
    page.parent.mkdir()
    words = (
        "<p><code>build.py</code> <code>calculator.estimate.estimate</code> <code>no.py</code></p>"
        '<a href="#"><code>build.py</code></a><pre><code>build.py</code></pre>'
    )
    page.write_text(words)
    citations.link_cited_files(tmp_path, Source(REPOSITORY))
    text = page.read_text()
    start = f'<a class="cited" href="{REPOSITORY}/blob/HEAD/'
    assert text.count(start) == 2
    assert f'{start}calculator/estimate.py"><code>calculator.estimate.estimate</code></a>' in text
    page.write_text(words)
    citations.link_cited_files(tmp_path, Source())
    assert '<a class="cited" href="../source/build.py.txt"><code>build.py' in page.read_text()
    shown = tmp_path / "source" / "build.py.txt"
    assert shown.read_bytes() == (ROOT / "build.py").read_bytes()


def test_no_file_of_ours_is_cited_without_a_link(site: Path) -> None:
    known = set(source.files())
    for page in site.rglob("index.html"):
        text = page.read_text("utf-8")
        names = {found["name"] or "" for found in citations.CODE.finditer(text)}
        assert not {name for name in names if citations.cited(name, known)}, page


def test_a_placeholder_that_is_left_ends_the_build(tmp_path: Path) -> None:
    for text in ("pip install git+ADDRESS", "<code>ADDRESS</code>", "TODO"):
        (tmp_path / "page.html").write_text(f"<p>{text}</p>")
        assert len(filling.placeholders(tmp_path)) == 1
    (tmp_path / "page.html").write_text("--announce ADDRESS")
    (tmp_path / "one.ipynb").write_text(json.dumps({"source": ['SOURCE = ""  # x']}))
    assert filling.placeholders(tmp_path) == ['one.ipynb: SOURCE = \\"\\": is to be filled in']
    filling.fill_notebooks(tmp_path, Source(REPOSITORY))
    assert filling.placeholders(tmp_path) == []
    assert json.loads((tmp_path / "one.ipynb").read_text()) == {
        "source": [f'SOURCE = "git+{REPOSITORY}"  # x']
    }
    with pytest.raises(BuildError, match=r"one\.ipynb: must have SOURCE = .* once"):
        filling.fill_notebooks(tmp_path, Source(REPOSITORY))


def test_the_built_site_says_where_its_source_is(site: Path) -> None:
    here = find_source()
    for notebook in (site / "notebooks").glob("*.ipynb"):
        code = "\n".join(
            "".join(cell["source"]) for cell in json.loads(notebook.read_text("utf-8"))["cells"]
        )
        assert re.findall(r'^SOURCE = "([^"]+)"', code, re.M) == [here.origin]
    assert (site / ARCHIVE).is_file() == (not here.repository)
    for page in site.rglob("index.html"):
        assert ">the source</a>" in page.read_text("utf-8"), page


@pytest.mark.skipif(os.name == "nt", reason="a shell script of continuous integration")
def test_the_notebooks_are_published_in_a_branch_of_their_own(tmp_path: Path) -> None:
    notebooks, remote = tmp_path / "notebooks", tmp_path / "remote.git"
    notebooks.mkdir()
    (notebooks / "join.ipynb").write_text("{}")
    subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
    here = tmp_path / "here"
    subprocess.run(["git", "init", "--quiet", here], check=True)
    for _ in range(2):  # the second time over the first
        script = [ROOT / ".ci" / "publish-notebooks", notebooks, "notebooks", remote]
        subprocess.run(script, cwd=here, check=True)
    command = ["git", "ls-tree", "--name-only", "notebooks"]
    assert subprocess.check_output(command, cwd=remote).split() == [b"join.ipynb"]
