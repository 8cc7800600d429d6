import os
import threading

import pytest

from training.volunteer.peer import NICENESS, give_way

pytestmark = pytest.mark.skipif(not hasattr(os, "nice"), reason="priorities are Unix's")


def test_only_the_thread_that_computes_gives_way() -> None:
    found: list[int] = []

    def compute() -> None:
        give_way()
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()
    assert found == [min(19, before + NICENESS)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
