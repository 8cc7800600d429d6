"""A rehearsal: authority, monitor and volunteers as separate processes on this machine.

Everything is as in a real run, only the distances are short and the accounts are made up. One
volunteer is killed after a third of the training and another one joins at half of it, unless the
rehearsal is to be calm.
"""

import shlex
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import SystemRandom
from typing import Any, TypeVar

from calculator.errors import InputError
from training.authority.standin import ORGANISATION, RehearsedAuthority
from training.monitor.hosting import describe
from training.monitor.live_page import LivePage
from training.run import atomic, recipes, status, supervisor
from training.run.live import LiveFolder
from training.run.patience import told
from training.run.recipes import LanguageSettings, find_recipe
from training.run.runfile import RunFile
from training.run.supervisor import COMMAND, Worker

NAMES = ("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi")
# The learning rate should end where the time does: pictures are clear only after it has come down.
SECONDS_A_STEP = 2.4  # of three volunteers on two cores that have nothing else to do
CLOSING_SECONDS = 2.0  # of a round with local steps, beside these, on a busy machine
MIN_STEPS = 10
START_SECONDS = 240.0  # for a busy machine; includes one retry of a start that hangs
NEWS_SECONDS = 20.0  # between two lines on how far the run is
GIVE_UP_SECONDS = 180.0  # grace period for the monitor to end the run
CANDIDATES = 128  # pictures drawn of each caption at the end, as the original run did
DEATH, LATE_JOIN = 1 / 3, 1 / 2  # of the training


@dataclass(frozen=True)
class RehearsalOptions:
    """Options of a rehearsal.

    Attributes:
        minutes: of training, from the first step on; a fast machine makes all steps in less.
        peers: volunteers at the start.
        recipe: what they train: a recipe's name, or a TOML file that describes one.
        folder: where everything goes; it must not hold another rehearsal.
        incidents: whether a volunteer is killed and another one joins late.
        is_open: whether anybody may join without an account, and so a browser's tab, too.
    """

    minutes: float = 5.0
    peers: int = 3
    recipe: str = "rehearsal"
    folder: Path | None = None
    incidents: bool = True
    is_open: bool = False

    def __post_init__(self) -> None:
        find_recipe(self.recipe)
        if not self.minutes > 0:
            raise InputError("minutes", self.minutes, "must be more than 0")
        if self.peers < 1:
            raise InputError("peers", self.peers, "must be at least 1")


def rehearse(options: RehearsalOptions) -> int:
    """Run a whole swarm here; 0 when it trained and drew pictures."""
    return run_through(Rehearsal, options)[0]


def run_through(kind: "Kind[R]", options: RehearsalOptions) -> tuple[int, "R"]:
    """Run a rehearsal of a kind: 0 when it trained and drew pictures, and what it was."""
    folder = options.folder or Path("rehearsals") / f"{datetime.now():%Y-%m-%d-%H%M%S}"
    if (folder / "run.toml").exists():
        raise InputError("folder", folder, "must not hold another rehearsal")
    stop = threading.Event()
    supervisor.stop_on_signals(stop)
    rehearsal = kind(options, folder.resolve(), stop)
    try:
        rehearsal.run()
    finally:
        rehearsal.stop_all()
    return rehearsal.conclude(), rehearsal


@dataclass
class Rehearsal:
    """The processes of a rehearsal and what is seen of them."""

    options: RehearsalOptions
    folder: Path
    stop: threading.Event
    volunteers: dict[str, Worker] = field(default_factory=dict)
    data: str = ""
    page: LivePage | None = None
    shown_at: float = 0.0
    first_line_at: float | None = None
    _accounts: dict[str, dict[str, str]] = field(default_factory=dict)  # kept over a return

    def __post_init__(self) -> None:
        self.run_file = self.folder / "run.toml"
        self.live = LiveFolder(self.folder / "live")
        self.steps = count_steps(self.options)
        port = free_port()
        is_sparse = find_recipe(self.options.recipe).sparse is not None
        self.exchange = f"http://127.0.0.1:{port}" if is_sparse else ""
        self.planned = [name_of(index) for index in range(self.options.peers + 1)]
        monitor = [
            *COMMAND,
            "monitor",
            str(self.run_file),
            "--folder",
            str(self.folder / "monitor"),
        ]
        monitor += ["--live", str(self.live.path), "--minutes", str(self.options.minutes)]
        monitor += ["--host", "127.0.0.1", "--port", str(port)]
        if not self.options.is_open:
            monitor += ["--authority-folder", str(self.folder / "authority")]
        self.monitor = Worker(monitor, self.folder / "monitor", 1, self._log("monitor"))
        self.authority = RehearsedAuthority(
            self.run_file, self.folder / "authority", free_port(), self._log("authority")
        )

    def run(self) -> None:
        """Start everybody and look on until the monitor ends the run."""
        recipe, changes = recipes.describe(self.options.recipe)
        run = RunFile(
            name="rehearsal",
            recipe=recipe,
            changes=changes,
            title="Rehearsal on one machine",
            steps=self.steps,
            live=str(self.live.path),
            exchange=self.exchange,
            data=self.data,
        )
        if not self.options.is_open:
            run = replace(
                run,
                organisation=ORGANISATION,
                authority=self.authority.address,
                authority_key=self.authority.key,
            )
        atomic.write_bytes(self.run_file, run.to_toml().encode())
        print("starting the organizer's programs, in some seconds", flush=True)
        for worker in (*self._authorities.values(), self.monitor):
            worker.start()
        for name, worker in self._authorities.items():
            self._await_start(worker, name)
        told = self._await_start(self.monitor, "the monitor")
        run = replace(run, initial_peers=tuple(told["addresses"]))
        atomic.write_bytes(self.run_file, run.to_toml().encode())
        for name in self.planned[: self.options.peers]:
            self._start(name)
        self.page = LivePage("rehearsal", run.title, self.live.path)
        print(self.page.describe())
        print(f"logs:      {self.folder / 'logs'}")
        self._invite()
        print(f"{self.options.peers} volunteers start; the first step follows", flush=True)
        self._look_on()

    def stop_all(self) -> None:
        """End all processes, and what they started."""
        workers = [*self.volunteers.values(), self.monitor]
        with ThreadPoolExecutor(max_workers=len(workers)) as pool:
            list(pool.map(Worker.stop, workers))
        if self.page is not None:
            self.page.close()
        self.authority.stop()

    def conclude(self) -> int:
        """Say how it ended."""
        lines = self.live.progress.read()
        if not lines:
            print(f"the rehearsal made no global step; the logs are in {self.folder}", flush=True)
            return 1
        first, last = lines[0], lines[-1]
        print(f"\n{len(lines)} steps, loss {_loss(first)} -> {_loss(last)}")
        for who in self.live.read_peers():
            print(f"  {who.name:<12} {who.samples:>8,} samples in {who.steps:>4} steps")
        print(f"live data: {self.live.path}")
        try:
            with supervisor.interruptible():
                self._show_samples()
        except KeyboardInterrupt:
            print("stopped while drawing; the live data are complete", flush=True)
            return 1
        except InputError as error:
            print(f"the last checkpoint could not be used: {error}", flush=True)
            return 1
        return 0

    def _show_samples(self) -> None:
        """Show what the newest checkpoint makes of the prompts, as anybody could see it."""
        recipe = find_recipe(self.options.recipe)
        with told("loading the newest checkpoint"):
            from transformers.utils.logging import disable_progress_bar

            from training.model.language import continue_texts
            from training.pictures import generate

            disable_progress_bar()  # of the reading of checkpoints
            model, usual = generate.load_model(str(self.live.path)), recipe.generation
        if isinstance(recipe.model, LanguageSettings):
            for row in continue_texts(model, recipe, usual.prompts):
                print(f"  {row[0]}", flush=True)
            return
        settings = replace(usual, images_per_prompt=CANDIDATES, keep=usual.images_per_prompt)
        with told(f"drawing {CANDIDATES} pictures of each caption"):
            drawing = generate.illustrate(model, usual.prompts, recipe, settings)
        sheet = self.folder / "pictures.png"
        drawing.save(sheet)
        print(f"pictures:  {sheet}, {drawing.share} of each caption", flush=True)

    def _invite(self) -> None:
        """Tell how to take part from another terminal, and where a browser's tab can."""
        print("join from another terminal:")
        if account := [f"{name}={value}" for name, value in self._account("guest").items()]:
            print(f"  {' '.join(account)} \\")
        words = [_near(Path(sys.executable)), "-m", "training", "join", _near(self.run_file)]
        print(f"  {shlex.join(words)} --host 127.0.0.1", flush=True)
        if (atomic.read_json(self.live.path / "run.json") or {}).get("tab"):
            print(f"or from a browser's tab:     {self.exchange}/live/?run=rehearsal#live-train")

    @property
    def _authorities(self) -> dict[str, Worker]:
        """None in an open run, which asks for no account."""
        return {} if self.options.is_open else {"the authority": self.authority.worker}

    def _account(self, name: str) -> dict[str, str]:
        """The environment with which a volunteer joins."""
        return {} if self.options.is_open else self.authority.make_user(name)

    def _look_on(self) -> None:
        deadline: float | None = None
        while not self.stop.wait(1.0) and self.monitor.exit_code is None:
            self._show_progress()
            self._revive()
            if self.first_line_at is None:
                continue
            seconds = 60 * self.options.minutes
            passed = time.monotonic() - self.first_line_at
            self._stage(passed, self._share_done(passed))
            deadline = deadline or self.first_line_at + seconds + GIVE_UP_SECONDS
            if time.monotonic() > deadline:
                print("the monitor did not end the run in time", flush=True)
                return
        self._show_progress()

    def _share_done(self, seconds: float) -> float:
        """Fraction of the training that is over, that many seconds after the first step.

        It ends with its time or with its steps, whichever is sooner; so the further one counts.
        """
        return max(seconds / (60 * self.options.minutes), self.live.last_step() / self.steps)

    def _stage(self, _seconds: float, share: float) -> None:
        """Let happen what is due so many seconds after the first step, after such a share."""
        if self.options.incidents:
            self._stage_incidents(share)

    def _stage_incidents(self, share: float) -> None:
        victim, late = self.planned[min(1, self.options.peers - 1)], self.planned[-1]
        if share > DEATH and victim in self.volunteers and self.options.peers > 1:
            print(f"-- {victim}'s machine crashes during its work", flush=True)
            self.volunteers.pop(victim).kill()
        if share > LATE_JOIN and late not in self.volunteers:
            print(f"-- {late} joins late", flush=True)
            self._start(late)

    def _start(self, name: str, program: Sequence[str] = COMMAND) -> None:
        folder = self.folder / "volunteers" / name
        command = [*program, "join", str(self.run_file), "--name", name, "--folder", str(folder)]
        command += ["--host", "127.0.0.1"]
        if name not in self._accounts:
            self._accounts[name] = self._account(name)
        account = self._accounts[name]
        self.volunteers[name] = Worker(command, folder, 1, self._log(name), account)
        self.volunteers[name].start()

    def _revive(self) -> None:
        """Start again whoever hangs in its start or has crashed."""
        everybody = self.volunteers | self._authorities
        for name, worker in everybody.items():
            if worker.hangs or worker.exit_code not in (None, 0):
                print(f"-- {name} did not start or ended unexpectedly: again", flush=True)
                worker.kill()
                worker.start()

    def _await_start(self, worker: Worker, who: str) -> dict[str, Any]:
        deadline = time.monotonic() + START_SECONDS
        while not worker.has_started:
            if worker.exit_code is not None or worker.hangs:
                worker.kill()
                worker.start()
            if self.stop.wait(0.5) or time.monotonic() > deadline:
                raise InputError("rehearsal", who, f"must start; see {worker.log}")
        return status.read(worker.folder)

    def _show_progress(self) -> None:
        """Say now and then how far the run is; the page shows each step."""
        lines = self.live.progress.read()
        if not lines:
            return
        self.first_line_at = self.first_line_at or time.monotonic()
        if time.monotonic() - self.shown_at >= NEWS_SECONDS:
            self.shown_at = time.monotonic()
            print(describe(lines[-1], self.steps), flush=True)

    def _log(self, name: str) -> Path:
        path = self.folder / "logs" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


R = TypeVar("R", bound=Rehearsal)
Kind = Callable[[RehearsalOptions, Path, threading.Event], R]


def count_steps(options: RehearsalOptions) -> int:
    """Steps of the schedule that fit into the time."""
    local = find_recipe(options.recipe).sparse
    seconds = SECONDS_A_STEP if local is None else local.seconds + CLOSING_SECONDS
    return max(MIN_STEPS, round(options.minutes * 60 / seconds))


def name_of(index: int) -> str:
    """Give a volunteer's name."""
    return NAMES[index] if index < len(NAMES) else f"volunteer-{index + 1}"


def free_port() -> int:
    """Find a TCP port that is free on this machine right now.

    It is none that an outgoing connection would get before it is used: systems give those ports
    from 32,768 on (Linux) or 49,152 on (RFC 6335, section 6).

    Raises:
        OSError: when none of a hundred ports is free.
    """
    *ports, last = SystemRandom().sample(range(10_240, 32_768), 100)
    for port in ports:
        with suppress(OSError):
            return _bound(port)
    return _bound(last)


def _bound(port: int) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
    return port


def _loss(line: dict[str, Any]) -> str:
    return "  -  " if line["loss"] is None else f"{line['loss']:.3f}"


def _near(path: Path) -> str:
    """The path as it is typed in this folder."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
