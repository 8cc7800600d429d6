"""The object store of a run with local steps, as its monitor finds and tries it."""

import os

from training.run.runfile import RunFile
from training.sparse.object_store import ObjectStore
from training.sparse.store import StoreError


def find(run: RunFile) -> ObjectStore | None:
    """The store that the run file names, with the keys in the environment; None without one.

    Raises:
        InputError: a key is missing.
    """
    return ObjectStore.from_environment(run.store, os.environ) if run.store else None


def describe(store: ObjectStore) -> str:
    """Try a store, and say in one line how it is; a run goes on without it."""
    try:
        store.check()
    except StoreError as error:
        return f"{store.files.address} does not work: {error}; volunteers use the web host"
    return f"{store.files.address} works"
