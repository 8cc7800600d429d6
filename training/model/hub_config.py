"""The values of a language model's config.json, read without torch or transformers."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from calculator.errors import InputError
from training.run.recipes import LanguageSettings


def values_of(settings: LanguageSettings) -> dict[str, Any]:
    """The values of a recipe's config.json; one that is on the Hub is downloaded.

    Raises:
        InputError: the Hub has none.
    """
    return settings.config if isinstance(settings.config, dict) else _download(settings.config)


@lru_cache
def _download(repository: str) -> dict[str, Any]:
    from huggingface_hub import hf_hub_download

    try:
        content = Path(hf_hub_download(repository, "config.json")).read_text(encoding="utf-8")
        values: dict[str, Any] = json.loads(content)
    except (OSError, ValueError) as error:
        rule = f"must be a model of the Hub ({str(error).splitlines()[0]})"
        raise InputError("config", repository, rule) from error
    return values
