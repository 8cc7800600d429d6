"""training/sparse/object_store: files through a store, with and without its owner's keys.

Also a host and its volunteers with such a store, over real sockets; the store fails in turns.
"""

import hashlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from hivemind.utils.crypto import RSAPrivateKey

from calculator.errors import InputError
from tests.training.processes import wait_for
from tests.training.sparse import object_server
from tests.training.sparse.clocks import Clock
from tests.training.sparse.object_server import ObjectServer
from tests.training.sparse.rounds import (
    LAYOUT,
    SETTINGS,
    first_state,
    make_payload,
    make_report,
    make_swarm,
)
from training.monitor.web_host import WebHost
from training.sparse import catching_up, web
from training.sparse.host import Host
from training.sparse.object_store import REST_SECONDS, ObjectStore, StoredFolder
from training.sparse.presigned import Keys, presign
from training.sparse.store import StoreError, UnreachableError
from training.sparse.web_store import WebStore

CONTENT = b"a file of 20 bytes.."
SUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    process = ObjectServer(tmp_path_factory.mktemp("objects"))
    process.start()
    yield process
    process.stop()


@pytest.fixture
def store(process: ObjectServer) -> Iterator[ObjectStore]:
    store = process.open()
    yield store
    store.close()


def test_an_address_is_signed_as_the_published_example_is() -> None:
    """The keys, the time and the signature are those of the page that `presigned` names."""
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    address = "https://examplebucket.s3.amazonaws.com/test.txt"
    signed = presign("GET", address, keys, 86400, 1369353600.0)  # 24 May 2013, 0:00 UTC
    assert signed == (
        f"{address}?X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )


def test_a_file_goes_in_out_by_an_address_for_it_alone_and_is_removed(
    process: ObjectServer, store: ObjectStore
) -> None:
    """A volunteer has the address alone: no key is in it."""
    assert store.put(CONTENT) == SUM
    address = store.address_of(SUM)
    assert object_server.SECRET not in address
    assert httpx.get(address).content == CONTENT
    assert "SignatureDoesNotMatch" in httpx.get(address.replace(SUM, "0" * 64)).text
    for method in ("PUT", "DELETE"):
        assert "SignatureDoesNotMatch" in httpx.request(method, address).text
    assert process.names() == {SUM}
    store.forget(SUM)
    assert process.names() == set()
    store.check()
    assert process.names() == set()


def test_a_permission_expires(process: ObjectServer) -> None:
    keys = process.open()._keys
    old = ObjectStore(process.address, keys, clock=lambda: time.time() - 901.0)
    with pytest.raises(StoreError, match="AccessDenied"):
        old.put(CONTENT)
    assert process.names() == set()


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch"),
        ("AWS_ACCESS_KEY_ID", "InvalidAccessKeyId"),
        ("AWS_REGION", "SignatureDoesNotMatch"),
    ],
)
def test_a_wrong_key_is_refused(process: ObjectServer, name: str, word: str) -> None:
    with pytest.raises(StoreError, match=word):
        process.open(**{name: "another"}).put(CONTENT)


def test_a_store_that_is_down_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    address = "http://127.0.0.1:9/bucket"  # the discard service's port, where nothing listens
    store = ObjectStore.from_environment(address, object_server.ENVIRONMENT)
    with caplog.at_level(logging.INFO), pytest.raises(UnreachableError) as failed:
        store.put(CONTENT)
    for shown in (str(failed.value), repr(store._keys), caplog.text):
        assert "Signature" not in shown
        assert object_server.SECRET not in shown


def test_keys_come_from_the_environment_alone() -> None:
    with pytest.raises(InputError, match="AWS_SECRET_ACCESS_KEY"):
        ObjectStore.from_environment("https://s3.example.org/bucket", {"AWS_ACCESS_KEY_ID": "a"})
    found = ObjectStore.from_environment(
        "https://s3.example.org/bucket",
        {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c/d"},
    )
    assert "X-Amz-Security-Token=c%2Fd" in found.address_of(SUM)
    assert "%2Fus-east-1%2F" in found.address_of(SUM)


@dataclass
class Scene:
    """A host, its object store, and volunteers' views of both.

    Attributes:
        said: by the host and the volunteers. clock: of the latter's rests.
    """

    host: Host
    folder: StoredFolder
    objects: ObjectServer
    address: str
    clock: Clock = field(default_factory=Clock)
    said: list[str] = field(default_factory=list)
    stores: list[WebStore] = field(default_factory=list)

    def open(self, objects: str = "") -> WebStore:
        objects = objects or self.objects.address
        store = WebStore(self.address, None, objects, self.said.append, self.clock)
        self.stores.append(store)
        return store

    def upload(self, key: RSAPrivateKey) -> tuple[str, bytes]:
        """A volunteer's payload, which the host has put into the store."""
        content = make_payload(self.host.swarm, self.host.state, key)
        sha256 = self.open().put(content)
        wait_for("the file in the store", lambda: self.folder.address_of(sha256))
        return sha256, content


@pytest.fixture
def scene(tmp_path: Path, identities: list[str]) -> Iterator[Scene]:
    objects = ObjectServer(tmp_path / "objects")
    objects.start()
    said: list[str] = []
    folder = StoredFolder(tmp_path / "exchange", objects.open(), said.append)
    swarm = make_swarm(tmp_path, identities[0], folder)
    catching_up.publish(folder, first_state())
    host = Host(swarm, folder, first_state(), SETTINGS)
    served = WebHost(web.make_service(host, folder), "127.0.0.1", 0)
    scene = Scene(host, folder, objects, served.address, said=said)
    yield scene
    for store in scene.stores:
        store.close()
    served.close()
    objects.stop()


def test_a_round_comes_from_the_store(
    scene: Scene, keys: list[RSAPrivateKey], identities: list[str], tmp_path: Path
) -> None:
    """The host hands out nothing but lists and names; a latecomer gets the checkpoint there too."""
    scene.folder.keep(catching_up.newest(scene.host.swarm)[0])
    uploaded = [scene.upload(key) for key in keys[1:3]]
    for key in keys[1:3]:
        scene.host.take_report(make_report(key), b"")
    assert len(scene.objects.names()) == 3
    closed = scene.host.close_if_due(keys[0])
    assert {one.sha256 for one in closed.taken} == {sha256 for sha256, _ in uploaded}
    assert scene.host.bytes_out == 0
    store = scene.open()
    after = catching_up.join(make_swarm(tmp_path, identities[0], store))
    assert after.digest() == scene.host.state.digest()
    the_list = scene.folder.path_of(str(scene.folder.find("closings/000000000")))
    assert scene.host.bytes_out == the_list.stat().st_size
    assert store.bytes_received > 4 * LAYOUT.elements + sum(len(one) for _, one in uploaded)
    assert scene.said == []


def test_a_store_that_is_down_costs_a_round_nothing_but_a_rest(
    scene: Scene, keys: list[RSAPrivateKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256, content = scene.upload(keys[1])
    scene.objects.stop()
    reader = scene.open()
    assert reader.get(sha256, 10**6) == content
    assert len(scene.said) == 1
    assert "the run's store does not work (no connection to" in scene.said[0]
    other = make_payload(scene.host.swarm, scene.host.state, keys[2])
    second = scene.open().put(other)  # the host's own attempt fails, and it rests
    wait_for("the host to do without the store", lambda: len(scene.said) > 1)
    assert "the store does not take a file (no connection to" in scene.said[1]
    assert scene.open().get(second, 10**6) == other
    scene.objects.start()
    before = scene.host.bytes_out
    assert reader.get(sha256, 10**6) == content
    assert scene.host.bytes_out == before + len(content), "the store still rests"
    scene.clock.now += REST_SECONDS
    assert reader.get(sha256, 10**6) == content
    assert scene.host.bytes_out == before + len(content)
    scene.folder.keep(second)
    assert scene.folder.address_of(second) is None
    monkeypatch.setattr(scene.folder, "_rests_until", 0.0)
    scene.folder.keep(second)
    assert scene.objects.names() == {sha256, second}


def test_a_spoilt_file_is_taken_from_the_host(scene: Scene, keys: list[RSAPrivateKey]) -> None:
    sha256, content = scene.upload(keys[1])
    reader = scene.open()
    path = scene.objects.folder / sha256
    for spoilt in (bytes(len(content)), content + b"."):
        path.write_bytes(spoilt)
        assert reader.get(sha256, len(content)) == content
    path.unlink()
    assert reader.get(sha256, len(content)) == content
    assert scene.host.bytes_out == 3 * len(content)
    for said, why in zip(scene.said, ("SHA-256 differs", "more than", "NoSuchKey"), strict=True):
        assert why in said
    path.write_bytes(content)  # one bad file is no reason to leave the store alone
    assert reader.get(sha256, len(content)) == content
    assert scene.host.bytes_out == 3 * len(content)


def test_what_is_forgotten_leaves_the_store(scene: Scene, keys: list[RSAPrivateKey]) -> None:
    (first, _), (second, _) = (scene.upload(key) for key in keys[1:3])
    assert scene.objects.names() == {first, second}
    scene.folder.forget(f"payloads/000000000/{first}")
    assert scene.objects.names() == {second}
    assert scene.folder.address_of(first) is None
    scene.objects.stop()
    scene.folder.forget(f"payloads/000000000/{second}")  # without a store as well
    assert scene.folder.path_of(second) is None


def test_a_host_may_send_nobody_elsewhere(scene: Scene, keys: list[RSAPrivateKey]) -> None:
    sha256, content = scene.upload(keys[1])
    store = scene.open("http://127.0.0.1:9/elsewhere")
    assert store.get(sha256, 10**6) == content
    assert "an address that is not in http://127.0.0.1:9/elsewhere" in scene.said[0]
    with pytest.raises(StoreError, match="is not there"):
        store.get("0" * 64, 10)
