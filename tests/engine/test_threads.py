"""Pushes from several threads: atomic, whatever the order of their variables."""

from __future__ import annotations

import sys
import threading
from random import Random
from typing import TYPE_CHECKING

import pytest

from conftest import SOON, RunScript, background

if TYPE_CHECKING:
    import weft

OPS = 20_000


@pytest.mark.usefixtures("often")
def test_opposite_orders_never_wait_for_each_other(engine: weft.Engine) -> None:
    """``x += y`` beside ``y += x``, the pair that hangs engines which queue one variable after the other."""
    x, y, values, log = engine.new_variable("x"), engine.new_variable("y"), [1, 1], list[str]()
    mask = (1 << 61) - 1

    def x_from_y() -> None:
        values[0] = (values[0] + values[1]) & mask
        log.append("x")

    def y_from_x() -> None:
        values[1] = (values[1] + values[0]) & mask
        log.append("y")

    meet = threading.Barrier(2)

    def pusher(body: object, read: weft.Variable, mutate: weft.Variable) -> None:
        meet.wait(SOON)
        for _ in range(OPS // 2):
            engine.push(body, (read,), (mutate,))

    threads = [background(lambda: pusher(x_from_y, y, x)), background(lambda: pusher(y_from_x, x, y))]
    for thread in threads:
        thread.result(SOON)
    engine.wait_for_all(timeout=SOON)
    assert (x.completed_version, y.completed_version) == (OPS // 2, OPS // 2)
    a, b = 1, 1
    for step in log:  # the two never ran side by side, so the log is the order, and replays to the same values
        if step == "x":
            a = (a + b) & mask
        else:
            b = (b + a) & mask
    assert values == [a, b]


@pytest.mark.usefixtures("often")
def test_rings_of_mutations(engine: weft.Engine) -> None:
    """Four threads, each mutating two neighbours of a ring, in both orders."""
    variables, counts = [engine.new_variable() for _ in range(4)], [0] * 4

    def add(i: int, j: int) -> None:
        a, b = counts[i], counts[j]
        counts[i], counts[j] = a + 1, b + 1

    def pusher(i: int) -> None:
        j = (i + 1) % 4
        for turn in range(2500):
            pair = (variables[i], variables[j]) if turn % 2 else (variables[j], variables[i])
            engine.push(lambda: add(i, j), (), pair)

    for thread in [background(lambda i=i: pusher(i)) for i in range(4)]:
        thread.result(SOON)
    engine.wait_for_all(timeout=SOON)
    assert counts == [5000] * 4
    assert [v.completed_version for v in variables] == [5000] * 4


@pytest.mark.usefixtures("often")
def test_each_threads_program_gives_its_serial_result(engine: weft.Engine) -> None:
    """Four threads push random programs over their own variables, all reading a shared one."""
    shared = engine.new_variable("shared")

    def program(seed: int) -> tuple[list[int], list[int]]:
        random = Random(seed)
        variables = [engine.new_variable() for _ in range(5)]
        values, expected = [0] * 5, [0] * 5

        def step(target: list[int], i: int, reads: list[int], salt: int) -> None:
            target[i] = (target[i] * 31 + sum(target[j] for j in reads) + salt) % 1_000_003

        for _ in range(2500):
            i, salt = random.randrange(5), random.randrange(1000)
            reads = random.sample(range(5), random.randrange(4))
            step(expected, i, reads, salt)
            engine.push(
                lambda i=i, reads=reads, salt=salt: step(values, i, reads, salt),
                [shared, *(variables[j] for j in reads)],
                (variables[i],),
                priority=random.randrange(-2, 3),
            )
            if random.random() < 0.01:
                engine.wait_for_var(variables[i], timeout=SOON)
        for variable in variables:
            engine.wait_for_var(variable, timeout=SOON)
        return values, expected

    for thread in [background(lambda s=s: program(s)) for s in range(4)]:
        values, expected = thread.result(3 * SOON)
        assert values == expected


@pytest.mark.usefixtures("often")
def test_variables_are_made_and_deleted_from_many_threads(engine: weft.Engine) -> None:
    finalized, lock = [0], threading.Lock()

    def finalizer() -> None:
        with lock:
            finalized[0] += 1

    def churn() -> None:
        for _ in range(1000):
            x = engine.new_variable()
            engine.push(lambda: None, (), (x,))
            engine.delete_variable(x, finalizer)

    for thread in [background(churn) for _ in range(4)]:
        thread.result(SOON)
    engine.wait_for_all(timeout=SOON)
    assert finalized == [4000]
    assert engine.stats()["variables"] == 0


def test_a_thread_that_ends_leaves_its_ops(parallel: weft.Engine) -> None:
    ran, variables = list[int](), [parallel.new_variable() for _ in range(50)]
    for i, x in enumerate(variables):
        thread = threading.Thread(target=lambda i=i, x=x: parallel.push(lambda: ran.append(i), (), (x,)))
        thread.start()
        thread.join(SOON)
    parallel.wait_for_all(timeout=SOON)
    assert sorted(ran) == list(range(50))


def test_who_watches_the_threads_of_python_sees_ops(script: RunScript) -> None:
    """So coverage counts their lines, and debuggers stop in them."""
    done = script("""
        import threading, weft

        seen = {"trace": set(), "profile": set()}
        def watcher(kind):
            def watch(frame, event, argument):
                seen[kind].add((frame.f_code.co_name, threading.current_thread() is threading.main_thread()))
                return watch
            return watch
        threading.settrace(watcher("trace"))
        threading.setprofile(watcher("profile"))
        def body():
            return 1
        with weft.Engine(1) as engine:
            engine.push(body)
        assert all(("body", False) in names for names in seen.values()), seen
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on addresses keeps threads from starting on Linux alone")
def test_threads_that_cannot_start_take_no_place(script: RunScript) -> None:
    """An engine that could not start a worker, often, starts one when it can be had."""
    done = script("""
        import resource
        import weft

        engine = weft.Engine(1)
        x = engine.new_variable()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), hard))  # half a worker's stack
        for _ in range(600):
            engine.push(int, (), (x,))
        assert x.completed_version == 0, "there was a thread"
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        engine.push(int, (), (x,))
        engine.wait_for_var(x, timeout=20)
        print(x.completed_version)
    """)
    assert (done.returncode, done.stdout) == (0, "601\n"), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on addresses keeps threads from starting on Linux alone")
def test_a_wait_starts_the_worker_that_could_not_start(script: RunScript) -> None:
    """A thread that can be had while a program waits is asked for, though nothing is pushed any more."""
    done = script("""
        import resource, threading
        import weft

        engine = weft.Engine(1, stall_after=None)
        x = engine.new_variable()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        waits = threading.Event()
        def lift():
            waits.wait()
            try:
                engine.wait_for_var(x, timeout=0.5)
            except TimeoutError:
                print("no thread yet")
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        lifts = threading.Thread(target=lift)
        lifts.start()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), hard))  # half a worker's stack
        engine.push(int, (), (x,))
        waits.set()
        engine.wait_for_var(x, timeout=20)
        print(x.completed_version)
        lifts.join()
    """)
    assert (done.returncode, done.stdout) == (0, "no thread yet\n1\n"), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on addresses keeps threads from starting on Linux alone")
def test_a_wait_inside_an_op_fails_where_no_thread_is_to_be_had(script: RunScript) -> None:
    """It waits for an op that nobody is left to run."""
    done = script("""
        import resource
        import weft

        engine = weft.Engine(1)
        x, y = engine.new_variable(), engine.new_variable()
        ran = []
        def inner():
            ran.append(1)
        def outer():
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), hard))  # half a worker's stack
            engine.push(inner, (), (y,))
            engine.wait_for_var(y)
        engine.push(outer, (), (x,))
        try:
            engine.wait_for_var(x, timeout=20)
        except weft.errors.DeadlockError as error:
            print(error)
        engine.wait_for_var(y, timeout=20)
        print(ran)
    """)
    assert done.stdout.startswith("1 ops wait inside ops already, and each holds a thread"), done.stdout + done.stderr
    assert done.stdout.endswith("[1]\n"), done.stdout + done.stderr
