"""Run files: what a volunteer must know to join a run. A TOML file without any secret.

name = "rehearsal"
recipe = "rehearsal"
initial_peers = ["/ip4/127.0.0.1/tcp/31337/p2p/12D3KooW..."]
live = "https://example.org/live/rehearsal/"
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlparse
from urllib.request import urlopen

from calculator.errors import InputError, unknown_name
from training.recipes import RECIPES, Recipe, ScheduleSettings

MAX_BYTES = 64 * 1024  # a run file is a dozen lines; whatever is longer is something else

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_ORGANISATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,95}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]{0,39}")
_ADDRESS = re.compile(r"(/(ip4|ip6|dns|dns4|dns6)/[^/]+/(tcp|udp)/\d+\S*)?/p2p/[A-Za-z0-9]+")


@dataclass(frozen=True)
class RunFile:
    """A run as its organisers describe it.

    Attributes:
        name: the run's identifier: it is the prefix of everything the peers publish.
        recipe: a key of `training.recipes.RECIPES`: the model, data and schedule.
        initial_peers: multiaddresses of entry points, each ending in ``/p2p/`` and an identity;
            empty for the one that starts a run.
        title: what people read.
        organisation: the Hugging Face organisation whose members may join; empty: everybody.
        authority: address of the server that admits volunteers, https unless it is on this
            machine; empty: there is none.
        live: where the live data and the checkpoints are published: an http(s) address or a
            folder; empty: nowhere.
        data: where the training data comes from, in place of the recipe's own source.
        checkpoints: repository of the Hugging Face Hub where the monitor publishes the weights
            as well; empty: beside the live data only.
        license: of the weights, as the Hub names licenses; empty: the organisers name none.
        steps: global steps of the schedule, in place of the recipe's; its rate ends at zero there.
        links: further addresses for the run's page, by name.
    """

    name: str
    recipe: str
    initial_peers: tuple[str, ...] = ()
    title: str = ""
    organisation: str = ""
    authority: str = ""
    live: str = ""
    data: str = ""
    checkpoints: str = ""
    license: str = ""
    steps: int | None = None
    links: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(_NAME.fullmatch(self.name), "name", self.name, "1 to 40 of a-z, 0-9 and -")
        if self.recipe not in RECIPES:
            raise unknown_name("recipe", self.recipe, RECIPES)
        for address in self.initial_peers:
            rule = "a multiaddress such as /ip4/203.0.113.5/tcp/31337/p2p/12D3KooW..."
            _require(_ADDRESS.fullmatch(address), "initial_peers", address, rule)
        if self.organisation:
            rule = "the name of a Hugging Face organisation"
            _require(
                _ORGANISATION.fullmatch(self.organisation), "organisation", self.organisation, rule
            )
        if self.authority:
            rule = "an https address, or http on this machine: tokens travel there"
            _require(_is_private(self.authority), "authority", self.authority, rule)
        if self.steps is not None:
            _require(self.steps >= 2, "steps", self.steps, "must be at least 2")
        if self.checkpoints:
            rule = "a repository of the Hugging Face Hub, such as someone/model"
            _require(_REPOSITORY.fullmatch(self.checkpoints), "checkpoints", self.checkpoints, rule)
        if self.license:
            rule = "a license as the Hugging Face Hub names it, such as apache-2.0"
            _require(_LICENSE.fullmatch(self.license), "license", self.license, rule)
        for name, address in self.links.items():
            _require(_is_web(address), f"links.{name}", address, "an http(s) address")

    def get_recipe(self) -> Recipe:
        """The recipe of this run, with its number of steps."""
        recipe = RECIPES[self.recipe]
        if self.steps is None:
            return recipe
        warmup = min(recipe.schedule.warmup_steps, self.steps // 2)
        return replace(recipe, schedule=ScheduleSettings(self.steps, warmup))

    def to_toml(self) -> str:
        """The file's text; `parse` reads it back."""
        lines = [f"{key} = {_toml(getattr(self, key))}" for key in _TEXTS if getattr(self, key)]
        lines.append(f"initial_peers = [{', '.join(_toml(peer) for peer in self.initial_peers)}]")
        if self.steps is not None:
            lines.append(f"steps = {self.steps}")
        if self.links:
            lines += ["", "[links]", *(f"{_toml(k)} = {_toml(v)}" for k, v in self.links.items())]
        return "\n".join(lines) + "\n"


_TEXTS = (
    "name",
    "recipe",
    "title",
    "organisation",
    "authority",
    "live",
    "data",
    "checkpoints",
    "license",
)


def load(source: str) -> RunFile:
    """Read a run file from a path or an http(s) address.

    Raises:
        InputError: with the field, the value and the rule, when a field is not as it must be,
            or with the field ``run`` when there is no such file or it is no TOML.
    """
    return parse(_read(source), source)


def parse(text: str, source: str = "run file") -> RunFile:
    """Check the text of a run file; `source` names it in an error."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError("run", source, f"must be a TOML file: {error}") from error
    readers: dict[str, Callable[[str, Any], Any]] = dict.fromkeys(_TEXTS, _text)
    readers |= {"initial_peers": _texts, "steps": _whole_number, "links": _links}
    for key in values:
        if key not in readers:
            raise unknown_name("field", key, readers)
    for required in ("name", "recipe"):
        _require(required in values, required, "", "must be in the run file")
    return RunFile(**{key: readers[key](key, value) for key, value in values.items()})


def _read(source: str) -> str:
    rule = "a run file's path or http(s) address"
    try:
        if _is_web(source):
            with urlopen(source, timeout=30) as answer:
                content: bytes = answer.read(MAX_BYTES + 1)
        else:
            with Path(source).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
    except (OSError, URLError) as error:
        raise InputError("run", source, f"must be {rule}: {error}") from error
    _require(
        len(content) <= MAX_BYTES, "run", source, f"must be {rule} of at most {MAX_BYTES} bytes"
    )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError("run", source, "must be text in UTF-8") from error


def _is_web(address: str) -> bool:
    parts = urlparse(address)
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _is_private(address: str) -> bool:
    """Tell whether nobody can listen in on the way to an address."""
    parts = urlparse(address)
    on_this_machine = parts.hostname in ("127.0.0.1", "::1", "localhost")
    return _is_web(address) and (parts.scheme == "https" or on_this_machine)


def _require(condition: object, name: str, value: object, rule: str) -> None:
    if not condition:
        raise InputError(name, value, rule)


def _text(name: str, value: Any) -> str:
    _require(isinstance(value, str), name, value, "must be a text in quotes")
    return str(value)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    _require(isinstance(value, list), name, value, 'must be a list such as ["..."]')
    return tuple(_text(name, item) for item in value)


def _whole_number(name: str, value: Any) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    _require(is_whole, name, value, "must be a whole number")
    return int(value)


def _links(name: str, value: Any) -> dict[str, str]:
    _require(isinstance(value, dict), name, value, "must be a table of names and addresses")
    return {str(key): _text(f"{name}.{key}", item) for key, item in value.items()}


def _toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
