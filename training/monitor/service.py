"""The monitor: a fixed entry point that counts, keeps checkpoints and writes the live data.

It does not train. When it dies the run goes on without it; started again it has the same
identity and port, finds the volunteers it knew, and continues its books.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from hivemind.utils import get_dht_time

from training.access.entrance import admitted
from training.access.membership import Membership
from training.authority.local import find_authority_folder, sign_own
from training.averaging.helper import Helper, HelperStuckError
from training.averaging.optimizer import ordered_parameters
from training.averaging.state import open_download
from training.model import checkpoint
from training.model.build import build_model
from training.monitor import publish, rollback
from training.monitor.helping import Help, Testimony, Told, describe
from training.monitor.tally import Tally
from training.network import reachability
from training.network.connection import Endpoint, Identity, Network, alone_in
from training.pictures import gallery, in_page
from training.records import orders, reports, validator
from training.records.orders import BanOrder
from training.records.owners import contributor_id
from training.records.reports import PeerReport
from training.run import atomic
from training.run import status as status_file
from training.run.live import LiveFolder, PeerState, ProgressLine, RunCard, timestamp
from training.run.runfile import RunFile
from training.run.schedule import corners

logger = logging.getLogger(__name__)

NAME = "the monitor"
ANSWER_SECONDS = 15.0
FIRST_STEP_SECONDS = 180.0  # from the first report: a run whose time is limited ends without steps
LAST_REPORTS_SECONDS = 45.0  # at the end of a run, for those who were slow in its last step
UPLOAD_SECONDS = 300.0  # at the end of a run, for the last checkpoint


@dataclass(frozen=True)
class MonitorOptions:
    """Options of the organizers.

    Attributes:
        folder: where identity, books and address book are kept.
        live: the folder of the live data, to be served by any static host.
        source: path or address of the run file, as volunteers are to give it.
        help: when to average for volunteers behind routers.
        minutes: end the run so long after its first step; None: with its schedule.
        sequences: end the run after so many; None: with its schedule.
        authority_folder: of the run's authority, if it is on this machine; else the monitor needs
            a token as volunteers do.
    """

    folder: Path
    live: Path
    source: str
    endpoint: Endpoint
    minutes: float | None = None
    sequences: int | None = None
    help: Help = Help.AUTO
    authority_folder: Path | None = None


def watch(run: RunFile, options: MonitorOptions, stop: threading.Event) -> None:
    """Keep the books of a run until it is over or `stop` is set.

    Raises:
        CannotConnectError: when the network daemon does not start, say because the port is taken.
        AccessRefusedError: when the run's authority does not admit us, or not any more.
        InputError: when the folder is in use.
    """
    with alone_in(options.folder):
        identity = Identity.read(options.folder)
        own = find_authority_folder(run, options.authority_folder)
        ask = partial(sign_own, own, run.name, identity.public_key) if own else None
        with admitted(run, identity.key, options.folder, say, stop, ask) as membership:
            monitor = Monitor(run, options, membership)
            monitor.introduce()
            try:
                while not (stop.is_set() or monitor.is_over):
                    with going_on("looking at the run"):
                        monitor.look()
                    if monitor.helper is not None and monitor.helper.is_stuck:
                        raise HelperStuckError
                    stop.wait(monitor.recipe.swarm.poll_seconds)
                if not stop.is_set():
                    monitor.finish(stop)
            finally:
                monitor.close()


def say(sentence: str) -> None:
    """Write a sentence to the terminal at once."""
    print(sentence, flush=True)


@contextlib.contextmanager
def going_on(what: str) -> Iterator[None]:
    """Note a failure and go on: a monitor that stops at the first one is no use."""
    try:
        yield
    except Exception:
        logger.exception("%s failed; continuing", what)


class Monitor:
    """Looks at the run now and then, and writes what it sees."""

    def __init__(
        self, run: RunFile, options: MonitorOptions, membership: Membership | None = None
    ) -> None:
        self.run, self.options, self.recipe = run, options, run.get_recipe()
        self.model = build_model(self.recipe)
        self.model.train(mode=False)
        self.live = LiveFolder(options.live)
        swarm = self.recipe.swarm
        self.tally = Tally(
            swarm.target_batch_size, self.live.last_step(), one_group=swarm.group_size is None
        )
        self._sequences = sum(line["samples"] for line in self.live.progress.read())
        saved = atomic.read_json(options.folder / "tally.json")
        if saved is not None:
            self.tally.restore(saved)
        self._begun_path = options.folder / "begun.json"
        begun = atomic.read_json(self._begun_path)
        self._begun: dict[str, float] = begun if isinstance(begun, dict) else {}
        self._reports: dict[str, PeerReport] = {}
        self._refused = validator.refused_records()
        self._remembered: tuple[str, ...] = ()
        self._last_line: ProgressLine | None = None
        identity = Identity.read(options.folder)
        self.network = Network(
            run.name,
            identity,
            run.initial_peers,
            options.endpoint,
            may_be_alone=True,
            membership=membership,
        )
        with going_on("offering to test others' reachability"):
            reachability.serve(self.network.dht)
        reports.serve(self.network.dht)
        shapes = [p.shape for p in ordered_parameters(self.model, self.recipe)]
        with self.network.forking():
            self.download = open_download(self.network, shapes)
        self._testimony = Testimony(NAME)
        self.helper = self._open_helper() if options.help is not Help.NEVER else None
        self._notice = Told(say)
        self.uploader = publish.Uploader(run, self.live, say) if run.checkpoints else None
        self._background = ThreadPoolExecutor(max_workers=1)
        self._job: Future[None] | None = None
        self._checkpoint_step = max((e.step for e in self.live.read_checkpoints()), default=0)
        self.network.dial(self._known_peers())
        self.live.start(self._make_card())
        self._write_status()

    def introduce(self) -> None:
        """Say how others get here."""
        addresses = ", ".join(f'"{address}"' for address in self.network.addresses())
        print(f"for the run file:  initial_peers = [{addresses}]")
        print(f"live data:         {self.options.live}", flush=True)

    def _open_helper(self) -> Helper:
        model = build_model(self.recipe).train()
        return Helper(self.network, self.recipe, model, self._testimony.note)

    def _look_after_callers(self) -> None:
        """Average for those behind routers where too few others can, and say how it stands."""
        sentences = [self.tally.describe_partition()]
        if (helper := self.helper) is not None:
            helper.is_active = self.options.help.is_needed(helper.callers, helper.reachable)
            sentences.append(describe(helper.callers, helper.reachable, helper.is_active))
        sentence = ". ".join(filter(None, sentences))
        if self._notice.say(sentence):
            self.live.notify(sentence)

    @property
    def is_over(self) -> bool:
        """True if the schedule has ended, or the given time or number of sequences."""
        if self.tally.last_step >= self.recipe.schedule.total_steps:
            return True
        if self.options.sequences is not None and self._sequences >= self.options.sequences:
            return True
        if self.options.minutes is None or not self._begun:
            return False
        since = self._begun.get("steps") or self._begun["reports"] + FIRST_STEP_SECONDS
        return time.time() - since > 60 * self.options.minutes

    def _note_beginning(self, of: str) -> None:
        """Remember when something began, by the clock: it goes on over a restart."""
        if of not in self._begun:
            self._begun[of] = time.time()
            atomic.write_json(self._begun_path, self._begun)

    def look(self) -> None:
        """Collect the volunteers' reports once and write what is new."""
        with going_on("helping volunteers behind routers"):
            self._look_after_callers()
        now = get_dht_time()
        self._take_reports(now)
        if self._reports:
            self._note_beginning("reports")
        with going_on("carrying out the moderators' orders"):
            self._publish_bans()
            self._follow_order()
        self.tally.observe(self._reports, now)
        self.tally.refuse(self._newly_refused())
        for line in self.tally.finished_lines(now):
            self.live.append(line)
            self._sequences += line.samples
            self._note_beginning("steps")
            self._last_line = line
            print(in_words(line), flush=True)
        self.live.write_peers(self.tally.contributors())
        atomic.write_json(self.options.folder / "tally.json", self.tally.state())
        self._write_status()
        with going_on("writing the address book"):
            self._remember_peers()
        due = self.tally.last_step >= self._checkpoint_step + self.recipe.swarm.checkpoint_every
        if due and (self._job is None or self._job.done()):
            self._job = self._background.submit(self._make_checkpoint)

    def _take_reports(self, now: float) -> None:
        """Take in the reports that came since the last look, and that of our own helper."""
        banned = self.network.bans.ids()
        told_now = reports.collect(self.network.dht, ANSWER_SECONDS)
        self._reports |= {key: one for key, one in told_now.items() if key not in banned}
        oldest = now - reports.EXPIRATION_SECONDS
        self._reports = {key: told for key, told in self._reports.items() if told.time > oldest}
        if self.helper is not None and self._testimony.recent:
            own = contributor_id(self.network.subkey)
            self._reports[own] = self._testimony.report(self.helper.step)

    def _publish_bans(self) -> None:
        """Tell the volunteers who is banned, again and again."""
        bans = self.network.bans
        if bans.path.exists():
            order = BanOrder(contributors=sorted(bans.ids()), time=get_dht_time())
            orders.publish(self.network.dht, self.run.name, self.network.subkey, order)

    def _follow_order(self) -> None:
        """Pass on the order to go back to a checkpoint, if there is one, again and again."""
        folder = self.options.folder
        order = rollback.carry_out(folder, self.live, self.tally.furthest_step())
        if order is None:
            return
        self.tally.ordered_step = order.step
        self._checkpoint_step = max(self._checkpoint_step, order.step)
        orders.publish(self.network.dht, self.run.name, self.network.subkey, order)

    def _newly_refused(self) -> int:
        """Count the records that our part of the DHT refused since the last look."""
        before, self._refused = self._refused, validator.refused_records()
        return self._refused - before

    def finish(self, stop: threading.Event) -> None:
        """End the run: the last reports, a last checkpoint, and the page becomes an archive."""
        step, deadline = self.tally.last_step, time.monotonic() + LAST_REPORTS_SECONDS
        while True:
            with going_on("the last look"):
                self.look()
            if not self.tally.lacks_reports(step) or time.monotonic() > deadline:
                break
            if stop.wait(self.recipe.swarm.poll_seconds):
                break
        if self._job is not None:
            self._job.result()
        if self.tally.last_step > self._checkpoint_step:
            self._make_checkpoint()
        if self.uploader is not None and not self.uploader.finish(UPLOAD_SECONDS):
            print("the last checkpoint is not on the Hub: python -m training publish", flush=True)
        self.live.finish(timestamp(get_dht_time()))

    def close(self) -> None:
        """Leave the network."""
        self._background.shutdown(wait=False, cancel_futures=True)
        if self.uploader is not None:
            self.uploader.close()
        if self.helper is not None:
            self.helper.close()
        self.download.shutdown()
        self.network.close()

    def _make_checkpoint(self) -> None:
        with going_on("making a checkpoint"):
            step, states = self._download_weights()
            if step <= self._checkpoint_step:
                return
            time_now = timestamp(get_dht_time())
            loss = self._last_line.loss if self._last_line else None
            drawing = None
            with going_on("packing the model for the page"):
                drawing = in_page.pack(self.model, self.recipe)
            checkpoint.publish(self.live, self.model, step, loss, time_now, states, drawing)
            self._checkpoint_step = step
            if self.uploader is not None:
                self.uploader.look()
            print(f"checkpoint of step {step}", flush=True)
            pictures = gallery.draw_prompts(self.model, self.recipe)
            self.live.add_samples(step, time_now, self.recipe.generation.prompts, pictures)

    def _download_weights(self) -> tuple[int, list[torch.Tensor]]:
        """Take the newest weights from a volunteer; their step, and the optimizer's states.

        Raises:
            RuntimeError: when no volunteer sent a usable state.
        """
        seconds = self.recipe.swarm.state_download_timeout
        own = self.helper.state(seconds) if self.helper and self.helper.is_active else None
        if own is not None:
            state: Any = own.as_loaded()
        else:
            state = self.download.load_state_from_peers(timeout=seconds)
        if state is None:
            raise RuntimeError("no volunteer sent a usable state")
        metadata, tensors = state
        parameters = ordered_parameters(self.model, self.recipe)
        with torch.no_grad():
            for parameter, tensor in zip(parameters, tensors[: len(parameters)], strict=True):
                parameter.copy_(tensor)
        return int(metadata["epoch"]), list(tensors[len(parameters) :])

    def _known_peers(self) -> tuple[str, ...]:
        book = atomic.read_json(self.options.folder / "peers.json") or []
        return (*book, *self.run.initial_peers)

    def _remember_peers(self) -> None:
        """Keep an address book, to find the volunteers again after a restart."""
        connections = self.network.connections()
        if connections and connections != self._remembered:
            atomic.write_json(self.options.folder / "peers.json", list(connections))
            self._remembered = connections

    def _write_status(self) -> None:
        content: dict[str, Any] = {
            "started": True,
            "addresses": list(self.network.addresses()),
            "step": self.tally.last_step,
            "training": self.tally.count(PeerState.TRAINING),
        }
        status_file.write(self.options.folder, content)

    def _make_card(self) -> RunCard:
        recipe = self.recipe
        schedule = asdict(recipe.schedule) | {
            "target_batch_size": recipe.swarm.target_batch_size,
            "learning_rate": recipe.optimizer.learning_rate,
            "corners": corners(recipe.schedule, recipe.optimizer.learning_rate),
        }
        return RunCard(
            name=self.run.name,
            title=self.run.title or self.run.name,
            recipe=recipe.name,
            model=asdict(recipe.model),
            parameters=sum(parameter.numel() for parameter in self.model.parameters()),
            schedule=schedule,
            start=timestamp(get_dht_time()),
            join=f"python -m training join {public_name(self.options.source)}",
            links=self.run.links,
        )


def public_name(source: str) -> str:
    """Give a run file as others would name it: paths of this machine say nothing to them."""
    return source if "://" in source else Path(source).name


def in_words(line: ProgressLine) -> str:
    """A step in one line."""
    loss = "no loss reported" if line.loss is None else f"loss {line.loss:.3f}"
    return (
        f"step {line.step}: {loss}, {line.samples} samples, "
        f"{line.samples_per_second:.0f} a second, "
        f"{line.training} training, {line.syncing} syncing, {line.left} left"
    )
