"""training/network/tasks.py: a task that nobody refers to ends all the same."""

import asyncio
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

from training.network import tasks


def test_a_task_that_nobody_refers_to_is_kept_until_it_ends() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()  # which nobody else has

    async def begin() -> bool:
        begun = weakref.ref(asyncio.create_task(wait()))
        await asyncio.sleep(0)
        gc.collect()
        kept = begun()
        if kept is None:
            return False
        kept.cancel()
        await asyncio.wait([kept])
        del kept
        gc.collect()
        return begun() is None

    def run() -> bool:
        before = asyncio.get_event_loop_policy()
        loop = tasks._make_loop()  # by the library's policy, which would stay
        try:
            return loop.run_until_complete(begin())
        finally:
            loop.close()
            asyncio.set_event_loop_policy(before)

    with ThreadPoolExecutor(1) as pool:  # the library stops the loop of the thread that asks
        assert pool.submit(run).result()
