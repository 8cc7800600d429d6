"""Real processes that train together on the CPU, forked from one that has PyTorch loaded.

It has the counting device, too. Its arguments are two descriptors of pipes: a fork of its own, the
`measurer`, reads from one and answers to the other. Each line of input is JSON: how many processes,
a folder of their own, and the words of a step or the path of a program. Each process leaves what it
prints in the folder, and the line of output is the list of their exit statuses. They talk over
gloo.
"""

import gc
import json
import os
import runpy
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from tests.validation import measurer
from validation import counting_device

MOST_SECONDS: Final = 300
Abreast = Callable[..., None]  # the fixture that asks for processes


def main(asked: str, answered: str) -> None:
    counting_device.load()
    import peft  # noqa: F401
    import torch._dynamo
    import torch.distributed.fsdp
    import torch.distributed.pipelining  # noqa: F401
    from transformers.models.llama import modeling_llama  # noqa: F401

    import validation.measure  # noqa: F401

    gc.collect()
    gc.freeze()  # no fork goes through what is loaded here again
    with os.fdopen(int(asked)) as questions, os.fdopen(int(answered), "w") as answers:
        if not os.fork():
            os.dup2(2, 1)  # what libraries print is no answer
            measurer.serve(questions, answers)
            os._exit(0)
    for line in sys.stdin:
        print(json.dumps(_side_by_side(json.loads(line))), flush=True)


def _side_by_side(asked: dict[str, Any]) -> list[int]:
    """The exit statuses of as many forks as are asked for; one that fails ends the others."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks = [_forked(asked, rank) for rank in range(asked["processes"])]
    left, found = set(ranks), dict.fromkeys(ranks, 0)
    while left:
        process, status = os.wait()
        left.remove(process)
        found[process] = os.waitstatus_to_exitcode(status)
        if found[process]:
            for other in left:
                os.kill(other, signal.SIGKILL)
    return list(found.values())


def _forked(asked: dict[str, Any], rank: int) -> int:
    """The number of a new process, which never comes back here."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        signal.alarm(MOST_SECONDS)
        output = os.open(Path(asked["folder"], f"rank-{rank}.txt"), os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if "program" in asked:
            _run_program(asked, rank)
        else:
            _measure(asked, rank)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run_program(asked: dict[str, Any], rank: int) -> None:
    """A program as `torchrun` runs it, in one of several processes."""
    size = str(asked["processes"])
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": size}
    sys.argv = [asked["program"]]
    import torch

    # the counting GPU is none that a program finds
    with patch("torch._C._get_accelerator", lambda *_: torch.device("cpu")):
        runpy.run_path(asked["program"], run_name="__main__")


def _measure(asked: dict[str, Any], rank: int) -> None:
    """The row of one rank's step beside the others', in a file."""
    import torch.distributed as dist

    from validation.configuration import parse
    from validation.measure import measure_rank

    configuration = parse(asked["words"])
    size, folder = asked["processes"], Path(asked["folder"])

    @contextmanager
    def several(*_: object) -> Iterator[Any]:
        store = f"file://{folder / 'store'}"
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
        try:
            yield SimpleNamespace(forget=_settle, flat=(), moved={})
            dist.barrier()
        finally:
            dist.destroy_process_group()

    with patch("validation.session.ranks", several):
        row = measure_rank(configuration, "cpu", rank)
    (folder / f"row-{rank}.json").write_text(json.dumps(row))


def _settle() -> None:
    """Wait until gloo's own threads hold no tensor of the step before.

    A thread drops the tensors of an exchange a little after the exchange is over; until then they
    would be counted with what lives between two steps. On a busy machine that thread waits for a
    core, so a count that stays the same is not enough: every other thread has to sleep as well.
    """
    log, before = counting_device.Log(), -1
    while (now := len(log.alive())) != before or _others_run():
        before = now
        time.sleep(0.02)


def _others_run() -> bool:
    """True if another thread of this process has a core or waits for one."""
    others = [each for each in Path("/proc/self/task").iterdir() if int(each.name) != os.getpid()]
    try:
        states = [(each / "stat").read_text().rpartition(")")[2].split()[0] for each in others]
    except OSError:  # one has ended
        return True
    return any(state != "S" for state in states)


if __name__ == "__main__":
    main(*sys.argv[1:])
