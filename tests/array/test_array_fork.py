"""Arrays over a fork: the child computes with them, whatever the parent's threads were at."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunScript

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")


@pytest.mark.slow
def test_forks_while_workers_allocate_and_threads_look(script: RunScript) -> None:
    """Workers take blocks of memory and other threads look at arrays, both without the GIL, while the process forks."""
    done = script("""
        import os, threading, warnings
        import weft
        warnings.simplefilter("ignore", DeprecationWarning)  # CPython 3.12 warns of every fork beside threads

        finished, stop = weft.ones(100_000), threading.Event()
        finished.wait_to_read()

        def look():
            while not stop.is_set():
                finished.is_ready()

        threads = [threading.Thread(target=look) for _ in range(2)]
        for thread in threads:
            thread.start()
        for number in range(300):
            for _ in range(20):
                result = finished * 2.0
            pid = os.fork()
            if not pid:
                value = (finished + weft.ones(100_000) * float(number)).numpy()
                os._exit(0 if (value == 1.0 + number).all() else 1)
            assert os.waitpid(pid, 0)[1] == 0
        stop.set()
        for thread in threads:
            thread.join()
        assert (result.numpy() == 2.0).all()
    """)
    assert done.returncode == 0, done.stderr
