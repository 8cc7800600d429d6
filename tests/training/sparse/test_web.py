"""The host's HTTP interface and the volunteers' store, over a real socket."""

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hivemind.utils.crypto import RSAPrivateKey

from calculator.errors import InputError
from tests.training.answering import Answering, on_any_port, served
from tests.training.sparse.rounds import (
    LAYOUT,
    RUN,
    first_state,
    make_host,
    make_payload,
    make_report,
    make_swarm,
)
from training.monitor.web_host import WebHost
from training.sparse import catching_up, web
from training.sparse.closing import ClosingError
from training.sparse.host import Host
from training.sparse.store import RefusedError, StoreError, UnreachableError, is_outage
from training.sparse.web_store import HostStatus, WebStore


@pytest.fixture
def host(tmp_path: Path, identities: list[str]) -> Host:
    host = make_host(tmp_path, identities[0])
    catching_up.publish(host.store, host.state)
    return host


@pytest.fixture
def address(host: Host) -> Iterator[str]:
    served = WebHost(web.make_service(host), "127.0.0.1", 0)
    yield served.address
    served.close()


@pytest.fixture
def store(address: str) -> Iterator[WebStore]:
    store = WebStore(address)
    yield store
    store.close()


def test_a_round_is_made_over_the_web(
    host: Host, store: WebStore, keys: list[RSAPrivateKey], identities: list[str], tmp_path: Path
) -> None:
    theirs = make_swarm(tmp_path, identities[0], store)
    state = catching_up.join(theirs)
    assert state.digest() == first_state().digest()
    contents = [make_payload(theirs, state, key) for key in keys[1:3]]
    sums = [store.put(content) for content in contents]
    for key in keys[1:3]:
        store.report(make_report(key))
    sent = store.bytes_sent
    assert store.find("closings/000000000") is None
    assert host.close_if_due(keys[0]) is not None
    status = store.describe()
    about_now = pytest.approx(time.time(), abs=60.0)
    assert status == HostStatus(RUN, 1, finished=False, peers=2, time=about_now)
    after = catching_up.follow(theirs, state)
    assert after.digest() == host.state.digest()
    assert after.samples == 32
    assert host.bytes_in == sum(map(len, contents)) < sent
    assert host.bytes_to_newcomers > 4 * LAYOUT.elements, "the checkpoint, which is apart"
    assert store.bytes_received == host.bytes_out + host.bytes_to_newcomers
    assert host.bytes_out > sum(map(len, contents))
    other = WebStore(store.address)
    assert [other.get(sha256, 10**6) for sha256 in sums] == contents
    other.close()


def test_a_refusal_says_why(host: Host, store: WebStore, keys: list[RSAPrivateKey]) -> None:
    store.put(make_payload(host.swarm, host.state, keys[1]))
    with pytest.raises(RefusedError, match="its peer has one in this round already"):
        store.put(make_payload(host.swarm, host.state, keys[1], samples=99))
    with pytest.raises(RefusedError, match=r"at most [\d,]+ bytes"):
        store.put(bytes(LAYOUT.update_bytes + 10**5))
    store.report(make_report(keys[1]))
    with pytest.raises(RefusedError, match="too short"):
        store.report(b"")


def test_nothing_but_a_runs_files_is_handed_out(address: str, tmp_path: Path) -> None:
    (tmp_path / "files" / "secret").write_text("secret")
    for path in (
        "files/secret",
        "files/..%2Ffiles%2Fsecret",
        f"files/{'0' * 64}",
        "names/..%2Fsecret",
        "names/payloads",
        "names/payloads/000000000",
        "docs",
    ):
        assert httpx.get(f"{address}/{path}").status_code == 404, path
    assert httpx.get(f"{address}/names/checkpoints").json() == ["checkpoints/000000000"]
    assert httpx.get(f"{address}/payloads").status_code == 405


def test_a_store_refuses_other_or_longer_files(host: Host, store: WebStore, tmp_path: Path) -> None:
    sha256 = host.store.put(b"a file")
    assert store.get(sha256, 6) == b"a file"
    with pytest.raises(StoreError, match="more than 5 bytes"):
        store.get(sha256, 5)
    (tmp_path / "files" / sha256).write_bytes(b"a lie.")
    with pytest.raises(StoreError, match="SHA-256 differs"):
        store.get(sha256, 6)
    with pytest.raises(StoreError, match="is not there") as missing:
        store.get(hashlib.sha256(b"none").hexdigest(), 6)
    assert not is_outage(missing.value)
    with pytest.raises(StoreError, match="does not list"):
        store.names("payloads")


def test_a_download_continues(host: Host, store: WebStore, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, came = httpx.Response.iter_raw, bytearray()
    breaks = iter([True, False])

    def read(answer: httpx.Response) -> Iterator[bytes]:
        stops = next(breaks)
        for piece in whole(answer, 1000):
            came.extend(piece)
            yield piece
            if stops:
                raise httpx.ReadError("the connection broke")

    sha256 = store.find(store.names(catching_up.FOLDER)[-1])
    monkeypatch.setattr(httpx.Response, "iter_raw", read)
    with pytest.raises(UnreachableError):
        store.get(sha256, 10**6)
    before = host.bytes_to_newcomers
    assert store.bytes_received == 1000
    content = store.get(sha256, 10**6)
    assert host.bytes_to_newcomers - before == len(content) - 1000, "the rest alone"
    assert hashlib.sha256(content).hexdigest() == sha256
    assert bytes(came) == content, "no byte came twice"
    assert store.bytes_received == len(content)


def test_a_broken_download_is_counted_in_part(address: str, host: Host, store: WebStore) -> None:
    size = 32 * 2**20  # more than the buffers of a connection hold
    sha256 = host.store.put(bytes(size))
    with httpx.stream("GET", f"{address}/files/{sha256}") as answer:
        next(answer.iter_raw(1000))
    store.get(sha256, size)  # by then, the host has met the break
    assert 1000 <= host.bytes_out - size < size / 2


def test_a_host_that_is_down_is_no_refusal(identities: list[str], tmp_path: Path) -> None:
    store = WebStore("http://127.0.0.1:9")  # the discard service's port, where nothing listens
    with pytest.raises(UnreachableError, match="no connection to"):
        store.describe()
    with pytest.raises(ClosingError) as failed:
        catching_up.join(make_swarm(tmp_path, identities[0], store))
    assert is_outage(failed.value)
    store.close()


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"{", b'{"run": 1}', json.dumps({"run": "a", "round": "1"}).encode()]
)
def test_another_server_is_not_taken_for_a_host(answer: bytes) -> None:
    handler = type("Handler", (Answering,), {"do_GET": lambda self: self.answer(answer)})
    with served(on_any_port(handler)) as address:
        store = WebStore(address)
        with pytest.raises(StoreError) as refused:
            store.describe()
        assert not is_outage(refused.value)
        store.close()


def test_a_taken_port_is_told(address: str, host: Host) -> None:
    port = int(address.rpartition(":")[2])
    with pytest.raises(InputError, match="port"):
        WebHost(web.make_service(host), "127.0.0.1", port)
