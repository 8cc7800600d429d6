"""The door through which browsers' tabs join a run with local steps: page, facts and data.

    GET  /live/?run=NAME   the run's live page, with a button that trains in the tab
    GET  /tab              the run's facts, as docs/assets/volunteer/rounds.js reads them
    GET  /tab/data         rows of words and codes, 16 bits each, little-endian; in ranges

All come from the run's web host, so that the page asks nobody else.
"""

import secrets
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from calculator.estimate import estimate
from training.data import streaming
from training.model.transformer import TextToImageTransformer
from training.monitor.live_page import SITE, is_built, page_routes
from training.pictures.in_page import shape_of
from training.run import atomic
from training.run.recipes import Recipe
from training.run.runfile import RunFile
from training.sparse.closing import Swarm
from training.sparse.shared import HEAVIEST, LONGEST
from training.volunteer import fitting

MOST_BYTES = 2**30  # of a tab: what a telephone gives one
MICRO_BATCH = 8  # sequences of a local step at most, so that one takes less than a second
ROWS = 2**14  # of the run's data
_AT_ONCE = 64


class TabDoor:
    """Lets tabs into a run.

    Args:
        folder: where the rows are written when the first tab asks.
        live: folder of the live data.
    """

    def __init__(
        self, run: RunFile, swarm: Swarm, model: torch.nn.Module, folder: Path, live: Path
    ) -> None:
        self.run, self.swarm, self.model = run, swarm, model
        self.recipe = run.get_recipe()
        self._path, self._lock = folder / "tab.bin", threading.Lock()
        self._live = live

    @property
    def is_open(self) -> bool:
        """True if tabs can join: no account is asked for, and the page knows the kind of model."""
        is_known = isinstance(self.model, TextToImageTransformer)
        return is_known and not self.run.authority and is_built(SITE)

    def describe(self, address: str) -> dict[str, Any] | None:
        """The entry of `run.json`; None where tabs cannot join.

        Args:
            address: of the run's web host.
        """
        if not self.is_open:
            return None
        needed = memory_bytes(self.recipe)
        return {"address": address, "memory_bytes": needed, "most_bytes": MOST_BYTES}

    def routes(self) -> list[BaseRoute]:
        """The part of the web host that is for tabs."""
        if not self.is_open:
            return []
        return [
            Route("/tab", lambda _request: JSONResponse(self._facts())),
            Route("/tab/data", self._give_rows),
            *page_routes(self.run.name, self.run.title or self.run.name, self._live, SITE),
        ]

    def _facts(self) -> dict[str, Any]:
        recipe, settings = self.recipe, self.recipe.sparse
        assert settings is not None
        assert isinstance(self.model, TextToImageTransformer)
        return {
            "run": self.run.name,
            "closers": sorted(self.swarm.closers),
            "model": shape_of(self.model),
            "micro_batch": micro_batch(recipe),
            "rows": ROWS,
            "schedule": asdict(recipe.schedule),
            "local": {
                "seconds": settings.seconds,
                "learning_rate": settings.learning_rate,
                "betas": settings.betas,
                "weight_decay": recipe.optimizer.weight_decay,
                "max_gradient_norm": recipe.optimizer.max_gradient_norm,
            },
            "outer": outer_settings(recipe),
            "poll_seconds": settings.poll_seconds,
        }

    def _give_rows(self, _request: Request) -> Response:
        with self._lock:
            if not self._path.is_file():
                atomic.write_bytes(self._path, pack_rows(self.recipe, self.run.data))
        return FileResponse(self._path, media_type="application/octet-stream")


def outer_settings(recipe: Recipe) -> dict[str, float]:
    """Settings of the step that a round makes, as the page's script reads them."""
    assert recipe.sparse is not None
    rate = recipe.sparse.outer_learning_rate
    return {"learning_rate": rate, "longest": LONGEST, "heaviest": HEAVIEST}


def micro_batch(recipe: Recipe) -> int:
    """Sequences of a tab's local step."""
    return min(MICRO_BATCH, recipe.swarm.micro_batch_size)


def memory_bytes(recipe: Recipe) -> int:
    """A tab's memory as the calculator counts: it keeps the activations of every layer."""
    architecture = replace(fitting.make_architecture(recipe), reversible=False)
    plan = fitting.make_plan(recipe, torch.device("cpu"), micro_batch(recipe))
    report = estimate(architecture, plan)
    return report.gpu.total + report.ram.total + fitting.ROUND_VECTORS * 4 * report.parameters


def pack_rows(recipe: Recipe, data: str) -> bytes:
    """Samples of a run's data in an order of chance: uint16 [ROWS, words + codes].

    Args:
        data: folder or data set; empty: the recipe's.
    """
    samples = streaming.stream(recipe, secrets.token_bytes(16), data or None, _AT_ONCE)
    batches = (next(samples) for _ in range(ROWS // _AT_ONCE))
    rows = [torch.cat([batch["text_ids"], batch["image_codes"]], dim=1) for batch in batches]
    samples.closed.set()
    return torch.cat(rows).numpy().astype(np.dtype("<u2")).tobytes()
