"""The model that the command line names: of the catalog, on disk, or on the Hub."""

from pathlib import Path
from typing import Any

from calculator.architecture import Architecture
from calculator.catalog import find_model, is_known, known_shape
from calculator.catalog.names import hub_id
from calculator.config_file import read_config, read_values
from calculator.hf_config import from_config
from calculator.program.origin import Origin, loaded_values, origin_at, origin_of


def architecture_named(name: str, offline: bool = False) -> Architecture:
    """The architecture of a name of the catalog, a path, or a name or address on the Hub.

    Raises:
        InputError: when it cannot be found, read or counted.
    """
    if _is_path(name):
        return read_config(Path(name))
    if (values := _on_the_hub(name, offline)) is not None:
        return _from_hub(values, name)
    return find_model(name)


def origin_named(name: str, offline: bool = False) -> Origin:
    """The same, with what a program loads it by.

    Raises:
        InputError: when it cannot be found, read or counted.
    """
    if _is_path(name):
        return origin_at(name, read_values(Path(name)))
    if (values := _on_the_hub(name, offline)) is not None:
        return Origin(_from_hub(values, name), hub_id(name), "", loaded_values(values))
    return origin_of(name if is_known(name) else known_shape(name) or name)


def _on_the_hub(name: str, offline: bool) -> dict[str, Any] | None:
    """The values of a config.json on the Hub, of a model that the catalog lacks."""
    if is_known(name) or known_shape(name) or "/" not in hub_id(name):
        return None
    from calculator.hub import read_hub_config  # loads the network's modules

    return read_hub_config(hub_id(name), offline)


def _from_hub(values: dict[str, Any], name: str) -> Architecture:
    found = hub_id(name)
    return from_config(values, found, found.rpartition("/")[2])


def _is_path(name: str) -> bool:
    if is_known(name):
        return False
    path = Path(name)
    is_file = path.suffix == ".json" or (len(path.parts) > 1 and not hub_id(name))
    return is_file or _exists(path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long a name, or one that no file can have
        return False
