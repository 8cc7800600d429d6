"""All that a peer has to know to follow a run."""

from collections.abc import Collection
from dataclasses import dataclass

from training.sparse.layout import Layout
from training.sparse.payload import Round
from training.sparse.shared import OuterSettings, SharedState
from training.sparse.store import Store


@dataclass(frozen=True)
class Swarm:
    """A run as its peers see it.

    Attributes:
        run: the run's name.
        layout: of the model's parameters.
        store: where the files are.
        closers: identities that may close rounds.
        settings: of the outer step, the same for all.
    """

    run: str
    layout: Layout
    store: Store
    closers: Collection[str]
    settings: OuterSettings

    def round_of(self, state: SharedState) -> Round:
        """The round that begins with a state."""
        return Round(self.run, state.round, state.digest())
