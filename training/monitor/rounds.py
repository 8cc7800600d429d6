"""The monitor of a run with local steps: hosts and closes the rounds, and writes the live data.

It holds the shared weights, as every volunteer does, and does not train. Started again it goes on
from its files: the newest checkpoint, the lists since then, and the updates of the open round.
While it is down, no round closes: the volunteers say so and wait.
"""

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import Any

from hivemind.utils.crypto import RSAPrivateKey

from calculator.errors import InputError
from training.access.entrance import admitted
from training.access.grants import peer_id_of
from training.access.membership import Membership
from training.authority.local import find_authority_folder, sign_own
from training.model import checkpoint
from training.model.build import build_model
from training.monitor import objects, publish
from training.monitor.helping import Help
from training.monitor.judging import HeldBatches
from training.monitor.round_books import RoundBooks, Traffic
from training.monitor.service import (
    FIRST_STEP_SECONDS,
    UPLOAD_SECONDS,
    MonitorOptions,
    going_on,
    in_words,
    public_name,
    say,
)
from training.monitor.tab import TabDoor
from training.monitor.web_host import WebHost
from training.network.connection import Identity, alone_in
from training.pictures import gallery, in_page
from training.records.bans import BanList
from training.run import atomic
from training.run import status as status_file
from training.run.live import LiveFolder, ProgressLine, RunCard, timestamp
from training.run.recipes import SparseSettings
from training.run.runfile import RunFile
from training.run.schedule import corners
from training.run.status import Stage
from training.sparse import catching_up, closing, web
from training.sparse.closing import Closing, ClosingError
from training.sparse.host import Closed, Host
from training.sparse.judging import Judge
from training.sparse.layout import Layout
from training.sparse.payload import Round
from training.sparse.shared import OuterSettings, SharedState, flatten, load
from training.sparse.store import StoreError
from training.sparse.swarm import Swarm
from training.sparse.uploads import StoredFolder, Uploads
from training.sparse.waiting import ClosingPolicy

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
GOODBYE_SECONDS = 20.0  # at the end of a run, for the volunteers to hear of it
KEPT = 2  # checkpoints of the shared state, and the rounds since the older one


def watch(run: RunFile, options: MonitorOptions, stop: threading.Event) -> None:
    """Host a run until it is over or `stop` is set.

    Raises:
        AccessRefusedError: when the run's authority does not admit us, or not any more.
        InputError: when the folder is in use, the port is taken, or an option has no use here.
    """
    _check(options)
    with alone_in(options.folder):
        identity = Identity.read(options.folder)
        own = find_authority_folder(run, options.authority_folder)
        ask = partial(sign_own, own, run.name, identity.public_key) if own else None
        with admitted(run, identity.key, options.folder, say, stop, ask) as membership:
            monitor = RoundsMonitor(run, options, identity.key, membership)
            monitor.introduce()
            try:
                while not (stop.is_set() or monitor.is_over):
                    with going_on("looking at the round"):
                        monitor.look()
                    stop.wait(LOOK_SECONDS)
                if not stop.is_set():
                    monitor.finish(stop)
            finally:
                monitor.close()


def _check(options: MonitorOptions) -> None:
    """Refuse what is for runs in which volunteers average."""
    given = {
        "average": options.help is not Help.AUTO and options.help,
        "announce": " ".join(options.endpoint.announce),
        "behind-firewall": not options.endpoint.reachable,
    }
    for name, value in given.items():
        if value:
            rule = "must not be given: in a run with local steps volunteers use the web host"
            raise InputError(name, value, rule)


class RoundsMonitor:
    """Hosts the rounds, closes them when it is time, and writes what came of them."""

    def __init__(
        self,
        run: RunFile,
        options: MonitorOptions,
        key: RSAPrivateKey,
        membership: Membership | None = None,
    ) -> None:
        self.run, self.options, self.recipe = run, options, run.get_recipe()
        assert self.recipe.sparse is not None
        settings: SparseSettings = self.recipe.sparse
        self._key = key
        self.identity = peer_id_of(key.get_public_key().to_bytes().decode())
        self.model = build_model(self.recipe)
        self.model.train(mode=False)
        self._parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.live = LiveFolder(options.live)
        self.store = StoredFolder(options.folder / "exchange")
        self.store.objects = objects.find(run)
        swarm = Swarm(
            run.name,
            Layout.of(self._parameters),
            self.store,
            {self.identity},
            OuterSettings(settings.outer_learning_rate, settings.momentum),
        )
        self.books = RoundBooks()
        saved = atomic.read_json(options.folder / "rounds.json")
        if saved is not None:
            self.books.restore(saved)
        state = self._first_state(swarm)
        policy = ClosingPolicy(
            settings.quorum,
            settings.grace,
            settings.longest,
            settings.seconds,
            settings.largest_norm,
        )
        self._book_missed(swarm, state.round)
        self._preparation = status_file.Percentages(Stage.PREPARING.value, say)
        losses = HeldBatches(self.recipe, run.data, settings.judged, self._show_preparation, say)
        self.judge = Judge(losses)
        if saved is not None:
            self.judge.restore(saved["records"])
        self.host = Host(
            swarm,
            self.store,
            state,
            policy,
            membership,
            judge=self.judge,
            is_banned=BanList(options.folder).is_banned,
        )
        self.uploads = (
            Uploads(self.host, self.store, self.store.objects) if self.store.objects else None
        )
        self._counted = Traffic()
        begun = atomic.read_json(options.folder / "begun.json")
        self._begun: dict[str, float] = begun if isinstance(begun, dict) else {}
        self._last_line: ProgressLine | None = None
        self._looked = 0.0
        self._checkpoint_step = max((e.step for e in self.live.read_checkpoints()), default=0)
        self.uploader = publish.Uploader(run, self.live, say) if run.checkpoints else None
        self._background = ThreadPoolExecutor(max_workers=1)
        self._job: Future[None] | None = None
        tab = TabDoor(run, swarm, self.model, options.folder, options.live)
        self.web = WebHost(
            web.make_service(self.host, self.uploads, tab.routes()),
            options.endpoint.host,
            options.endpoint.port,
        )
        self.live.start(self._make_card(settings, tab.describe(run.exchange or self.web.address)))
        self._write_status()

    def introduce(self) -> None:
        """Say how others get here."""
        print(f'for the run file:  initial_peers = ["/p2p/{self.identity}"]')
        if not self.run.exchange:
            print(f'for the run file:  exchange = "{self.web.address}" (others need https)')
        print(f"live data:         {self.options.live}", flush=True)
        if self.store.objects is not None:
            print(f"store:             {objects.describe(self.store.objects)}", flush=True)
            self._background.submit(self._store_checkpoint)

    @property
    def is_over(self) -> bool:
        """True if the schedule has ended, or the given time or number of sequences."""
        state = self.host.state
        if state.round >= self.recipe.schedule.total_steps:
            return True
        if self.options.sequences is not None and state.samples >= self.options.sequences:
            return True
        if self.options.minutes is None or not self._begun:
            return False
        since = self._begun.get("steps") or self._begun["reports"] + FIRST_STEP_SECONDS
        return time.time() - since > 60 * self.options.minutes

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
        due = self._checkpoint_step + self.recipe.swarm.checkpoint_every
        if self.host.state.round >= due and (self._job is None or self._job.done()):
            self._job = self._background.submit(self._make_checkpoint)

    def finish(self, stop: threading.Event) -> None:
        """End the run: the volunteers hear of it, a last checkpoint, the page is an archive."""
        self.host.finish()
        if self._job is not None:
            self._job.result()
        if self.host.state.round > self._checkpoint_step:
            self._make_checkpoint()
        if self.uploader is not None and not self.uploader.finish(UPLOAD_SECONDS):
            print("the last checkpoint is not on the Hub: python -m training publish", flush=True)
        deadline = time.monotonic() + GOODBYE_SECONDS
        while self.host.present() and time.monotonic() < deadline and not stop.is_set():
            stop.wait(LOOK_SECONDS)
        if self.host.bytes_to_newcomers:
            print(f"{self.host.bytes_to_newcomers:,} bytes of checkpoints to newcomers", flush=True)
        self._hear()
        self.live.write_peers(self.books.contributors())
        self.live.finish(timestamp(time.time()))

    def close(self) -> None:
        """End the host."""
        self._background.shutdown(wait=False, cancel_futures=True)
        if self.uploader is not None:
            self.uploader.close()
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
            self._note_beginning("reports")

    def _book(self, closed: Closed) -> None:
        """Write a round's line, then the books: a crash in between loses neither."""
        host, before = self.host, self._counted
        self._counted = Traffic(host.bytes_in, host.bytes_out, host.refused)
        traffic = Traffic(
            self._counted.bytes_in - before.bytes_in,
            self._counted.bytes_out - before.bytes_out,
            self._counted.refused - before.refused,
        )
        line = self.books.book(closed.number, closed.taken, closed.reports, time.time(), traffic)
        self.live.append(line)
        atomic.write_json(
            self.options.folder / "rounds.json",
            self.books.state() | {"records": self.judge.state()},
        )
        self._note_beginning("steps")
        self._last_line = line
        print(in_words(line), flush=True)
        for peer, why in closed.left_out.items():
            who = closed.reports[peer].name if peer in closed.reports else peer
            print(f"left out: the update of {who}: {why}", flush=True)

    def _book_missed(self, swarm: Swarm, number: int) -> None:
        """Book rounds that were closed just before this monitor was killed."""
        for missed in range(self.books.next_round, number):
            found = closing.find(swarm, missed)
            if found is None:
                logger.warning("the list of round %d is gone: its credit is lost", missed)
                continue
            line = self.books.book(missed, found.taken, {}, time.time())
            if line.step > self.live.last_step():
                self.live.append(line)

    def _note_beginning(self, of: str) -> None:
        """Remember when something began, by the clock: it goes on over a restart."""
        if of not in self._begun:
            self._begun[of] = time.time()
            atomic.write_json(self.options.folder / "begun.json", self._begun)

    def _make_checkpoint(self) -> None:
        with going_on("making a checkpoint"):
            state = self.host.state
            loss = self._last_line.loss if self._last_line else None
            catching_up.publish(self.store, state)
            self._store_checkpoint()
            catching_up.forget_before(self.store, KEPT)
            load(state.weights, self._parameters)
            time_now = timestamp(time.time())
            drawing = None
            with going_on("packing the model for the page"):
                drawing = in_page.pack(self.model, self.recipe)
            checkpoint.publish(self.live, self.model, state.round, loss, time_now, drawing=drawing)
            self._checkpoint_step = state.round
            if self.uploader is not None:
                self.uploader.look()
            print(f"checkpoint of step {state.round}", flush=True)
            pictures = gallery.draw_prompts(self.model, self.recipe)
            prompts = self.recipe.generation.prompts
            self.live.add_samples(state.round, time_now, prompts, pictures)

    def _store_checkpoint(self) -> None:
        """Put the newest checkpoint of the shared state into the run's object store as well."""
        if self.uploads is None:
            return
        try:
            self.uploads.keep(*catching_up.newest(self.host.swarm))
        except (ClosingError, StoreError) as error:
            logger.warning("the checkpoint is not in the store: %s", error)

    def _show_preparation(self, percent: int) -> None:
        self._preparation(percent)
        status_file.write(self.options.folder, {"started": False, "percent": percent})

    def _write_status(self) -> None:
        content: dict[str, Any] = {
            "started": True,
            "addresses": [f"/p2p/{self.identity}"],
            "exchange": self.web.address,
            "step": self.host.state.round,
            "training": len(self.host.present()),
        }
        status_file.write(self.options.folder, content)

    def _make_card(self, settings: SparseSettings, tab: dict[str, Any] | None) -> RunCard:
        schedule = asdict(self.recipe.schedule) | {
            "target_batch_size": 0,  # a round ends with its time
            "round_seconds": settings.seconds,
            "learning_rate": settings.learning_rate,
            "corners": corners(self.recipe.schedule, settings.learning_rate),
        }
        return RunCard(
            name=self.run.name,
            title=self.run.title or self.run.name,
            recipe=self.recipe.name,
            model=asdict(self.recipe.model),
            parameters=sum(parameter.numel() for parameter in self._parameters),
            schedule=schedule,
            start=timestamp(time.time()),
            join=f"python -m training join {public_name(self.options.source)}",
            links=self.run.links,
            tab=tab,
        )
