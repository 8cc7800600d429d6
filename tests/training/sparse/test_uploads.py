"""A host and its volunteers with an object store, over real sockets; the store fails in turns."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.sparse.clocks import Clock
from tests.training.sparse.objects import ObjectProcess
from tests.training.sparse.rounds import (
    LAYOUT,
    POLICY,
    first_state,
    make_payload,
    make_report,
    make_swarm,
)
from training.monitor.web_host import WebHost
from training.sparse import catching_up, envelope, payload, web
from training.sparse.host import Host
from training.sparse.object_store import ObjectFiles, Permission
from training.sparse.store import RefusedError, StoreError
from training.sparse.uploads import MOST_TRIES, StoredFolder, Uploads
from training.sparse.web_store import REST_SECONDS, WebStore


@dataclass
class Scene:
    """A host, its object store, and volunteers' views of both.

    Attributes:
        said: by the volunteers. clock: of their rests.
    """

    host: Host
    folder: StoredFolder
    uploads: Uploads
    objects: ObjectProcess
    address: str
    clock: Clock = field(default_factory=Clock)
    said: list[str] = field(default_factory=list)
    stores: list[WebStore] = field(default_factory=list)

    def open(self) -> WebStore:
        files = ObjectFiles(self.objects.address)
        store = WebStore(self.address, None, files, self.said.append, self.clock)
        self.stores.append(store)
        return store

    def payload(self, key: RSAPrivateKey, samples: int = 16) -> bytes:
        return make_payload(self.host.swarm, self.host.state, key, samples)


@pytest.fixture
def scene(tmp_path: Path, identities: list[str]) -> Iterator[Scene]:
    objects = ObjectProcess(tmp_path / "objects")
    objects.start()
    folder = StoredFolder(tmp_path / "exchange")
    swarm = make_swarm(tmp_path, identities[0], folder)
    catching_up.publish(folder, first_state())
    host = Host(swarm, folder, first_state(), POLICY)
    folder.objects = objects.open()
    uploads = Uploads(host, folder, folder.objects)
    served = WebHost(web.make_service(host, uploads), "127.0.0.1", 0)
    scene = Scene(host, folder, uploads, objects, served.address)
    yield scene
    for store in scene.stores:
        store.close()
    served.close()
    objects.stop()


def test_a_round_goes_through_the_store(
    scene: Scene, keys: list[RSAPrivateKey], identities: list[str], tmp_path: Path
) -> None:
    """The host hands out nothing but lists and names; a latecomer gets the checkpoint there too."""
    scene.uploads.keep(*catching_up.newest(scene.host.swarm))
    contents = [scene.payload(key) for key in keys[1:3]]
    sums = [scene.open().put(content) for content in contents]
    for key in keys[1:3]:
        scene.host.take_report(make_report(key), b"")
    assert set(sums) < scene.objects.names()
    assert len(scene.objects.names()) == 3
    closed = scene.host.close_if_due(keys[0])
    assert closed is not None
    assert {one.sha256 for one in closed.taken} == set(sums)
    assert scene.host.bytes_out == 0
    store = scene.open()
    after = catching_up.join(make_swarm(tmp_path, identities[0], store))
    assert after.digest() == scene.host.state.digest()
    the_list = scene.folder.path_of(str(scene.folder.find("closings/000000000")))
    assert the_list is not None
    assert scene.host.bytes_out == the_list.stat().st_size
    checkpoint = 4 * LAYOUT.elements
    assert store.bytes_received > checkpoint + sum(map(len, contents))
    assert scene.said == []


def test_a_store_that_is_down_costs_a_round_nothing_but_a_rest(
    scene: Scene, keys: list[RSAPrivateKey]
) -> None:
    store = scene.open()
    content = scene.payload(keys[1])
    scene.objects.stop()
    sha256 = store.put(content)
    assert scene.host.taken()[0].sha256 == sha256
    assert len(scene.said) == 1
    assert "the run's store does not work (no connection to" in scene.said[0]
    assert scene.open().get(sha256, 10**6) == content
    scene.objects.start()
    other = scene.payload(keys[1], samples=32)
    with pytest.raises(RefusedError, match="its peer has one in this round already"):
        store.put(other)  # while the store rests, the host itself says no
    scene.clock.now += REST_SECONDS
    with pytest.raises(RefusedError, match="its peer has one in this round already"):
        store.put(other)
    assert scene.objects.names() == set()


def test_what_the_host_cannot_get_is_sent_to_it(scene: Scene, keys: list[RSAPrivateKey]) -> None:
    """The store takes a file and loses it."""
    store = scene.open()
    content = scene.payload(keys[1])

    class Losing(ObjectFiles):
        def upload(self, permission: Permission, content: bytes) -> None:
            """Say that all is well."""

    store._objects = Losing(scene.objects.address)
    assert store.put(content) == scene.host.taken()[0].sha256
    assert "the host says: " in scene.said[0]
    assert "NoSuchKey" in scene.said[0]


def test_a_spoilt_file_is_taken_from_the_host(scene: Scene, keys: list[RSAPrivateKey]) -> None:
    store, reader = scene.open(), scene.open()
    content = scene.payload(keys[1])
    sha256 = store.put(content)
    path = scene.objects.folder / sha256
    path.write_bytes(bytes(len(content)))
    assert reader.get(sha256, len(content)) == content
    path.write_bytes(content + b".")
    assert reader.get(sha256, len(content)) == content
    path.unlink()
    assert reader.get(sha256, len(content)) == content
    assert scene.host.bytes_out == 3 * len(content)
    for said, why in zip(scene.said, ("SHA-256 differs", "more than", "NoSuchKey"), strict=True):
        assert why in said
    path.write_bytes(content)  # one bad file is no reason to leave the store alone
    assert reader.get(sha256, len(content)) == content
    assert scene.host.bytes_out == 3 * len(content)


def ask(scene: Scene, head: bytes, sha256: str, size: int) -> tuple[int, str]:
    answer = httpx.put(f"{scene.address}/uploads/{sha256}?bytes={size}", content=head)
    return answer.status_code, answer.text


def test_an_address_is_given_for_one_file_of_the_open_round(
    scene: Scene, keys: list[RSAPrivateKey]
) -> None:
    content, other = (scene.payload(keys[1], samples) for samples in (16, 32))
    one, two = "1" * 64, "2" * 64
    head = envelope.head_of(content)
    most = payload.most_bytes(LAYOUT)
    forged = head[:-1] + bytes([head[-1] ^ 1])
    for wrong, size, why in (
        (b"", 9, "too short"),
        (content, len(content), "more than a head"),
        (forged, 9, "its signer did not sign it"),
        (head, most + 1, "bytes are too many"),
        (head, 0, "bytes are too many"),
    ):
        status, text = ask(scene, wrong, one, size)
        assert status == 409, text
        assert why in text
    for path in ("uploads/..", f"uploads/{one}", f"uploads/{one}?bytes=-1"):
        assert httpx.put(f"{scene.address}/{path}", content=head).status_code == 404, path
    status, text = ask(scene, head, one, most)
    assert status == 200
    assert one in text
    assert ask(scene, head, one, most)[0] == 200, "an answer may be lost on its way"
    status, text = ask(scene, envelope.head_of(other), two, most)
    assert status == 409
    assert "another one in this round" in text
    elsewhere = make_swarm(scene.objects.folder, "nobody")
    state = first_state()
    state.round = 7
    status, text = ask(scene, envelope.head_of(make_payload(elsewhere, state, keys[2])), two, 9)
    assert "made for round 7, but this is 0" in text


def test_an_announcement_is_tried_a_few_times(scene: Scene, keys: list[RSAPrivateKey]) -> None:
    """Each one costs the host a download."""
    content = scene.payload(keys[1])
    sha256 = "1" * 64
    announce = f"{scene.address}/payloads/{sha256}"
    assert "not expected" in httpx.put(announce).text
    ask(scene, envelope.head_of(content), sha256, 9)
    (scene.objects.folder / sha256).write_bytes(content)  # not the file of that sum
    for _ in range(MOST_TRIES):
        answer = httpx.put(announce)
        assert answer.status_code == 424
        assert "SHA-256 differs" in answer.text
    assert httpx.put(announce).status_code == 409
    assert httpx.put(announce, content=b"more").status_code == 413
    assert scene.host.taken() == ()


def test_what_is_forgotten_is_removed_from_the_store(
    scene: Scene, keys: list[RSAPrivateKey]
) -> None:
    sums = [scene.open().put(scene.payload(key)) for key in keys[1:3]]
    assert set(sums) == scene.objects.names()
    name = "payloads/000000000/" + sums[0]
    scene.folder.forget(name)
    assert scene.objects.names() == {sums[1]}
    assert not scene.folder.is_stored(sums[0])
    scene.objects.stop()
    scene.folder.forget("payloads/000000000/" + sums[1])  # without a store as well
    assert scene.folder.path_of(sums[1]) is None


def test_a_run_without_a_store_asks_for_none(scene: Scene, keys: list[RSAPrivateKey]) -> None:
    """A volunteer whose run file names a store, and a host that has none: by way of the host."""
    served = WebHost(web.make_service(scene.host), "127.0.0.1", 0)
    store = WebStore(served.address, None, ObjectFiles(scene.objects.address), scene.said.append)
    content = scene.payload(keys[1])
    sha256 = store.put(content)
    assert scene.objects.names() == set()
    assert scene.open().get(sha256, 10**6) == content
    assert scene.said == []
    store.close()
    served.close()


def test_a_host_may_send_nobody_elsewhere(scene: Scene, keys: list[RSAPrivateKey]) -> None:
    store = scene.open()
    content = scene.payload(keys[1])
    sha256 = store.put(content)
    store._kept.clear()
    store._objects = ObjectFiles("http://127.0.0.1:9/elsewhere")
    assert store.get(sha256, 10**6) == content
    assert "an address that is not in http://127.0.0.1:9/elsewhere" in scene.said[0]
    with pytest.raises(StoreError, match="is not there"):
        store.get("0" * 64, 10)
