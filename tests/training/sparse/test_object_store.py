"""training/sparse/object_store: files through a store, with and without its owner's keys."""

import hashlib
import logging
import time
from collections.abc import Iterator

import httpx
import pytest

from calculator.errors import InputError
from tests.training.sparse import object_server
from tests.training.sparse.object_server import ObjectServer
from training.sparse.object_store import ObjectStore
from training.sparse.presigned import Keys, presign
from training.sparse.store import StoreError, UnreachableError

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
