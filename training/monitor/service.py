"""`python -m training monitor`: keeps a run's books until it is over.

It does not train. Started again it has the same identity and port and continues from its files.
"""

import threading
from functools import partial

from training.access.membership import Membership, admitted
from training.authority.keys import find_authority_folder, sign_own
from training.averaging.helper import HelperStuckError
from training.monitor.averaging import AveragingMonitor
from training.monitor.monitor import Monitor, MonitorOptions, going_on, say
from training.monitor.rounds import RoundsMonitor
from training.network.connection import Identity, alone_in
from training.run.runfile import RunFile


def watch(run: RunFile, options: MonitorOptions, stop: threading.Event) -> None:
    """Look after a run until it is over or `stop` is set.

    Raises:
        CannotConnectError: when the network daemon does not start, say because the port is taken.
        AccessRefusedError: when the run's authority does not admit us, or not any more.
        InputError: when the folder is in use, the port is taken, or an option has no use here.
    """
    with alone_in(options.folder):
        identity = Identity.read(options.folder)
        own = find_authority_folder(run, options.authority_folder)
        ask = partial(sign_own, own, run.name, identity.public_key) if own else None
        with admitted(run, identity.key, options.folder, say, stop, ask) as membership:
            monitor = _open(run, options, identity, membership)
            monitor.introduce()
            try:
                while not (stop.is_set() or monitor.is_over):
                    with going_on("looking at the run"):
                        monitor.look()
                    if monitor.is_stuck:
                        raise HelperStuckError
                    stop.wait(monitor.pause)
                if not stop.is_set():
                    monitor.finish(stop)
            finally:
                monitor.close()


def _open(
    run: RunFile, options: MonitorOptions, identity: Identity, membership: Membership | None
) -> Monitor:
    if run.get_recipe().sparse:
        return RoundsMonitor(run, options, identity.key, membership)
    return AveragingMonitor(run, options, membership)
