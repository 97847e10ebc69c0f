"""Interpreter exit: what was pushed is drained, within limits, and nothing deadlocks."""

from __future__ import annotations

import ctypes
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from conftest import SOON, RunScript, script_env, write_script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# `exiting` is set once the main thread has ended: by then the interpreter is on its way out.
HEAD = """
    import os, sys, threading
    import weft

    exiting = threading.Event()
    def watch():
        threading.main_thread().join()
        exiting.set()
    threading.Thread(target=watch).start()

    engine = weft.Engine(2, name="main")
    x, y = engine.new_variable("x"), engine.new_variable("y")
"""

STUCK = (
    HEAD
    + """
    def stuck():
        threading.Event().wait()
    engine.push(stuck, (), (x,), name="endless")
    for i in range(7):
        engine.push(lambda: print("must not run", flush=True), (), (x,))
    print("pushed", flush=True)
"""
)


@pytest.mark.parametrize("policy", ["work_stealing", "per_device", "serial"])
def test_drains_what_was_pushed(script: RunScript, policy: str) -> None:
    source = """
    for i in range(20_000):
        engine.push(int, (), (x,))
    engine.push(lambda: print("last", x.completed_version, flush=True), (), (x,))
    """
    done = script(HEAD.replace("Engine(2", f"Engine(2, {policy!r}") + source)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "last 20000\n"
    assert done.stderr == ""


def test_drains_ops_that_run_while_it_exits(script: RunScript) -> None:
    source = """
    def late():
        exiting.wait()
        os.write(1, b"first ")
        engine.push(lambda: os.write(1, b"nested "), (), (y,))
    engine.push(late, (), (x,))
    engine.push(lambda: os.write(1, b"second "), (), (x,))
    """
    done = script(HEAD + source)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["first", "nested", "second"]


def test_drains_the_default_engine_and_tasks(script: RunScript) -> None:
    done = script("""
        import numpy, weft
        @weft.task
        def show(a: weft.Read):
            print(int(a.sum()), flush=True)
        show(numpy.ones(5))
    """)
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr


def test_drains_after_sys_exit_and_after_an_error(script: RunScript) -> None:
    push = "    engine.push(lambda: (exiting.wait(), print('ran', flush=True)))\n"
    done = script(HEAD + push + "    sys.exit(3)\n")
    assert (done.returncode, done.stdout) == (3, "ran\n"), done.stderr
    done = script(HEAD + push + "    raise KeyError('main')\n")
    assert (done.returncode, done.stdout) == (1, "ran\n"), done.stderr
    assert "KeyError: 'main'" in done.stderr


def test_waits_of_other_threads_end_too(script: RunScript) -> None:
    source = """
    engine.push(exiting.wait, (), (x,))
    threading.Thread(target=lambda: (engine.wait_for_var(x), print("waited", flush=True))).start()
    """
    done = script(HEAD + source)
    assert (done.returncode, done.stdout) == (0, "waited\n"), done.stderr


@pytest.mark.slow
def test_a_time_limit_cancels_and_counts(script: RunScript) -> None:
    begin = time.monotonic()
    script(STUCK, WEFT_EXIT_TIMEOUT="0")
    middle = time.monotonic()
    done = script(STUCK, WEFT_EXIT_TIMEOUT="0.5")
    assert time.monotonic() - middle < middle - begin + 10, "all but the half second is what any process needs"
    assert done.stdout == "pushed\n"
    assert "8" in done.stderr or "7" in done.stderr
    assert "dropped" in done.stderr
    assert done.returncode >= 0, "ended by itself, not by a signal"


def test_an_op_whose_token_is_out_is_named(script: RunScript) -> None:
    done = script(
        HEAD + "    tokens = []\n    engine.push_async(tokens.append, name='lent')\n    while not tokens: pass\n",
        WEFT_EXIT_TIMEOUT="0",
    )
    assert "left unfinished: op 'lent' pushed at " in done.stderr
    assert "its completion token is not used" in done.stderr


def test_a_time_limit_of_nothing(script: RunScript) -> None:
    done = script(STUCK, WEFT_EXIT_TIMEOUT="0")
    assert done.stdout == "pushed\n"
    assert done.returncode >= 0


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
def test_a_bad_time_limit_is_said_and_drains(script: RunScript, value: str) -> None:
    done = script(
        HEAD + "    engine.push(lambda: (exiting.wait(), print('ran', flush=True)))\n", WEFT_EXIT_TIMEOUT=value
    )
    assert "WEFT_EXIT_TIMEOUT" in done.stderr
    assert done.stdout in {"ran\n", ""}  # refused at the import, or noted at the exit
    if done.returncode == 0:
        assert done.stdout == "ran\n"


@pytest.fixture
def interruptible() -> None:
    """For tests that press Ctrl-C."""
    if sys.platform == "win32":
        pytest.skip("Windows sends Ctrl-C to every process of a console: these tests would get it, too")


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process whose exit waits for an op that never ends."""
    process = subprocess.Popen(
        [sys.executable, write_script(tmp_path, STUCK)],
        env=script_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def lines_of(stream: Any) -> queue.Queue[str]:
    """Read a stream's lines on a thread."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in stream:
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    return lines


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_warns_after_some_seconds_and_ctrl_c_drops_the_rest(stuck: subprocess.Popen[str]) -> None:
    errors, seen = lines_of(stuck.stderr), ""
    while "endless" not in seen:  # the warning names what still runs
        seen += errors.get(timeout=SOON)
    stuck.send_signal(signal.SIGINT)
    stuck.wait(timeout=SOON)
    while "dropped" not in seen:
        seen += errors.get(timeout=SOON)
    assert "7" in seen or "8" in seen
    assert stuck.returncode in {0, 1, 130, -signal.SIGINT}


def test_engines_and_variables_left_to_the_interpreter(script: RunScript) -> None:
    """Globals, cycles and handles that only finalization frees do no harm."""
    done = script("""
        import weft
        class Node: pass
        node = Node()
        node.self = node
        node.engines = [weft.Engine(1) for _ in range(5)]
        for engine in node.engines:
            node.x = engine.new_variable()
            for _ in range(100):
                engine.push(lambda node=node: None, (), (node.x,))
            engine.push(lambda: 1 / 0)
        tokens = []
        engine.push_async(tokens.append)
        engine.wait_for_var(node.x)
        node.x.engine.push_async(lambda done: done())
        while not tokens: pass
        tokens.pop()()
    """)
    assert done.returncode == 1, done.stderr


def test_a_native_op_may_outlast_the_interpreter(script: RunScript, native_path: Path) -> None:
    """Its worker, which has run callables, ends when there is no Python any more, and leaves it alone."""
    done = script(
        f"""
        import ctypes
        import weft

        native = ctypes.CDLL({str(native_path)!r})
        begun = ctypes.c_int32()
        engine = weft.Engine(1)
        engine.push(lambda: None)
        engine.wait_for_all()
        engine.push_native(ctypes.cast(native.outlast, ctypes.c_void_p).value, ctypes.addressof(begun))
        while not begun.value: pass
        ctypes.pythonapi.Py_AtExit(native.interpreter_is_gone)
        """,
        WEFT_EXIT_TIMEOUT="0",
    )
    assert done.returncode == 0, done.stderr


def test_a_failure_that_nobody_waited_for_names_its_op_and_line(script: RunScript) -> None:
    source = """
    engine.push(lambda: 1 / 0, (), (x,), name="divide")
    engine.push(lambda: [][1], (), (y,), name="index")
    """
    done = script(HEAD + source)
    assert done.returncode == 1
    for name, error in (("divide", "ZeroDivisionError"), ("index", "IndexError")):
        assert f"op '{name}' pushed at" in done.stderr
        assert error in done.stderr
    assert "script.py" in done.stderr or ".py:" in done.stderr


def test_a_failure_is_told_though_the_time_at_exit_runs_out(script: RunScript) -> None:
    source = """
    engine.push(lambda: 1 / 0, (), (x,), name="divide")
    while not x.is_ready(): pass
    tokens = []
    engine.push_async(tokens.append, name="lent")
    while not tokens: pass
    """
    done = script(HEAD + source, WEFT_EXIT_TIMEOUT="0")
    assert done.returncode == 1
    assert "op 'divide' pushed at" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "left unfinished: op 'lent'" in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_counts_what_never_runs_and_shows_no_traceback(stuck: subprocess.Popen[str]) -> None:
    errors, seen = lines_of(stuck.stderr), ""
    while "endless" not in seen:
        seen += errors.get(timeout=SOON)
    stuck.send_signal(signal.SIGINT)
    stuck.wait(timeout=SOON)
    while "dropped" not in seen:
        seen += errors.get(timeout=SOON)
    assert "dropped 7 ops at exit and left unfinished: op 'endless'" in seen
    rest = "".join(iter(lambda: errors.get() if not errors.empty() else "", ""))
    assert "Traceback" not in seen + rest


@pytest.mark.slow
@pytest.mark.parametrize("payload", ["lambda: time.sleep(0.001)", "Sleepy"])
def test_engines_of_daemon_threads_end_with_the_process(script: RunScript, payload: str) -> None:
    """Their ops come back for the interpreter's lock when there is no interpreter any more."""
    source = f"""
    import threading, time
    import weft

    class Sleepy:
        def __call__(self):
            pass

        def __del__(self, sleep=time.sleep):
            sleep(0.001)

    payload, engines, begun = {payload}, [], threading.Event()

    def run():
        while True:
            engine = weft.Engine(2)
            engines.append(engine)
            for _ in range(20):
                engine.push(payload() if isinstance(payload, type) else payload)
            begun.set()
            time.sleep(0.001)

    for _ in range(4):
        threading.Thread(target=run, daemon=True).start()
    begun.wait()
    time.sleep(0.2)
    """
    for _ in range(3):
        done = script(source)
        assert done.returncode == 0, done.stderr
        assert "FATAL" not in done.stderr


FAILS = """
    import os, sys, threading, weft
    engine = weft.Engine(1)
    def fail():
        raise KeyError("unseen")
    x = engine.new_variable("x")
    engine.push(fail, mutate_vars=[x], name="culprit")
"""


@pytest.mark.parametrize(
    ("end", "environment", "status"),
    [
        ("", {}, 1),
        ("    sys.exit()\n", {}, 1),
        ("    sys.exit(3)\n", {}, 3),
        ("    raise KeyError('main')\n", {}, 1),
        ("    try: engine.wait_for_all()\n    except KeyError: pass\n", {}, 0),
        ("    try: engine.wait_for_var(x)\n    except KeyError: pass\n", {}, 0),
        ("    threading.Thread(target=sys.exit, args=(5,)).start()\n", {}, 1),
        ("", {"WEFT_EXIT_STATUS": "0"}, 0),
        ("", {"WEFT_EXIT_STATUS": "maybe"}, 1),
        ("    os._exit(0)\n", {}, 0),
    ],
)
def test_the_status_tells_of_an_unseen_failure(
    script: RunScript, end: str, environment: dict[str, str], status: int
) -> None:
    if status == 3 and not hasattr(ctypes.CDLL(None) if sys.platform != "win32" else None, "on_exit"):
        status = 1  # this C library does not tell the status
    done = script(FAILS + end, **environment)
    assert done.returncode == status, done.stderr
    if environment.get("WEFT_EXIT_STATUS") == "maybe":
        assert "WEFT_EXIT_STATUS must be 0 or 1" in done.stderr
    if "os._exit" not in end and status == 1 and "main" not in end:
        assert "KeyError: 'unseen'" in done.stderr
        assert "weft: op 'culprit' pushed at" in done.stderr
        assert "no wait has raised it" in done.stderr


def test_what_others_write_at_the_exit_is_written(script: RunScript, tmp_path: Path) -> None:
    """The status changes behind Python's end and that of the C library's other handlers."""
    written = tmp_path / "written"
    done = script(f"""
        import atexit, sys
        atexit.register(lambda: sys.stdout.write("before weft "))
        {"import ctypes; libc = ctypes.CDLL(None)" if sys.platform != "win32" else ""}
        import weft
        atexit.register(lambda: sys.stdout.write("after weft "))
        kept = open({str(written)!r}, "w")
        kept.write("buffered")
        def fail(): raise KeyError
        weft.get_engine().push(fail)
        {"libc.puts(b'of C')" if sys.platform != "win32" else ""}
    """)
    assert done.returncode == 1
    assert "before weft" in done.stdout
    assert "after weft" in done.stdout
    assert sys.platform == "win32" or "of C" in done.stdout
    assert written.read_text() == "buffered"


@pytest.mark.parametrize("end", ["", "sys.exit()", "sys.exit(3)"])
def test_the_way_of_other_c_libraries(script: RunScript, end: str) -> None:
    """It does not hear the status, and comes behind all that Python has to say."""
    done = script(f"""
        import atexit, sys
        from weft import _core
        atexit.register(sys.stdout.write, "at exit")
        atexit.register(_core._exit_failed, True)
        {end}
    """)
    assert (done.returncode, done.stdout) == (1, "at exit"), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_the_way_of_other_c_libraries_is_not_inherited(script: RunScript) -> None:
    done = script("""
        import os, sys
        from weft import _core
        _core._exit_failed(True)
        child = os.fork()
        if not child:
            sys.exit()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert (done.returncode, done.stdout) == (1, "0\n"), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_child_answers_for_its_own_failures(script: RunScript) -> None:
    done = script("""
        import os, sys, weft
        engine = weft.Engine(1)
        def fail(): raise KeyError("unseen")
        failing, fine = os.fork(), 0
        if not failing:
            engine.push(fail)
            sys.exit()
        fine = os.fork()
        if not fine:
            engine.push(int)
            sys.exit()
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in (failing, fine)]
        print(*statuses, flush=True)
    """)
    assert (done.returncode, done.stdout) == (0, "1 0\n"), done.stderr
