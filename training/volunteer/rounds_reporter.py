"""Reports what a volunteer with local steps does, to its owner and to the run's host."""

import logging
import math
import threading
import time

from calculator.errors import InputError
from training.access.signatures import PeerKey
from training.run import milestones
from training.run.live import PeerState
from training.run.status import Stage, StatusBoard
from training.sparse import report
from training.sparse.report import Report
from training.sparse.store import StoreError
from training.sparse.web_store import WebStore
from training.volunteer.reporter import Heart

logger = logging.getLogger(__name__)


class RoundsReporter(Heart):
    """Sends signed reports.

    Attributes:
        loss: mean of the local steps in this round.

    Raises:
        InputError: the name has characters that none may have.
    """

    def __init__(
        self, board: StatusBoard, store: WebStore, run: str, key: PeerKey, name: str
    ) -> None:
        if not report.is_name(name):
            rule = "must be 1 to 40 letters, digits, spaces and . @ - _"
            raise InputError("name", name, rule)
        super().__init__(board, Stage.STARTING)
        self.loss: float | None = None
        self._store, self._run_name, self._key, self._name = store, run, key, name
        self._session = time.time()
        self._number = 0
        self._sent = 0.0  # time of the last report
        self._lock = threading.Lock()

    def begin_round(self, number: int) -> None:
        """Say that the local steps of a round begin."""
        self._number, self.loss, self.stage = number, None, Stage.COMPUTING
        self._beat(PeerState.TRAINING)

    def send(self, state: PeerState) -> None:
        """Send a report; raises StoreError when the host does not take it."""
        with self._lock:
            now = max(time.time(), self._sent + 1e-3)  # each later than the one before
            loss = self.loss if self.loss is not None and math.isfinite(self.loss) else None
            told = Report(
                name=self._name,
                state=state.value,
                session=self._session,
                time=now,
                number=self._number,
                loss=loss,
                bytes_sent=self._store.bytes_sent,
                bytes_received=self._store.bytes_received,
                milestones=milestones.reached(),
            )
            self._store.report(report.write(self._run_name, told, self._key))
            self._sent = now  # it was taken: a clock that was wrong leaves no trace

    def show(self) -> None:
        """Bring the board up to date."""
        self.board.status.started = True
        self.board.status.stage, self.board.status.percent = self.stage, None
        self.board.show()

    def _say_goodbye(self) -> None:
        if self._thread.ident is not None:
            self._beat(PeerState.LEFT)

    def _beat(self, state: PeerState) -> None:
        try:
            self.send(state)
        except StoreError as error:
            logger.info("a report was not taken: %s", error)
        except Exception:  # the next attempt may succeed
            logger.exception("a report failed")
