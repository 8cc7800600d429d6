"""Locations of a run's shards: a folder on this machine, or a data set on the Hugging Face Hub."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import (  # type: ignore[attr-defined]
    EntryNotFoundError,
    HfHubHTTPError,
    HTTPError,
)
from huggingface_hub.errors import LocalEntryNotFoundError as UnreachableError
from huggingface_hub.hf_api import RepoFile

from calculator.errors import InputError
from training.data.reading import ShardError

LARGEST_FILE = 2**32  # bytes; `encode` writes some 10 MB, data sets of texts have files of 2 GB
_PASSING = (408, 425, 429)  # refusals that pass, besides the errors of a server
DOWN = (OSError, HTTPError)  # what tells that a host does not answer


class Folder:
    """The Parquet files in a folder, such as `encode` writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        """The shards' names in order, the same for everybody."""
        names = (path.name for path in self.path.glob("*.parquet"))
        return sorted(name for name in names if not name.startswith("."))

    @contextmanager
    def take(self, name: str) -> Iterator[Path]:
        """The file itself; raises ShardError where it is not there."""
        path = self.path / name
        if not path.exists():
            raise ShardError("it is not there any more")
        yield path


class HubDataset:
    """The Parquet files of a data set on the Hub, as of the moment when it was first asked.

    Args:
        name: OWNER/NAME, and a folder in it where only that is meant.
    """

    def __init__(self, name: str) -> None:
        owner, _, rest = name.partition("/")
        name_there, _, self._folder = rest.partition("/")
        self.repository = f"{owner}/{name_there}" if rest else name
        self._revision: str | None = None
        self._sizes: dict[str, int] = {}

    def names(self) -> list[str]:
        """The names of the training split's files, of all where none is called so.

        Raises:
            InputError: there is no such data set.
            OSError, HTTPError: the Hub does not answer.
        """
        if self._revision is None:
            try:
                self._look()
            except HfHubHTTPError as error:
                if not _is_final(error):
                    raise
                raise _no_source(self.repository, error) from error
            except ValueError as error:  # a name that the Hub cannot have
                raise _no_source(self.repository, error) from error
        names = sorted(self._sizes)
        return [name for name in names if "train" in name] or names

    def _look(self) -> None:
        api = HfApi()
        revision = api.dataset_info(self.repository).sha
        tree = api.list_repo_tree(
            self.repository, recursive=True, revision=revision, repo_type="dataset"
        )
        files = [file for file in tree if isinstance(file, RepoFile)]
        inside = f"{self._folder}/" if self._folder else ""
        self._sizes = {
            file.path: file.size
            for file in files
            if file.path.endswith(".parquet") and file.path.startswith(inside)
        }
        self._revision = revision

    @contextmanager
    def take(self, name: str) -> Iterator[Path]:
        """The file, downloaded into a folder that goes with the block.

        Raises:
            ShardError: it is not there, or too large.
            OSError, HTTPError: the Hub does not answer.
        """
        if self._sizes[name] > LARGEST_FILE:
            raise ShardError(f"it has {self._sizes[name]:,} bytes")
        with tempfile.TemporaryDirectory(prefix="shard-") as folder:
            try:
                path = hf_hub_download(
                    self.repository,
                    name,
                    repo_type="dataset",
                    revision=self._revision,
                    local_dir=folder,
                )
            except UnreachableError:
                raise
            except EntryNotFoundError as error:
                raise ShardError("it is not there any more") from error
            except HfHubHTTPError as error:
                if _is_final(error):
                    raise ShardError(f"the Hub refuses it ({_status(error)})") from error
                raise
            yield Path(path)


Source = Folder | HubDataset


def find_source(source: str) -> Source:
    """The folder or the data set of that name; a folder is looked into at once.

    Raises:
        InputError: the folder has no shard.
    """
    path = Path(source)
    if not path.is_dir():
        return HubDataset(source)
    folder = Folder(path)
    if not folder.names():
        raise _no_source(source, ValueError("no shards"))
    return folder


def _no_source(source: str, error: Exception) -> InputError:
    why = next(iter(str(error).splitlines()), "none")
    rule = f"must be a folder of Parquet files or a data set on the Hub ({why})"
    return InputError("source", source, rule)


def _is_final(error: HfHubHTTPError) -> bool:
    status = _status(error)
    return 400 <= status < 500 and status not in _PASSING


def _status(error: HfHubHTTPError) -> int:
    return error.response.status_code if error.response is not None else 0
