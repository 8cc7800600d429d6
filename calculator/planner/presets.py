"""Runs that others and we have made or plan, as choices of the planner (`presets.json`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from calculator.data import read_data
from calculator.planner.run import Run


@dataclass(frozen=True, slots=True)
class Preset:
    """An example run.

    Attributes:
        title: its name.
        model: a name of the catalog; empty where the options describe the model.
        options: what differs from the planner's defaults.
        source: key of the publication; empty where there is none.
        published: which choices are printed there, and what came out.
        assumed: which choices are ours.
    """

    title: str
    model: str
    options: Mapping[str, object]
    source: str
    published: str
    assumed: str

    @property
    def run(self) -> Run:
        """The choices as a run."""
        return Run.parse(self.options)


PRESETS: Final = {
    name: Preset(**values) for name, values in read_data("planner/presets.json").items()
}
