"""Ctrl-C: every place where the main thread may wait answers it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess

    from conftest import RunScript

# Windows sends Ctrl-C to every process of a console, and tests would get it, too. There a thread raises the signal itself, and
# Python tells its main thread as ever.
SEND = """
import os, signal, sys

def send(number):
    if sys.platform == "win32":
        signal.raise_signal(number)
    else:
        os.kill(os.getpid(), number)

OTHER = getattr(signal, "SIGUSR1", signal.SIGTERM)  # than Ctrl-C's
"""


def run(script: RunScript, source: str) -> subprocess.CompletedProcess[str]:
    """Run a script that can send signals to itself."""
    return script(SEND + textwrap.dedent(source))


# The helper sends SIGINT once the main thread waits: it gives it a moment to get there, as no event can tell.
SOURCE = """
    import os, statistics, sys, threading, time
    import weft

    engine = weft.Engine({workers}, {policy!r}, max_pending_ops=2)
    x = engine.new_variable("x")
    entered, opened = threading.Event(), threading.Event()
    def gate():
        entered.set()
        opened.wait()
    engine.push(gate, (), (x,))
    entered.wait()
    engine.push(lambda: None, (), (x,))  # and now the limit is reached

    def interrupt():
        global sent
        threading.Event().wait(0.1)
        sent = time.perf_counter()
        send(signal.SIGINT)

    def delay_of(wait):
        helper = threading.Thread(target=interrupt)
        try:
            helper.start()
            wait()
        except KeyboardInterrupt:
            delay = time.perf_counter() - sent
            helper.join()
            return delay
        print("the wait ended by itself", file=sys.stderr, flush=True)
        os._exit(1)

    # What the machine itself needs to tell a thread is not the engine's: Python's own wait is asked in turns with it.
    delays = [(delay_of(lambda: {wait}), delay_of(lambda: time.sleep(30))) for _ in range(5)]
    opened.set()
    engine.wait_for_all(timeout=20)
    assert x.completed_version == x.version == 2, x.version
    engine.push(lambda: None, (), (x,))
    engine.close()
    print(statistics.median(engine for engine, _ in delays) - statistics.median(python for _, python in delays))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "workers"), [("work_stealing", 1), ("work_stealing", 8), ("per_device", 2)])
@pytest.mark.parametrize(
    "wait",
    [
        "engine.wait_for_var(x)",
        "engine.wait_for_var(x, timeout=30)",
        "engine.wait_to_write(x)",
        "engine.wait_for_all()",
        "engine.push(lambda: None, (), (x,))",
    ],
)
def test_interrupts_a_wait_within_a_tenth_of_a_second(script: RunScript, policy: str, workers: int, wait: str) -> None:
    done = run(script, SOURCE.format(policy=policy, workers=workers, wait=wait))
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.1


def test_interrupts_closing(script: RunScript) -> None:
    source = SOURCE.replace("    engine.push(lambda: None, (), (x,))\n    engine.close()", "    engine.close()")
    done = run(script, source.format(policy="work_stealing", workers=1, wait="engine.close()"))
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.1


def test_a_handler_of_the_user_runs_and_the_wait_goes_on(script: RunScript) -> None:
    done = run(
        script,
        """
        import threading
        import weft
        engine = weft.Engine(1)
        x, opened, entered = engine.new_variable(), threading.Event(), threading.Event()
        def gate():
            entered.set()
            opened.wait()
        signal.signal(OTHER, lambda *_: (print("handled", flush=True), opened.set()))
        engine.push(gate, (), (x,))
        entered.wait()
        threading.Timer(0.1, send, (OTHER,)).start()
        engine.wait_for_var(x)
        print("waited")
    """,
    )
    assert (done.returncode, done.stdout) == (0, "handled\nwaited\n"), done.stderr


def test_a_handler_may_push_and_wait_while_the_main_thread_waits(script: RunScript) -> None:
    done = run(
        script,
        """
        import threading
        import weft
        engine = weft.Engine(2)
        x, opened, hits = engine.new_variable(), threading.Event(), []
        def again():
            while not opened.wait(0.02):
                send(OTHER)
        def handler(*_):
            y = engine.new_variable()
            engine.push(lambda: hits.append(1), (), (y,))
            engine.wait_for_var(y)
            if len(hits) > 5:
                opened.set()
        signal.signal(OTHER, handler)
        engine.push(opened.wait, (), (x,))
        sender = threading.Thread(target=again)
        sender.start()
        engine.wait_for_var(x, timeout=20)
        sender.join()
        engine.close()
        print(len(hits))
    """,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5


def test_a_worker_never_takes_the_interrupt(script: RunScript) -> None:
    """KeyboardInterrupt belongs to the main thread: ops run on, and the engine with them."""
    done = run(
        script,
        """
        import threading
        import weft
        engine = weft.Engine(2)
        x, count = engine.new_variable(), 0
        def add():
            global count
            count += 1
        interrupts = 0
        for i in range(2000):
            try:
                engine.push(add, (), (x,))
                if i % 100 == 0:
                    send(signal.SIGINT)
                    threading.Event().wait(5)  # it arrives here at the latest
            except KeyboardInterrupt:
                interrupts += 1
        engine.wait_for_var(x)
        assert x.exception() is None
        assert count == x.version >= 2000 - interrupts, (count, x.version, interrupts)
        print(interrupts)
    """,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 20
