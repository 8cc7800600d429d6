"""The inside of a supervised process: logs, signals, and its end."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from hivemind.utils.logging import use_hivemind_log_handler
from transformers.utils.logging import disable_progress_bar

from calculator.errors import InputError
from training.access.causes import AccessRefusedError
from training.network.connection import CannotConnectError
from training.run import supervisor

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def run(work: Callable[[threading.Event], None], folder: Path) -> None:
    """Do the work until it is done or the process is asked to end, then end the process.

    Does not return: threads of the library may hang, and must not keep the process alive.
    The log goes to ``log.txt`` in `folder`.
    """
    _start_logging(folder)
    stop = threading.Event()
    supervisor.stop_on_signals(stop)
    supervisor.stop_without_supervisor(stop.set)
    code = _do(work, stop)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def end_within(seconds: float, why: str, code: int) -> None:
    """End this process after so many seconds, whatever its threads are waiting for then."""

    def end() -> None:
        print(why, file=sys.stderr, flush=True)
        logging.shutdown()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _do(work: Callable[[threading.Event], None], stop: threading.Event) -> int:
    try:
        work(stop)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return supervisor.INPUT_ERROR
    except AccessRefusedError as error:
        print(f"access refused: {error}", file=sys.stderr)
        return supervisor.CANNOT_CONNECT if error.passes else supervisor.NOT_ADMITTED
    except CannotConnectError as error:
        print(f"cannot join the run: {error}", file=sys.stderr)
        return supervisor.CANNOT_CONNECT
    except Exception as error:
        logging.getLogger(__name__).exception("ended unexpectedly")
        print(f"ended unexpectedly: {error!r} (more in the log)", file=sys.stderr)
        return 1
    return 0


def _start_logging(folder: Path) -> None:
    use_hivemind_log_handler("nowhere")
    disable_progress_bar()  # of the reading and writing of checkpoints
    logging.captureWarnings(capture=True)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log.txt"
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, filename=log, force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)
