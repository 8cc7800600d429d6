import json
import tempfile
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.errors import InputError
from training.run.recipes import RECIPES
from training.run.runfile import MAX_BYTES, RunFile, load, parse

GOOD = 'name = "our-run"\nrecipe = "tiny"\n'
KEY = "A" * 43 + "="
ESCAPE = "\\u001b[2J"
PEER = "/ip4/203.0.113.5/tcp/31337/p2p/12D3KooWEEEBMcahCALVmBwG84VQaLzQ4XSA3gm9TKBQsZv9NwDm"


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ('recipe = "tiny"', "name", ""),
        ('name = "our-run"', "recipe", ""),
        ('name = "Our run"\nrecipe = "tiny"', "name", "Our run"),
        ('name = "a.b"\nrecipe = "tiny"', "name", "a.b"),
        ('name = "our-run"\nrecipe = "tny"', "recipe", "tny"),
        (GOOD + 'initial_peer = "x"', "field", "initial_peer"),
        (GOOD + 'initial_peers = "x"', "initial_peers", "x"),
        (GOOD + 'initial_peers = ["127.0.0.1:31337"]', "initial_peers", "127.0.0.1:31337"),
        (GOOD + "title = 5", "title", "5"),
        (GOOD + 'organisation = "two words"', "organisation", "two words"),
        (GOOD + 'authority = "ftp://example.org"', "authority", "ftp://example.org"),
        (GOOD + 'live = "http://example.org/live"', "live", "http://example.org/live"),
        (GOOD + 'live = "ftp://127.0.0.1/live"', "live", "ftp://127.0.0.1/live"),
        (GOOD + 'authority_key = "c2hvcnQ="', "authority_key", "c2hvcnQ="),
        (GOOD + f'authority_key = "{KEY}"', "authority_key", KEY),  # of no authority
        (GOOD + 'checkpoints = "model"', "checkpoints", "model"),
        (GOOD + 'checkpoints = "../model"', "checkpoints", "../model"),
        (GOOD + 'license = "All rights"', "license", "All rights"),
        (GOOD + 'steps = "many"', "steps", "many"),
        (GOOD + "steps = true", "steps", "True"),
        (GOOD + "steps = 1", "steps", "1"),
        (GOOD + 'links = "x"', "links", "x"),
        (GOOD + '[links]\npaper = "x"', "links.paper", "x"),
        ("name = ", "run", "run file"),
        # hostile ones, whose value may be told shortened or escaped
        ("a = " + "[" * 30_000, "run", None),
        ("a = " + "{b=" * 15_000, "run", None),
        ("steps = 1" + "0" * 5_000, "run", None),
        (GOOD + "steps = 1" + "0" * 100, "steps", None),
        (GOOD + f'title = "{ESCAPE}"', "title", None),
        (GOOD + 'title = "one\\ntwo"', "title", None),
        (GOOD + 'title = "\\u202Eelpoep"', "title", None),
        (GOOD + f'"{ESCAPE}" = 1', "field", None),
        (GOOD + f'[links]\n"{ESCAPE}" = "https://example.org"', "links", None),
        (GOOD + f'[links]\npaper = "https://example.org/{ESCAPE}"', "links.paper", None),
        (GOOD + '[links]\npaper = "http://["', "links.paper", None),
        (GOOD + 'live = "http://["', "live", None),
        (GOOD + 'authority = "https://["', "authority", None),
        (GOOD + 'authority = "https://:99999999/"', "authority", None),
        (GOOD + f'initial_peers = ["/ip4/1.2.3.4/tcp/1{ESCAPE}/p2p/Qm"]', "initial_peers", None),
        (GOOD + 'initial_peers = ["/ip4/1.2.3.4\\n5/tcp/1/p2p/Qm"]', "initial_peers", None),
        (GOOD + "title = 2026-11-21", "title", None),
    ],
)
def test_an_error_names_field_and_value_in_one_plain_line(
    text: str, field: str, value: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert caught.value.field == field
    assert value in {caught.value.value, None}
    assert caught.value.rule
    told = str(caught.value)
    assert len(told) < 1200
    assert told.isprintable()


@pytest.mark.parametrize("source", ["http://[", "http://a b/", "http://x:y/", "a\0b", "http://"])
def test_an_address_that_is_none_is_named(source: str) -> None:
    with pytest.raises(InputError) as caught:
        load(source)
    assert caught.value.field == "run"


values = st.recursive(
    st.sampled_from(["1", "-7", "true", "nan", "2026-11-21", '""', '"\\u0000"', "1e999"])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(json.dumps),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([f.name for f in fields(RunFile)]), values))
def test_whatever_stands_in_a_run_file_it_is_read_or_refused(content: dict[str, str]) -> None:
    text = "".join(f"{key} = {value}\n" for key, value in content.items())
    try:
        run = parse(GOOD + text if not {"name", "recipe"} & content.keys() else text)
    except InputError:
        return
    assert parse(run.to_toml()) == run


@given(st.binary(max_size=300))
def test_whatever_bytes_are_there_they_are_read_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.toml"
        path.write_bytes(content)
        with pytest.raises(InputError):
            load(str(path))


@pytest.mark.parametrize(("steps", "warmup"), [(200, 10), (12, 6)])
def test_a_run_may_have_its_own_number_of_steps(steps: int, warmup: int) -> None:
    recipe = parse(f'name = "our-run"\nrecipe = "rehearsal"\nsteps = {steps}').get_recipe()
    assert (recipe.schedule.total_steps, recipe.schedule.warmup_steps) == (steps, warmup)


def test_a_file_that_is_not_there_or_too_long_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(str(tmp_path / "run.toml"))
    assert caught.value.field == "run"
    assert str(caught.value).endswith("there is no such file")
    (tmp_path / "run.toml").write_text(GOOD + "#" * MAX_BYTES)
    with pytest.raises(InputError, match="at most 65536 bytes"):
        load(str(tmp_path / "run.toml"))


def test_every_field_survives_the_round_trip(tmp_path: Path) -> None:
    run = RunFile(
        name="our-run",
        recipe="sparse",
        initial_peers=(PEER, PEER),
        title='A "title"',
        organisation="training-transformers-together",
        authority="https://example.org/authority",
        authority_key=KEY,
        live="live",
        exchange="https://example.org/exchange",
        store="https://s3.example.org/bucket/our-run",
        data="shards",
        checkpoints="someone/model",
        license="apache-2.0",
        steps=7,
        links={"the paper": "https://arxiv.org/abs/2207.03481"},
        changes={"seed": 7, "model": {"hidden_size": 64}},
    )
    empty = RunFile(name="x", recipe="tiny")
    assert all(
        getattr(run, f.name) != getattr(empty, f.name) for f in fields(run) if f.name != "recipe"
    )
    (tmp_path / "run.toml").write_text(run.to_toml())
    assert load(str(tmp_path / "run.toml")) == run


def test_the_run_file_that_the_site_carries_is_one() -> None:
    run = load(str(Path(__file__).parents[3] / "docs" / "first-run.toml"))
    recipe, usual = run.get_recipe(), RECIPES["rehearsal"]
    assert replace(recipe, swarm=usual.swarm) == usual
    assert recipe.swarm.matchmaking_seconds > usual.swarm.matchmaking_seconds  # on a busy machine
    assert run.initial_peers == ()


def test_a_web_host_is_private_and_of_a_run_with_local_steps() -> None:
    run = RunFile(name="our-run", recipe="sparse", exchange="https://run.example.org")
    with pytest.raises(InputError, match="https address, or http on this machine"):
        replace(run, exchange="http://run.example.org")
    with pytest.raises(InputError, match="volunteers of the recipe tiny average themselves"):
        replace(run, recipe="tiny")


@pytest.mark.parametrize(
    "address",
    [
        "http://s3.example.org/bucket",
        "https://s3.example.org",
        "https://key:secret@s3.example.org/bucket",
        "https://s3.example.org/bucket?X-Amz-Signature=1",
        "https://s3.example.org/bucket#1",
        "https://s3.example.org/a bucket",
        "s3://bucket/our-run",
    ],
)
def test_a_store_is_the_address_of_a_folder_without_any_key(address: str) -> None:
    run = RunFile(name="our-run", recipe="sparse", exchange="https://run.example.org")
    for fine in ("https://s3.example.org/bucket", "http://127.0.0.1:9000/bucket/our-run.2/"):
        assert parse(replace(run, store=fine).to_toml()).store == fine
    with pytest.raises(InputError, match="store"):
        replace(run, store=address)
    with pytest.raises(InputError, match="names no exchange"):
        RunFile(name="our-run", recipe="sparse", store=fine)
