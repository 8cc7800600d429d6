"""The browser's Python finds `calculator`, and fetches late what few ask for: see start.js."""

import gc
import sys
from collections.abc import Callable, Container
from importlib.machinery import ModuleSpec, PathFinder


def find(archive: str) -> None:
    """Let what is in `archive` be imported."""
    if archive in sys.path:
        return
    sys.path.append(archive)
    try:
        from packed import install  # type: ignore[import-not-found]
    except ImportError:
        return  # these are sources
    install(archive)


def warm() -> None:
    """Import `calculator` and answer once, so that this need not be done again."""
    from calculator.protocol import handle

    handle('{"id": 0, "method": "answer", "params": {}}')
    gc.collect()


def prepare(
    fetch_library: Callable[[], None], fetch_readers: Callable[[], None], readers: str
) -> None:
    """Let modules that are rarely asked for be fetched then."""
    if "random" in sys.modules:  # memory that was kept has the numbers of an earlier visit
        sys.modules["random"].seed()
    sys.meta_path.append(Readers(fetch_readers, readers))
    try:
        from left_out import NAMES  # type: ignore[import-not-found]
    except ImportError:
        return  # this library is whole
    sys.meta_path.append(Library(fetch_library, NAMES))


class Readers:
    """Finds what reads a visitor's file of training: only those who have one fetch it."""

    def __init__(self, fetch: Callable[[], None], archive: str) -> None:
        self.fetch = fetch
        self.archive = archive

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Fetch the archive, which is then found before this."""
        if name not in ("calculator.doors", "yaml"):
            return None
        try:
            self.fetch()
        except Exception as error:
            raise ImportError(name) from error
        try:
            from packed import install
        except ImportError:
            return found_in(self.archive, name)
        install(self.archive)
        return sys.meta_path[0].find_spec(name, None)


class Library:
    """Finds modules that the library lacks from which Python starts: it holds what is imported."""

    def __init__(self, fetch: Callable[[], None], names: Container[str]) -> None:
        self.fetch = fetch
        self.names = names
        self.is_fetched = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Fetch the whole library, once."""
        if name not in self.names:
            return None
        if not self.is_fetched:
            self.fetch()
            self.is_fetched = True
        return found_in("/whole.zip", name)


def found_in(archive: str, name: str) -> ModuleSpec | None:
    """Find a module in an archive of plain files."""
    folder = name.rpartition(".")[0].replace(".", "/")
    return PathFinder.find_spec(name, [f"{archive}/{folder}".rstrip("/")])
