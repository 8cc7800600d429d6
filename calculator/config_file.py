"""A config.json on disk -> Architecture."""

from pathlib import Path
from typing import Any

from calculator import configuration
from calculator.architecture import Architecture
from calculator.errors import InputError
from calculator.hf_config import from_config


def read_config(path: Path) -> Architecture:
    """The architecture that a config.json (or a folder that holds one) describes.

    Raises:
        InputError: when it cannot be read, or describes a model the calculator has no code for.
    """
    return from_config(read_values(path), name=str(path))


def read_values(path: Path) -> dict[str, Any]:
    """The keys and values of a config.json (or of a folder that holds one).

    Raises:
        InputError: when it cannot be read.
    """
    try:
        file = path / "config.json" if path.is_dir() else path
        with file.open("rb") as opened:
            content = opened.read(4 * configuration.LONGEST_TEXT + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("model", path, "there is no such file; see `models` for names") from None
    except OSError as error:
        raise InputError("model", path, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError("model", path, f"must be a config.json: {error}") from None
    return configuration.parse(text, str(path))
