"""Keeps the library's background tasks alive.

asyncio holds tasks weakly, and a stream's reader too: a task that waits for the network daemon's
answer and that nobody else refers to can be collected as garbage in the middle of its work. Of
hivemind 1.1.12's tasks many are such; the log then says "Task was destroyed but it is pending",
and an exchange with the others breaks off without a cause. A cancelled search for a group that is
collected keeps its lock, and every later round waits for it. A loop whose task factory keeps every
task until it is done does not lose any.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import hivemind.averaging.averager
import hivemind.dht.dht
from hivemind.utils.asyncio import switch_to_uvloop

_running: set[asyncio.Task[Any]] = set()


def keep_tasks() -> None:
    """See to it that the library's processes lose no task; for before they are forked."""
    for module in (hivemind.dht.dht, hivemind.averaging.averager):
        module.switch_to_uvloop = _make_loop


def _make_loop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = switch_to_uvloop()
    loop.set_task_factory(_create_task)  # type: ignore[arg-type]  # options vary by version
    return loop


def _create_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task
