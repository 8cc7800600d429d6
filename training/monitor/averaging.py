"""The monitor of a run in which volunteers average: a fixed entry point that counts.

When it dies the run goes on without it; started again it finds the volunteers it knew.
"""

import logging
import threading
import time

import torch
from hivemind.utils import get_dht_time

from training.access.membership import Membership
from training.averaging.helper import Helper
from training.averaging.optimizer import ordered_parameters
from training.model.build import build_model
from training.monitor import rollback
from training.monitor.monitor import Monitor, MonitorOptions, going_on, say
from training.monitor.tally import Tally
from training.network import reachability
from training.network.connection import Identity, Network
from training.records import orders, reports, validator
from training.records.orders import BanOrder, EndOrder
from training.records.owners import contributor_id
from training.records.reports import PeerReport
from training.run import atomic
from training.run.live import PeerState
from training.run.runfile import RunFile
from training.volunteer.contribution import Contribution

logger = logging.getLogger(__name__)

NAME = "the monitor"
ANSWER_SECONDS = 15.0
LAST_REPORTS_SECONDS = 45.0  # at the end of a run, for those who were slow in its last step
GOODBYE_SECONDS = 12.0  # of a run that ends early, for a heartbeat of each volunteer to hear of it


class AveragingMonitor(Monitor):
    """Counts by the volunteers' reports, and takes the weights from one of them."""

    def __init__(
        self, run: RunFile, options: MonitorOptions, membership: Membership | None = None
    ) -> None:
        super().__init__(run, options)
        swarm = self.recipe.swarm
        self.tally = Tally(swarm.target_batch_size, self.step)
        saved = atomic.read_json(options.folder / "tally.json")
        if saved is not None:
            self.tally.restore(saved)
        self._reports: dict[str, PeerReport] = {}
        self._refused = validator.refused_records()
        self._remembered: tuple[str, ...] = ()
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
        self._testimony = Contribution(NAME)
        model = build_model(self.recipe).train()
        self.helper = Helper(self.network, self.recipe, model, self._testimony.witness)
        self._notice = ""
        self.network.dial(self._known_peers())
        size, rate = swarm.target_batch_size, self.recipe.optimizer.learning_rate
        self.open_page({"target_batch_size": size, "learning_rate": rate})
        self._write_status()

    def introduce(self) -> None:
        """Say how others get here."""
        addresses = ", ".join(f'"{address}"' for address in self.network.addresses())
        print(f"for the run file:  initial_peers = [{addresses}]")
        print(f"live data:         {self.options.live}", flush=True)

    def _look_after_callers(self) -> None:
        """Average for those behind routers where too few others can, and say how it stands."""
        helper, tracker = self.helper, self.helper.optimizer.tracker
        self.is_stuck = helper.is_stuck
        callers, reachable = len(tracker.callers), len(tracker.reachable)
        helper.is_active = is_help_needed(callers, reachable)
        sentences = [self.tally.describe_partition(), describe_callers(callers, reachable)]
        sentence = ". ".join(filter(None, sentences))
        if sentence != self._notice:
            self._notice = sentence
            self.live.notify(sentence)
            if sentence:
                say(sentence)

    def look(self) -> None:
        """Collect the volunteers' reports once and write what is new."""
        with going_on("helping volunteers behind routers"):
            self._look_after_callers()
        now = get_dht_time()
        self._take_reports(now)
        if self._reports:
            self.note_beginning("reports")
        with going_on("carrying out the moderators' orders"):
            self._publish_bans()
            self._follow_order()
        self.tally.observe(self._reports, now)
        self.tally.refuse(self._newly_refused())
        for line in self.tally.finished_lines(now):
            self.write(line)
        self.live.write_peers(self.tally.contributors())
        atomic.write_json(self.options.folder / "tally.json", self.tally.state())
        self._write_status()
        with going_on("writing the address book"):
            self._remember_peers()
        self.publish_if_due()

    def _take_reports(self, now: float) -> None:
        """Take in the reports that came since the last look, and that of our own helper."""
        banned = self.network.bans.ids()
        told_now = reports.collect(self.network.dht, ANSWER_SECONDS)
        self._reports |= {key: one for key, one in told_now.items() if key not in banned}
        oldest = now - reports.EXPIRATION_SECONDS
        self._reports = {key: told for key, told in self._reports.items() if told.time > oldest}
        if self._testimony.recent:
            own, step = contributor_id(self.network.subkey), self.helper.optimizer.local_epoch
            self._reports[own] = self._testimony.report(PeerState.HELPING, step, 0.0)

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

    def _hear_last(self, stop: threading.Event) -> None:
        order, step, began = EndOrder(time=get_dht_time()), self.tally.last_step, time.monotonic()
        is_early = self.step < self.recipe.schedule.total_steps  # then only the order says it
        while True:
            with going_on("telling the volunteers that the run is over"):
                orders.publish(self.network.dht, self.run.name, self.network.subkey, order)
            with going_on("the last look"):
                self.look()
            seconds = time.monotonic() - began
            waits = self.tally.lacks_reports(step) and seconds < LAST_REPORTS_SECONDS
            if not waits and not (is_early and seconds < GOODBYE_SECONDS):
                break
            if stop.wait(self.recipe.swarm.poll_seconds):
                break

    def close(self) -> None:
        """Leave the network."""
        super().close()
        self.helper.close()
        self.network.close()

    def _take_weights(self) -> tuple[int, list[torch.Tensor]]:
        """Take the newest weights from a volunteer; their step, and the optimizer's states.

        Raises:
            RuntimeError: when no volunteer sent a usable state.
        """
        state = self.helper.state(self.recipe.swarm.state_download_timeout)
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
        self.write_status(self.network.addresses(), self.tally.count(PeerState.TRAINING))


ENOUGH = 2  # volunteers who can be called average without help


def is_help_needed(callers: int, reachable: int) -> bool:
    """True if it should, by how many volunteers only call and how many can be called."""
    return callers > 0 and reachable < ENOUGH


def describe_callers(callers: int, reachable: int) -> str:
    """A sentence on how the volunteers reach each other; empty if all is normal."""
    if not is_help_needed(callers, reachable):
        return ""
    everybody = callers + reachable
    who = f"all {everybody} volunteers are" if not reachable else f"{callers} of {everybody} are"
    if everybody == 1:
        who = "the only volunteer is"
    return f"{who} behind routers: the organizers average for them"
