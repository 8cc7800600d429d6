"""The monitor of a run with local steps: hosts and closes the rounds, and writes the live data.

It holds the shared weights, as every volunteer does, and does not train. Started again it goes on
from its files: the newest checkpoint, the lists since then, and the updates of the open round.
While it is down, no round closes: the volunteers say so and wait.
"""

import ctypes
import logging
import operator
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple

import torch
from hivemind.utils.crypto import RSAPrivateKey

from calculator.errors import InputError
from training.access.grants import peer_id_of
from training.access.membership import Membership
from training.model import checkpoint
from training.monitor.judging import HeldBatches
from training.monitor.monitor import Monitor, MonitorOptions, say
from training.monitor.round_books import RoundBooks, Traffic
from training.monitor.tab import TabDoor
from training.monitor.web_host import WebHost
from training.records.owners import BanList
from training.run import atomic
from training.run.runfile import RunFile
from training.sparse import catching_up, closing, web
from training.sparse.closing import Closing, ClosingError, Swarm
from training.sparse.host import Closed, Host
from training.sparse.judging import Judge
from training.sparse.layout import Layout
from training.sparse.object_store import ObjectStore, StoredFolder
from training.sparse.payload import Round
from training.sparse.shared import SharedState, flatten, load

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
GOODBYE_SECONDS = 20.0  # at the end of a run, for the volunteers to hear of it
KEPT = 2  # checkpoints of the shared state, and the rounds since the older one


def _check(options: MonitorOptions) -> None:
    """Refuse what is for runs in which volunteers average."""
    given = {
        "announce": " ".join(options.endpoint.announce),
        "behind-firewall": not options.endpoint.reachable,
    }
    for name, value in given.items():
        if value:
            rule = "must not be given: in a run with local steps volunteers use the web host"
            raise InputError(name, value, rule)


def give_memory_back() -> None:
    """Return free pages to the system, if the C library can: glibc keeps those between others.

    Without it, 20 volunteers' rounds of the rehearsal's model take 0.1 MB each.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


class RoundsMonitor(Monitor):
    """Hosts the rounds, closes them when it is time, and writes what came of them."""

    def __init__(
        self,
        run: RunFile,
        options: MonitorOptions,
        key: RSAPrivateKey,
        membership: Membership | None = None,
    ) -> None:
        _check(options)
        super().__init__(run, options)
        self.pause = LOOK_SECONDS
        assert self.recipe.sparse is not None
        settings = self.recipe.sparse
        self._key = key
        self.identity = peer_id_of(key.get_public_key().to_bytes().decode())
        self._parameters = [p for p in self.model.parameters() if p.requires_grad]
        objects = ObjectStore.from_environment(run.store, os.environ) if run.store else None
        self.store = StoredFolder(options.folder / "exchange", objects, say)
        swarm = Swarm(
            run.name,
            Layout.of(self._parameters),
            self.store,
            {self.identity},
            settings.outer_learning_rate,
        )
        self.books = RoundBooks()
        saved = atomic.read_json(options.folder / "rounds.json")
        if saved is not None:
            self.books.restore(saved)
        state = self._first_state(swarm)
        self._book_missed(swarm, state.round)
        self.step = state.round
        self.judge = Judge(HeldBatches(self.recipe, run.data, settings.judged, say))
        if saved is not None:
            self.judge.restore(saved["records"])
        self.host = Host(
            swarm,
            self.store,
            state,
            settings,
            membership,
            judge=self.judge,
            is_banned=BanList(options.folder).is_banned,
        )
        self._counted = Traffic()
        self._looked = 0.0
        tab = TabDoor(run, swarm, self.model, options.folder, options.live)
        self.web = WebHost(
            web.make_service(self.host, self.store, tab.routes()),
            options.endpoint.host,
            options.endpoint.port,
        )
        self.open_page(
            {
                "target_batch_size": 0,  # a round ends with its time
                "round_seconds": settings.seconds,
                "learning_rate": settings.learning_rate,
            },
            tab.describe(run.exchange or self.web.address),
        )
        self._write_status()

    def introduce(self) -> None:
        """Say how others get here."""
        print(f'for the run file:  initial_peers = ["/p2p/{self.identity}"]')
        if not self.run.exchange:
            print(f'for the run file:  exchange = "{self.web.address}" (others need https)')
        print(f"live data:         {self.options.live}", flush=True)
        if self.store.objects is not None:
            print(f"store:             {self.store.objects.describe()}", flush=True)
            self._background.submit(self.store.keep, catching_up.newest(self.host.swarm)[0])

    def look(self) -> None:
        """Close the round if it is due; now and then write what the volunteers tell."""
        self.host.judge_updates()
        closed = self.host.close_if_due(self._key)
        is_early = time.monotonic() - self._looked < self.recipe.swarm.poll_seconds
        if closed is None and is_early:
            return
        self._looked = time.monotonic()
        self._hear()
        if closed is not None:
            self._book(closed)
        self.live.write_peers(self.books.contributors())
        self._write_status()
        self.publish_if_due()

    def _hear_last(self, stop: threading.Event) -> None:
        self.host.finish()
        deadline = time.monotonic() + GOODBYE_SECONDS
        while self.host.present() and time.monotonic() < deadline and not stop.is_set():
            stop.wait(LOOK_SECONDS)
        if self.host.bytes_to_newcomers:
            print(f"{self.host.bytes_to_newcomers:,} bytes of checkpoints to newcomers", flush=True)
        self._hear()
        self.live.write_peers(self.books.contributors())

    def close(self) -> None:
        """End the host."""
        super().close()
        self.web.close()

    def _first_state(self, swarm: Swarm) -> SharedState:
        """The state to go on from; at the beginning of a run, that of the first weights.

        Where the folder of the rounds' files is gone, that of the newest published weights, in a
        round that nobody has been in, so that everybody takes it.
        """
        if self.store.names("checkpoints"):
            try:
                return catching_up.join(swarm)
            except ClosingError as error:
                folder = self.options.folder / "exchange"
                rule = f"must hold the run's files as they were written: {error}"
                raise InputError("folder", folder, rule) from error
        state = SharedState.of(self._parameters)
        lost = max(self.books.next_round, self.live.last_step())
        if lost:
            step = self._load_published()
            state = SharedState(flatten(self._parameters), round_number=lost + 1)
            of = Round(self.run.name, lost, state.digest())
            closing.publish(swarm, Closing(of, (), state.digest()), self._key)
            say(f"the files of {lost} rounds are gone: going on from the weights of step {step}")
        catching_up.publish(self.store, state)
        return state

    def _load_published(self) -> int:
        """Load the newest published weights, if there are any; their step."""
        if not self.live.read_checkpoints():
            return 0
        step, model = checkpoint.fetch(str(self.live.path))
        self.model.load_state_dict(model.state_dict())
        return step

    def _hear(self) -> None:
        reports = self.host.reports()
        self.books.hear(reports, self.host.present(), time.time())
        if reports:
            self.note_beginning("reports")

    def _book(self, closed: Closed) -> None:
        """Write a round's line, then the books: a crash in between loses neither."""
        host, before = self.host, astuple(self._counted)
        self._counted = Traffic(host.bytes_in, host.bytes_out, host.refused)
        traffic = Traffic(*map(operator.sub, astuple(self._counted), before))
        line = self.books.book(closed.number, closed.taken, closed.reports, time.time(), traffic)
        self.write(line)
        atomic.write_json(
            self.options.folder / "rounds.json",
            self.books.state() | {"records": self.judge.state()},
        )
        for peer, why in closed.left_out.items():
            who = closed.reports[peer].name if peer in closed.reports else peer
            say(f"the update of {who} is not used: {why}")
        give_memory_back()

    def _book_missed(self, swarm: Swarm, number: int) -> None:
        """Book rounds that were closed just before this monitor was killed."""
        for missed in range(self.books.next_round, number):
            found = closing.find(swarm, missed)
            if found is None:
                logger.warning("the list of round %d is gone: its credit is lost", missed)
                continue
            line = self.books.book(missed, found.taken, {}, time.time())
            if line.step > self.step:
                self.write(line)

    def _take_weights(self) -> tuple[int, Sequence[torch.Tensor]]:
        state = self.host.state
        sha256 = catching_up.publish(self.store, state)
        self.store.keep(sha256)
        catching_up.forget_before(self.store, KEPT)
        load(state.weights, self._parameters)
        return state.round, ()

    def _write_status(self) -> None:
        addresses = [f"/p2p/{self.identity}"]
        self.write_status(addresses, len(self.host.present()), exchange=self.web.address)
