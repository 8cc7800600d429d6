"""`python -m training host RUN`: an organizer's one command.

It starts the monitor, the authority where the run file names one, and the run's live page, keeps
them running, and writes the run file that volunteers get. What they write goes to log files.
"""

import json
import shlex
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from training.access.grants import public_key_text
from training.authority.command import DEFAULT_PORT
from training.authority.keys import read_key
from training.monitor.live_page import SITE, LivePage
from training.run import atomic, download, status
from training.run.live import LiveFolder
from training.run.patience import told
from training.run.runfile import RunFile
from training.run.supervisor import COMMAND, Worker, supervise

NEWS_SECONDS = 30.0  # between two lines on how far the run is
LOOK_SECONDS = 0.5
# The site's copy says where the code comes from.
NOTEBOOKS = [folder / "notebooks" / "join.ipynb" for folder in (SITE, SITE.with_name("docs"))]


@dataclass(frozen=True)
class HostOptions:
    """Options of an organizer.

    Attributes:
        source: path or address of the run file.
        folder: for the monitor's and the authority's folders, the logs, and the file to send.
        live: of the live data.
        monitor: further options of `python -m training monitor`.
        page_port: of the live page, on this machine alone.
    """

    source: str
    folder: Path
    live: Path
    monitor: Sequence[str] = ()
    page_port: int = 0


def host(run: RunFile, options: HostOptions, stop: threading.Event) -> int:
    """Organize a run until it is over or `stop` is set; the monitor's exit code.

    Raises:
        InputError: the page's port is taken.
    """
    page = LivePage(run.name, run.title or run.name, options.live, options.page_port)
    workers = _make_workers(run, options)
    codes: dict[str, int] = {}

    def keep(name: str) -> None:
        codes[name] = supervise(workers[name], stop)
        stop.set()  # the others end with it

    threads = [threading.Thread(target=keep, args=(name,)) for name in workers]
    try:
        for thread in threads:
            thread.start()
        print(f"starting {run.name}, in some seconds; logs: {options.folder / 'logs'}", flush=True)
        _watch(run, options, workers["monitor"], page, stop)
    finally:
        stop.set()
        with told("ending the monitor"):
            for thread in threads:
                thread.join()
        page.close()
    if LiveFolder(options.live).is_finished():
        print("the run is over", flush=True)
    return max(codes.values(), default=0)


def _make_workers(run: RunFile, options: HostOptions) -> dict[str, Worker]:
    folder = options.folder
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    command = [*COMMAND, "monitor", options.source, "--folder", str(folder / "monitor")]
    command += ["--live", str(options.live), *options.monitor]
    workers = {}
    if run.authority:
        own = folder / "authority"
        read_key(own)  # before the monitor looks for it
        command += ["--authority-folder", str(own)]
        serving = [*COMMAND, "authority", options.source, "serve", "--folder", str(own)]
        serving += ["--port", str(_authority_port(run))]
        workers["authority"] = Worker(serving, own, log=logs / "authority.txt")
    workers["monitor"] = Worker(command, folder / "monitor", log=logs / "monitor.txt")
    return workers


def _authority_port(run: RunFile) -> int:
    """The port to listen on: an address elsewhere is that of a proxy before this machine."""
    port = urlparse(run.authority).port if download.is_local(run.authority) else None
    return port or DEFAULT_PORT


def _watch(
    run: RunFile, options: HostOptions, monitor: Worker, page: LivePage, stop: threading.Event
) -> None:
    """Say how to join once the monitor is there, then now and then how far the run is."""
    while not monitor.has_started:
        if stop.wait(LOOK_SECONDS):
            return
    sent = options.folder / "run.toml"
    complete = make_run_file(run, status.read(monitor.folder), options.folder)
    atomic.write_bytes(sent, complete.to_toml().encode())
    print(page.describe())
    print(f"join from another terminal: python -m training join {shlex.quote(str(sent))}")
    print("  (each further volunteer on this machine needs a --folder of its own)")
    print(f"send to volunteers: {sent}; they type: python -m training join run.toml")
    if (template := next(filter(Path.is_file, NOTEBOOKS), None)) is not None:
        notebook = sent.with_name("join.ipynb")
        atomic.write_bytes(notebook, make_notebook(template.read_text("utf-8"), complete).encode())
        print(f"or, for Colab and Kaggle: {notebook}")
    for sentence in warnings(complete):
        print(f"note: {sentence}")
    print("waiting for volunteers; Ctrl-C ends this, and the same command goes on", flush=True)
    live, shown, total = LiveFolder(options.live), 0, complete.get_recipe().schedule.total_steps
    while not stop.wait(NEWS_SECONDS if shown else LOOK_SECONDS):
        lines = live.progress.read()
        if lines and lines[-1]["step"] != shown:
            shown = lines[-1]["step"]
            print(describe(lines[-1], total), flush=True)


def describe(line: dict[str, Any], total: int) -> str:
    """A line for the terminal: step, loss and volunteers."""
    loss = "" if line["loss"] is None else f"loss {line['loss']:.3f}, "
    who = f"{line['training']} training"
    return f"{time.strftime('%H:%M')}  step {line['step']:,} of {total:,}, {loss}{who}"


def make_run_file(run: RunFile, told: dict[str, Any], folder: Path) -> RunFile:
    """The run file for volunteers: the organizer's, with what the monitor knows by now.

    Args:
        told: the monitor's status.
        folder: of `host`, with the authority's key in it.
    """
    run = replace(run, initial_peers=run.initial_peers or tuple(told["addresses"]))
    exchange = told.get("exchange", "")
    if exchange and not run.exchange and download.is_local(exchange):
        run = replace(run, exchange=exchange)
    if run.authority and not run.authority_key:
        run = replace(run, authority_key=public_key_text(read_key(folder / "authority")))
    return run


def make_notebook(template: str, run: RunFile) -> str:
    """The notebook for volunteers without a GPU, with the run file in it."""
    notebook = json.loads(template)
    cells = notebook["cells"]
    tags = [cell["metadata"].get("tags", []) for cell in cells]
    form = next(place for place, names in enumerate(tags) if "parameters" in names)
    source = f"%%writefile run.toml\n{run.to_toml()}"
    cells.insert(form, cells[form] | {"id": "run-file", "metadata": {}, "source": source})
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def warnings(run: RunFile) -> list[str]:
    """Sentences on what volunteers elsewhere would miss in a run file."""
    found, has_local_steps = [], run.get_recipe().sparse is not None
    is_here = all("/127.0.0.1/" in one or "/::1/" in one for one in run.initial_peers)
    if not any(f"/{kind}" in one for one in run.initial_peers for kind in ("ip4", "ip6", "dns")):
        if not has_local_steps:
            found.append("no address of this machine is known: name one with --announce")
        elif not run.exchange or download.is_local(run.exchange):
            found.append("volunteers elsewhere need `exchange`, the https address of this host")
    elif is_here:
        found.append("only this machine is named: for others, give --announce an address of yours")
    if not (run.live or has_local_steps or is_here):
        found.append("the run file names no `live`: newcomers get the weights from peers alone")
    return found
