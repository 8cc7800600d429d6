"""`python -m training ban`: from a name on the live page to a ban."""

from pathlib import Path

import pytest
from hivemind.utils.crypto import RSAPrivateKey

from calculator.errors import InputError
from training.__main__ import main
from training.access.grants import peer_id_of
from training.authority import keys
from training.authority.books import Books, Decision
from training.records.owners import BanList, contributor_of
from training.run.live import Contributor, LiveFolder
from training.run.runfile import RunFile

ALICE, MALLORY, OTHER = (
    peer_id_of(RSAPrivateKey().get_public_key().to_bytes().decode()) for _ in range(3)
)


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """A run whose page shows three volunteers, two of one name."""
    (tmp_path / "identity.key").touch()
    people = [(ALICE, "alice"), (MALLORY, "mallory"), (OTHER, "alice")]
    LiveFolder(tmp_path / "live" / "our-run").write_peers(
        [Contributor(contributor_of(one), name, 1, 1.0, "", "", "", 1) for one, name in people]
    )
    path = tmp_path / "run.toml"
    path.write_text(RunFile("our-run", "tiny").to_toml())
    return path


def ban(run_file: Path, *arguments: str) -> int:
    return main(["ban", str(run_file), *arguments, "--folder", str(run_file.parent)])


def test_a_name_on_the_page_is_banned_and_forgiven(run_file: Path) -> None:
    bans = BanList(run_file.parent)
    assert ban(run_file, "mallory") == 0
    assert [bans.is_banned(peer) for peer in (ALICE, MALLORY, OTHER)] == [False, True, False]
    assert ban(run_file, contributor_of(OTHER)) == 0
    assert bans.ids() == {contributor_of(MALLORY), contributor_of(OTHER)}
    assert ban(run_file, "mallory", "--lift") == 0
    assert bans.ids() == {contributor_of(OTHER)}


@pytest.mark.parametrize(
    ("name", "rule"), [("alice", "name of one contributor"), ("bob", "on the live page")]
)
def test_a_name_that_means_nobody_or_several_bans_nobody(
    run_file: Path, name: str, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ban(run_file, name) == 2
    assert rule in capsys.readouterr().err
    assert BanList(run_file.parent).ids() == frozenset()


def test_where_the_authority_is_the_account_is_banned_too(run_file: Path, tmp_path: Path) -> None:
    authority = tmp_path / "authority"
    authority.mkdir()
    (authority / keys.FILE_NAME).touch()
    run = RunFile("our-run", "tiny", organisation="our-org", authority="http://127.0.0.1:1")
    run_file.write_text(run.to_toml())
    books = Books(authority)
    books.note("bad-user", MALLORY, Decision.ADMITTED)
    assert ban(run_file, "mallory", "--authority-folder", str(authority)) == 0
    assert books.find_ban("bad-user", "") is not None
    assert ban(run_file, "mallory", "--lift", "--authority-folder", str(authority)) == 0
    assert books.find_ban("bad-user", "") is None


def test_a_list_that_was_damaged_is_named(tmp_path: Path) -> None:
    bans = BanList(tmp_path)
    bans.path.write_text("{}")
    with pytest.raises(InputError, match="list of contributors"):
        bans.is_banned(ALICE)
