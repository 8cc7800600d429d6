"""Run files: what a volunteer must know to join a run. A TOML file without any secret.

name = "rehearsal"
recipe = "rehearsal"
initial_peers = ["/ip4/127.0.0.1/tcp/31337/p2p/12D3KooW..."]
live = "https://example.org/live/rehearsal/"
"""

import base64
import binascii
import os
import re
import tomllib
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from calculator.errors import InputError, unknown_name
from training.run import download, recipes, tables
from training.run.recipes import Recipe, ScheduleSettings
from training.run.tables import quote

MAX_BYTES = 64 * 1024  # a run file is a dozen lines; whatever is longer is something else
ANSWER_SECONDS = 30.0
MAX_STEPS = 10**9
PLAIN = "must be one line of at most 1,000 characters, without control characters"

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_ORGANISATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,95}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_FOLDER = re.compile(r"https?://[a-z0-9.:\[\]-]+(/[\w.-]+)+/?", re.ASCII)
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]{0,39}")
_ADDRESS = re.compile(
    r"(/(ip4|ip6|dns|dns4|dns6)/[\w.:%-]+/(tcp|udp)/\d{1,5}[\w./:%-]*)?/p2p/[A-Za-z0-9]+", re.ASCII
)


@dataclass(frozen=True)
class RunFile:
    """A run as its organisers describe it.

    Attributes:
        name: the run's identifier: it is the prefix of everything the peers publish.
        recipe: a key of `training.run.recipes.RECIPES`: the model, data and schedule.
        changes: where the run's recipe differs from that one; the file has both in `[recipe]`.
        initial_peers: multiaddresses of entry points, each ending in ``/p2p/`` and an identity;
            empty for the one that starts a run.
        title: what people read.
        organisation: the Hugging Face organisation whose members may join; empty: everybody.
        authority: address of the server that admits volunteers, https unless it is on this
            machine; empty: there is none.
        authority_key: the key that the authority signs with, as it prints it at its start: then
            no other server can pass for it; empty: the first answer is believed.
        live: where the live data and the checkpoints are published: an https address, http on this
            machine, or a folder; empty: nowhere.
        exchange: in a run with local steps, the web host where volunteers exchange their updates:
            an https address, http on this machine.
        store: in a run with local steps, an object store through which the larger files go, and a
            folder in it: an https address, http on this machine; empty: the web host has them all.
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
    authority_key: str = ""
    live: str = ""
    exchange: str = ""
    store: str = ""
    data: str = ""
    checkpoints: str = ""
    license: str = ""
    steps: int | None = None
    links: dict[str, str] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(_NAME.fullmatch(self.name), "name", self.name, "1 to 40 of a-z, 0-9 and -")
        recipes.derive(self.recipe, self.changes)
        for name in _TEXTS:
            _require(_is_plain(getattr(self, name)), name, getattr(self, name), PLAIN)
        for name, (is_right, rule) in _RULES.items():
            value = getattr(self, name)
            _require(not value or is_right(value), name, value, rule)
        for address in self.initial_peers:
            rule = "a multiaddress such as /ip4/203.0.113.5/tcp/31337/p2p/12D3KooW..."
            _require(_ADDRESS.fullmatch(address), "initial_peers", address, rule)
        for name, other in (("authority_key", "authority"), ("store", "exchange")):
            rule = f"must not be given where the run file names no {other}"
            value = getattr(self, name)
            _require(getattr(self, other) or not value, name, value, rule)
        rule = f"must not be given: volunteers of the recipe {self.recipe} average themselves"
        _require(not self.exchange or self.get_recipe().sparse, "exchange", self.exchange, rule)
        if self.steps is not None:
            rule = f"must be from 2 to {MAX_STEPS:,}"
            _require(2 <= self.steps <= MAX_STEPS, "steps", self.steps, rule)
        for name, address in self.links.items():
            _require(_is_plain(name) and name, "links", name, PLAIN)
            _require(_is_web(address), f"links.{name}", address, "an http(s) address")

    def get_recipe(self) -> Recipe:
        """The recipe of this run, with its number of steps."""
        recipe = recipes.derive(self.recipe, self.changes)
        if self.steps is None:
            return recipe
        warmup = min(recipe.schedule.warmup_steps, self.steps // 2)
        return replace(recipe, schedule=ScheduleSettings(self.steps, warmup))

    def to_toml(self) -> str:
        """The file's text; `parse` reads it back."""
        texts = {key: getattr(self, key) for key in _TEXTS if getattr(self, key)}
        if self.changes:
            del texts["recipe"]
        lines = [f"{key} = {quote(text)}" for key, text in texts.items()]
        peers = ", ".join(map(quote, self.initial_peers))
        lines.append(f"initial_peers = [{peers}]")
        if self.steps is not None:
            lines.append(f"steps = {self.steps}")
        if self.links:
            lines += ["", "[links]", *(f"{quote(k)} = {quote(v)}" for k, v in self.links.items())]
        if self.changes:
            lines += tables.write({"base": self.recipe} | self.changes, "recipe")
        return "\n".join(lines) + "\n"


_TEXTS = tuple(one.name for one in fields(RunFile) if one.type is str)


def load(source: str) -> RunFile:
    """Read a run file from a path or an http(s) address.

    Raises:
        InputError: with the field, the value and the rule, when a field is not as it must be,
            or with the field ``run`` when there is no such file or it is no TOML.
    """
    return parse(_read(source), source, None if _is_web(source) else Path(source).parent)


def parse(text: str, source: str = "run file", folder: Path | None = None) -> RunFile:
    """Check the text of a run file.

    Args:
        source: names it in an error.
        folder: that it is in, on this machine.
    """
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise InputError("run", source, "must be a TOML file, not nested so deeply") from error
    except ValueError as error:  # of TOML, or a whole number of thousands of digits
        raise InputError("run", source, f"must be a TOML file: {error}") from error
    known = [field.name for field in fields(RunFile) if field.name != "changes"]
    for key in values:
        if key not in known:
            raise unknown_name("field", key, known)
    for required in ("name", "recipe"):
        _require(required in values, required, "", "must be in the run file")
    base, changes = recipes.split(values["recipe"], folder)
    run: RunFile = tables.read(RunFile, values | {"recipe": base, "changes": changes})
    return run


def _read(source: str) -> str:
    rule = "must be a run file's path or http(s) address"
    try:
        place = source if _is_web(source) else Path(source)
        return download.read(place, MAX_BYTES, ANSWER_SECONDS).decode()
    except FileNotFoundError as error:
        raise InputError("run", source, f"{rule}: there is no such file") from error
    except UnicodeDecodeError as error:
        raise InputError("run", source, "must be text in UTF-8") from error
    except download.TooLongError as error:
        raise InputError("run", source, f"{rule} of at most {MAX_BYTES} bytes") from error
    except OSError as error:
        raise InputError("run", source, f"{rule}: {error}") from error


def _is_web(address: str) -> bool:
    return download.is_web(address) and _is_plain(address) and " " not in address


def _is_private(address: str) -> bool:
    """True if no one can listen in on the way to an address."""
    return _is_web(address) and download.is_private(address)


def _is_folder(address: str) -> bool:
    """True for an address to which names can be added, and which holds no key."""
    return _is_private(address) and _FOLDER.fullmatch(address) is not None


def _is_plain(text: str) -> bool:
    """True if a text can be shown in a terminal and on a page as it is."""
    controls = any(unicodedata.category(c) in _CONTROLS or c in _DIRECTIONS for c in text)
    return len(text) <= 1000 and not controls


_CONTROLS = ("Cc", "Cs", "Zl", "Zp")
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == 32
    except (ValueError, binascii.Error):
        return False


# Nobody may listen in on the way to servers, or pass for them.
_RULES: dict[str, tuple[Callable[[str], object], str]] = {
    "organisation": (_ORGANISATION.fullmatch, "the name of a Hugging Face organisation"),
    "checkpoints": (
        _REPOSITORY.fullmatch,
        "a repository of the Hugging Face Hub, such as someone/model",
    ),
    "license": (
        _LICENSE.fullmatch,
        "a license as the Hugging Face Hub names it, such as apache-2.0",
    ),
    "authority": (_is_private, "an https address, or http on this machine: tokens travel there"),
    "authority_key": (_is_key, "32 bytes in base 64, as the authority prints its key"),
    "live": (
        lambda place: "://" not in place or _is_private(place),
        "an https address, http on this machine, or a folder: weights come from there",
    ),
    "exchange": (_is_private, "an https address, or http on this machine: weights come from there"),
    "store": (
        _is_folder,
        "https://HOST/FOLDER, or http on this machine, without anything after the folder",
    ),
}


def _require(condition: object, name: str, value: object, rule: str) -> None:
    if not condition:
        raise InputError(name, value, rule)


def default_folder(run: RunFile, role: str) -> Path:
    """Give the folder of a run and role in the user's own state folder."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "training-transformers-together" / run.name / role
