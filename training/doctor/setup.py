"""The options of a volunteer about to join, as far as the doctor needs them."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

from training.run.recipes import Recipe
from training.run.runfile import RunFile
from training.run.status import first_line


@dataclass(frozen=True)
class Setup:
    """A run and the way to join it; the fields are the options of `join`.

    Attributes:
        folder: holds the identity and the backup, now or later.
        port: to listen on, 0 for any. announce: multiaddresses announced to others.
        reachable: False behind a firewall.
        micro_batch: sequences computed at once; None for as many as fit.
    """

    run: RunFile
    folder: Path
    host: str = "0.0.0.0"
    port: int = 0
    announce: tuple[str, ...] = ()
    reachable: bool = True
    micro_batch: int | None = None

    @property
    def recipe(self) -> Recipe:
        """The run's recipe."""
        return self.run.get_recipe()

    @cached_property
    def broken_imports(self) -> dict[str, str]:
        """The large packages that cannot be imported, and why.

        They are imported here, one after another: some fail when several threads import them.
        """
        return {name: why for name in HEAVY if (why := _why_not(name))}


MISSING = "missing"
HEAVY = ("torch", "bitsandbytes", "hivemind", "huggingface_hub")


def _why_not(name: str) -> str:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        return MISSING if error.name == name else f"{error.name} is missing"
    except Exception as error:  # a broken build raises whatever it likes
        return f"{type(error).__name__}: {first_line(error)}"
    return ""
