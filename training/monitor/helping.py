"""`python -m training help RUN`: averages for volunteers behind routers, from any open port.

The monitor does the same where too few volunteers can be called. Whoever helps computes nothing
and gets nothing; what it saw of the others' work counts as a witness's word.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from training.access.entrance import admitted
from training.averaging.helper import Helper, HelperStuckError
from training.model.build import build_model
from training.network.connection import Endpoint, Identity, Network, alone_in
from training.records import reports
from training.records.orders import moderators_of
from training.run import status as status_file
from training.run.live import PeerState
from training.run.runfile import RunFile
from training.volunteer.contribution import Contribution

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
ENOUGH = 2  # volunteers who can be called average without help


class Help(StrEnum):
    """Conditions under which a monitor averages for volunteers behind routers."""

    AUTO = "auto"  # while there are some, and fewer than two others who can be called
    ALWAYS = "always"
    NEVER = "never"

    def is_needed(self, callers: int, reachable: int) -> bool:
        """True if it should help, by how many volunteers only call and how many can be called."""
        if self is Help.AUTO:
            return callers > 0 and reachable < ENOUGH
        return self is Help.ALWAYS


def describe(callers: int, reachable: int, helping: bool) -> str:
    """A sentence on how the volunteers reach each other; empty if all is normal."""
    if not callers or reachable >= ENOUGH:
        return ""
    everybody = callers + reachable
    who = f"all {everybody} volunteers are" if not reachable else f"{callers} of {everybody} are"
    if everybody == 1:
        who = "the only volunteer is"
    if helping:
        return f"{who} behind routers: the organizers average for them"
    if reachable:
        return f"{who} behind routers: one other volunteer averages for them"
    return (
        f"{who} behind routers, and no one averages for them, so the run makes no steps. Anyone "
        "with an open port can help: python -m training help RUN"
    )


@dataclass(frozen=True)
class HelperOptions:
    """Options of a helper.

    Attributes:
        name: how the helper appears. folder: for identity, status and log.
    """

    name: str
    folder: Path
    endpoint: Endpoint


def help_out(run: RunFile, options: HelperOptions, stop: threading.Event) -> None:
    """Average for the others until the schedule is over or `stop` is set.

    Raises:
        CannotConnectError: when no entry point answers.
        AccessRefusedError: when the run's authority does not admit us, or not any more.
        InputError: when the folder is in use.
    """
    with alone_in(options.folder):
        identity = Identity.read(options.folder)
        with admitted(run, identity.key, options.folder, _say, stop) as membership:
            network = Network(
                run.name, identity, run.initial_peers, options.endpoint, membership=membership
            )
            recipe, testimony = run.get_recipe(), Contribution(options.name)
            helper = Helper(network, recipe, build_model(recipe).train(), testimony.witness)
            helper.is_active = True
            _say(f"helping; others reach this machine at {', '.join(network.addresses())}")
            try:
                monitors = moderators_of(run)
                total = recipe.schedule.total_steps
                _go_on(network, monitors, helper, testimony, options.folder, stop, total)
            finally:
                helper.close()
                network.close()


def _go_on(
    network: Network,
    monitors: frozenset[str],
    helper: Helper,
    testimony: Contribution,
    folder: Path,
    stop: threading.Event,
    total_steps: int,
) -> None:
    told = Told(_say)
    shown = -1
    while helper.step < total_steps:
        if helper.is_stuck:
            raise HelperStuckError
        content = {"started": True, "step": helper.step, "addresses": list(network.addresses())}
        status_file.write(folder, content)
        try:
            network.keep_entry_points()
            report = testimony.report(PeerState.HELPING, helper.step, 0.0)
            reports.hand_in(network.dht, monitors, report, network.membership)
        except (OSError, TimeoutError) as error:
            logger.warning("the network daemon does not respond: %r", error)
        told.say(describe(helper.callers, helper.reachable, helping=True))
        if helper.step != shown:
            shown = helper.step
            _say(f"step {shown} of {total_steps}")
        if stop.wait(HEARTBEAT_SECONDS):
            return


@dataclass
class Told:
    """Says a sentence when it differs from the last one."""

    speak: Callable[[str], None]
    last: str = ""
    since: float = field(default_factory=time.monotonic)

    def say(self, sentence: str) -> bool:
        """Say it if it is news; returns true if it was."""
        if sentence == self.last:
            return False
        self.last, self.since = sentence, time.monotonic()
        if sentence:
            self.speak(sentence)
        return True


def _say(sentence: str) -> None:
    print(sentence, flush=True)
