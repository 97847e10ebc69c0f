"""``fork`` and ``multiprocessing``: the child has a working engine, and keeps what was finished."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Gate, MakeEngine, RunScript

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

HEAD = """
    import os, sys, threading, warnings
    import weft
    warnings.simplefilter("ignore", DeprecationWarning)  # CPython 3.12 warns of every fork beside threads

    def raises(kind, call):
        try:
            call()
        except kind as error:
            return error
        raise AssertionError(f"no {kind.__name__}")

    def in_child(body):
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                body()
                status = 0
            except BaseException:
                import traceback
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        assert status == 0, status

    engine = weft.Engine(WORKERS, POLICY)
    x, y, cell = engine.new_variable("x"), engine.new_variable("y"), []
"""

SETTINGS = [("work_stealing", 1), ("work_stealing", 8), ("per_device", 2), ("serial", 1)]


def run(script: RunScript, setting: tuple[str, int], source: str) -> None:
    """Run ``source`` after the head above."""
    policy, workers = setting
    done = script(HEAD.replace("WORKERS", str(workers)).replace("POLICY", repr(policy)) + source)
    assert done.returncode == 0, done.stderr


@needs_fork
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_child_has_a_working_engine(script: RunScript, setting: tuple[str, int]) -> None:
    run(
        script,
        setting,
        """
    for i in range(1000):
        engine.push(lambda: cell.append(os.getpid()), (), (x,))
    engine.wait_for_all()
    def child():
        engine.wait_for_var(x, timeout=20)
        assert (x.version, x.completed_version, x.exception()) == (1000, 1000, None)
        for i in range(1000):
            engine.push(lambda: cell.append(os.getpid()), (), (x,))
        fresh = engine.new_variable()
        engine.push(lambda: None, (x,), (fresh,))
        engine.wait_for_var(fresh, timeout=20)
        engine.wait_for_all(timeout=20)
        assert cell[1000:] == [os.getpid()] * 1000
        weft.get_engine().push(lambda: cell.append(0))
        weft.get_engine().wait_for_all(timeout=20)
        assert cell[2000:] == [0]
        engine.close(timeout=20)
    for _ in range(3):
        in_child(child)
    engine.push(lambda: cell.append(1), (), (x,))
    engine.wait_for_var(x, timeout=20)
    assert len(cell) == 1001
    """,
    )


@needs_fork
@pytest.mark.parametrize("setting", [s for s in SETTINGS if s[0] != "serial"])
def test_what_was_unfinished_raises_in_the_child_alone(script: RunScript, setting: tuple[str, int]) -> None:
    run(
        script,
        setting,
        """
    z = engine.new_variable("z")
    engine.push(lambda: cell.append("z"), (), (z,))
    engine.wait_for_var(z)
    entered, opened = threading.Event(), threading.Event()
    def gate():
        entered.set()
        opened.wait()
    engine.push(gate, (), (x,), name="running")
    entered.wait()
    engine.push(lambda: cell.append("y"), (x,), (y,), name="queued")
    def child():
        engine.wait_for_var(z, timeout=20)
        for v in (x, y):
            error = raises(weft.errors.ForkedError, lambda: engine.wait_for_var(v, timeout=20))
            assert isinstance(v.exception(), weft.errors.ForkedError)
        engine.push(lambda: cell.append("skipped"), (), (y,))
        engine.push(lambda: cell.append("overwritten"), overwrite_vars=(x,))
        engine.wait_for_var(x, timeout=20)
        raises(weft.errors.ForkedError, lambda: engine.wait_for_var(y, timeout=20))
        assert cell == ["z", "overwritten"], cell
    in_child(child)
    opened.set()
    engine.wait_for_all(timeout=20)
    assert cell == ["z", "y"], cell
    """,
    )


@needs_fork
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_child_exits_by_itself(script: RunScript, setting: tuple[str, int]) -> None:
    """Through the interpreter's exit, which drains the child's own ops and no others."""
    run(
        script,
        setting,
        """
    engine.push(lambda: None, (), (x,))
    engine.wait_for_all()
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        engine.push(lambda: os.write(write, b"child"), (), (x,))
        sys.exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    assert os.read(read, 10) == b"child"
    """,
    )


@needs_fork
@pytest.mark.parametrize("setting", [s for s in SETTINGS if s[0] != "serial"])
def test_forks_while_workers_and_pushers_are_busy(script: RunScript, setting: tuple[str, int]) -> None:
    run(
        script,
        setting,
        """
    stop = threading.Event()
    def pusher():
        v = engine.new_variable()
        while not stop.is_set():
            engine.push(lambda: None, (x,), (v,))
            engine.wait_for_var(v)
    threads = [threading.Thread(target=pusher, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    def child():
        v = engine.new_variable()
        for _ in range(100):
            engine.push(lambda: None, (x,), (v,))
        engine.wait_for_var(v, timeout=20)
    for _ in range(20):
        in_child(child)
    stop.set()
    for thread in threads:
        thread.join()
    engine.wait_for_all(timeout=20)
    """,
    )


@needs_fork
@pytest.mark.slow
def test_forks_while_native_workers_let_objects_go(script: RunScript, native_path: Path) -> None:
    # They put decrefs into a list, which they lock for a moment.
    run(
        script,
        ("work_stealing", 16),
        f"""
    import ctypes
    nothing = ctypes.cast(ctypes.CDLL({str(native_path)!r}).succeed, ctypes.c_void_p).value
    stop = threading.Event()
    def push():
        while not stop.is_set():
            for _ in range(1000):
                engine.push_native(nothing, 0, keep_alive=object())
            engine.wait_for_all()
    thread = threading.Thread(target=push)
    thread.start()
    for _ in range(400):
        in_child(lambda: None)
    stop.set()
    thread.join()
    """,
    )


@needs_fork
def test_forks_inside_an_op(script: RunScript) -> None:
    run(
        script,
        ("work_stealing", 2),
        """
    def child():
        engine.push(lambda: cell.append(1), (), (y,))
        engine.wait_for_var(y, timeout=20)
        assert cell == [1]
    engine.push(lambda: in_child(child), (), (x,))
    engine.wait_for_all(timeout=30)
    """,
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", [pytest.param("fork", marks=needs_fork), "spawn"])
def test_multiprocessing(script: RunScript, method: str) -> None:
    done = script(
        """
        import multiprocessing, os, warnings
        import weft
        warnings.simplefilter("ignore", DeprecationWarning)

        def square(n):
            engine, cell = weft.get_engine(), []
            x = engine.new_variable()
            for _ in range(n):
                engine.push(lambda: cell.append(n), (), (x,))
            engine.wait_for_var(x, timeout=20)
            return sum(cell)

        if __name__ == "__main__":
            assert square(3) == 9  # so that the parent's engine has run before
            with multiprocessing.get_context(METHOD).Pool(2) as pool:
                assert pool.map(square, range(20)) == [n * n for n in range(20)]
            process = multiprocessing.get_context(METHOD).Process(target=square, args=(100,))
            process.start()
            process.join(20)
            assert process.exitcode == 0, process.exitcode
            assert square(5) == 25
    """.replace("METHOD", repr(method))
    )
    assert done.returncode == 0, done.stderr


@needs_fork
def test_the_child_needs_no_lock_of_a_thread_that_is_gone(script: RunScript) -> None:
    run(
        script,
        ("work_stealing", 1),
        """
    import signal

    import numpy as np
    from weft._engine import default, guards, owners, task_bytes

    held, over = threading.Event(), threading.Event()

    def hold():
        with default._lock, guards._lock, owners.registry_lock, task_bytes._lock:
            held.set()
            over.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()

    @weft.task
    def add(x: weft.Mutate):
        x += 1

    def body():
        signal.alarm(60)  # it would wait for ever
        x = np.zeros(1000)
        add(x).wait()
        assert x.all()

    in_child(body)
    over.set()
    holder.join()
    """,
    )


def test_a_subprocess_started_by_an_op(make_engine: MakeEngine, gates: Callable[[], Gate]) -> None:
    """subprocess forks and runs another program: nothing of ours may get in its way."""
    engine, gate, codes = make_engine(2), gates(), list[int]()
    gate.hold(engine)
    x = engine.new_variable()
    engine.push(
        lambda: codes.append(subprocess.run([sys.executable, "-c", "exit(4)"], check=False).returncode), (), (x,)
    )
    engine.wait_for_var(x, timeout=20)
    assert codes == [4]


@needs_fork
def test_the_collector_waits_for_a_fork_to_end(script: RunScript) -> None:
    """It would drop what needs locks that the forking thread has: here at each allocation of others' hooks."""
    done = script(
        """
        import gc, os, weakref

        collected = []
        gc.callbacks.append(lambda phase, _: collected.append(phase))

        def allocate():
            [[] for _ in range(1000)]
            assert not collected

        # Before weft's, and so inside of them.
        os.register_at_fork(before=allocate, after_in_parent=allocate, after_in_child=allocate)
        import weft

        def garbage():
            engine = weft.Engine(2)
            x, array = engine.new_variable(), weft.ones(1000, engine=engine)

            def explode():
                raise ValueError(engine, x, array)

            engine.push(explode, (), (x,))
            engine._drain()
            return weakref.ref(engine)

        gc.disable()
        engine = garbage()
        gc.set_threshold(1)
        collected.clear()
        gc.enable()
        child = os.fork()
        assert gc.isenabled()
        gc.collect()
        assert engine() is None
        if child:
            assert os.waitpid(child, 0)[1] == 0
            gc.disable()
            child = os.fork()
            assert not gc.isenabled()
            if child:
                assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_fork_ends_though_other_hooks_let_go_of_the_lock_of_the_interpreter(script: RunScript) -> None:
    done = script(
        """
        import os, threading, time, warnings

        warnings.simplefilter("ignore", DeprecationWarning)

        # Registered before weft's hooks, so it runs after them, right before the fork: as logging's do.
        os.register_at_fork(before=lambda: time.sleep(0.01), after_in_parent=lambda: time.sleep(0.01))

        import weft

        ended = False

        def push():
            engine = weft.Engine(1)
            variable, x = engine.new_variable(), weft.zeros(8)
            while not ended:
                x = (x + 1) * 2
                engine.push(lambda: None, (), (variable,))
                weft.Engine(1).close()
            engine.close()

        threads = [threading.Thread(target=push) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            child = os.fork()
            if not child:
                os._exit(0 if (weft.ones(3) + 1).numpy().sum() == 6 else 1)
            assert os.waitpid(child, 0)[1] == 0
        ended = True
        for thread in threads:
            thread.join()
        """
    )
    assert done.returncode == 0, done.stderr


RUNNING = {
    "program": "program = weft.program(lambda a: stop(a) * 2); call = lambda: program(x)",
    "capture": "call = captured().replay",
    "arrays": "call = lambda: stop(x) * 2",
}
CHILDREN = {
    "leaves": "",
    "pushes": "assert (weft.ones(4) + 1).tolist() == [2.0] * 4",
    "calls again": "go.set(); assert weft.program(lambda a: stop(a) * 2)(weft.zeros(2)).tolist() == [2.0, 2.0]",
    "waits": "engine.wait_for_all(timeout=20)",
    "lets go": "del call; gc.collect()",
}


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("child", CHILDREN)
@pytest.mark.parametrize("kind", RUNNING)
def test_a_child_ends_that_is_forked_while_instances_of_a_program_run(script: RunScript, kind: str, child: str) -> None:
    """A child has the calls as they stood: one runs, one has an instance, one has none; nobody there goes on with them."""
    run(
        script,
        ("work_stealing", 2),
        f"""
    import gc
    import numpy as np

    began, go = threading.Semaphore(0), threading.Event()

    @weft.ops.register_op("stop", infer=weft.ops.like_first)
    def stop(out, a):
        began.release()
        assert go.wait(20)
        np.add(a, 1, out=out)

    def captured():
        with weft.capture("held", engine=engine) as found:
            engine.push(lambda: (began.release(), go.wait(20)), (), (x,))
        return found

    variable, x = x, x if {kind!r} == "capture" else weft.zeros(8, engine=engine)
    {RUNNING[kind]}
    go.set()
    call()  # the first one of a program records it
    engine.wait_for_all(timeout=20)
    go.clear()
    while began.acquire(blocking=False):
        pass
    results = [call() for _ in range(3)]
    assert began.acquire(timeout=20)
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        {CHILDREN[child]}
        sys.exit(7)  # by the interpreter's own end, as any child does
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    go.set()
    engine.wait_for_all(timeout=20)
    assert {kind == "capture"} or all(each.tolist() == [2.0] * 8 for each in results)
    """,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["callable", "async", "array", "replayed"])
@pytest.mark.parametrize(("end", "status"), [("None", 0), ("sys.exit(3)", 3), ("sys.exit()", 0), ("1 / 0", 1)])
def test_a_child_that_is_forked_inside_an_op_ends_with_it(script: RunScript, kind: str, end: str, status: int) -> None:
    """The worker in which the op began is not there in the child: the op has nothing to return to."""
    done = script(
        f"""
        import os, sys, warnings
        import weft

        warnings.simplefilter("ignore", DeprecationWarning)
        engine, kind, children = weft.Engine(2), {kind!r}, []
        x, variable = weft.zeros(2, engine=engine), engine.new_variable()

        def split(*views):
            child = os.fork()
            if child:
                children.append(child)
                return None
            own = weft.Engine(1)
            own.push(lambda: print("child", end=""))
            own.wait_for_all()  # an op of the child's own ends nothing
            {end}

        if kind == "callable":
            engine.push(split, (), (variable,))
        elif kind == "async":
            engine.push_async(lambda done: (split(), done()), (), (variable,))
        elif kind == "array":
            weft._core.push_compute(split, (x,), ())
        else:
            with weft.capture("split", engine=engine) as program:
                engine.push(split, (), (variable,))
            program.replay()
        engine.wait_for_all(timeout=20)
        assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == {status}
        assert len(children) == 1
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "child"
    assert ("ZeroDivisionError" in done.stderr) == (end == "1 / 0")
