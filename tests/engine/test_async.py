"""``push_async``: an op is done when its completion token says so, from whichever thread."""

from __future__ import annotations

import gc
import queue
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from conftest import MOMENT, SOON
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    import weft
    from conftest import MakeEngine


class Boom(Exception):  # noqa: N818 - not an error of weft's
    """What the ops of these tests raise."""


def take(parallel: weft.Engine, x: weft.Variable, **options: object) -> weft.Completion:
    """Push an async op on ``x`` and hand back its token."""
    tokens: queue.Queue[weft.Completion] = queue.Queue()
    parallel.push_async(tokens.put, (), (x,), **options)
    return tokens.get(timeout=SOON)


def test_completes_inside_the_callable(engine: weft.Engine) -> None:
    x, order = engine.new_variable(), list[str]()

    def body(done: weft.Completion) -> None:
        order.append("async")
        done()

    engine.push_async(body, (), (x,))
    engine.push(lambda: order.append("after"), (), (x,))
    engine.wait_for_var(x, timeout=SOON)
    assert order == ["async", "after"]


def test_completes_from_another_thread(engine: weft.Engine) -> None:
    x, order = engine.new_variable(), list[str]()

    def work(done: weft.Completion) -> None:
        order.append("async")
        done()

    engine.push_async(lambda done: threading.Thread(target=work, args=(done,)).start(), (), (x,))
    engine.wait_for_var(x, timeout=SOON)
    assert order == ["async"]


def test_is_not_done_before_the_token_says_so(parallel: weft.Engine) -> None:
    x, ran = parallel.new_variable(), threading.Event()
    done = take(parallel, x)
    parallel.push(ran.set, (x,))
    with pytest.raises(errors.WaitTimeoutError):
        parallel.wait_for_var(x, timeout=MOMENT)
    assert not ran.is_set()
    done()
    parallel.wait_to_write(x, timeout=SOON)
    assert ran.is_set()


def test_holds_no_worker_meanwhile(single: weft.Engine) -> None:
    x, y = single.new_variable(), single.new_variable()
    tokens = [take(single, single.new_variable()) for _ in range(100)]
    done = take(single, x)
    single.push(lambda: None, (), (y,))
    single.wait_for_var(y, timeout=SOON)
    done()
    for token in tokens:
        token()
    single.wait_for_all(timeout=SOON)


def test_fail(parallel: weft.Engine) -> None:
    x, error = parallel.new_variable(), Boom("from afar")
    take(parallel, x, name="fetch").fail(error)
    with pytest.raises(Boom) as caught:
        parallel.wait_for_var(x, timeout=SOON)
    assert caught.value is error
    assert any("fetch" in note for note in error.__notes__)


def test_fail_takes_only_an_exception(parallel: weft.Engine) -> None:
    x = parallel.new_variable()
    done = take(parallel, x)
    with pytest.raises(TypeError):
        done.fail("not an exception")
    done()
    parallel.wait_for_var(x, timeout=SOON)


def test_a_callable_that_raises_fails_the_op(engine: weft.Engine) -> None:
    x, error = engine.new_variable(), Boom()

    def body(done: weft.Completion) -> None:  # noqa: ARG001 - never used
        raise error

    engine.push_async(body, (), (x,))
    with pytest.raises(Boom) as caught:
        engine.wait_for_var(x, timeout=SOON)
    assert caught.value is error


def test_a_dropped_token_fails_the_op(engine: weft.Engine) -> None:
    x, y = engine.new_variable(), engine.new_variable()
    engine.push_async(lambda done: None, (), (x,), name="forgetful")  # noqa: ARG005 - never used
    engine.push(lambda: None, (x,), (y,))
    for variable in (x, y):
        with pytest.raises(errors.CompletionError) as caught:
            engine.wait_for_var(variable, timeout=SOON)
        assert "forgetful" in "\n".join([str(caught.value), *caught.value.__notes__])


def test_a_token_dropped_later_fails_the_op(parallel: weft.Engine) -> None:
    x = parallel.new_variable()
    done = take(parallel, x)
    assert not x.is_ready()
    del done
    gc.collect()
    with pytest.raises(errors.CompletionError):
        parallel.wait_for_var(x, timeout=SOON)


def test_what_was_raised_is_told_and_not_the_token_that_went_with_it(engine: weft.Engine) -> None:
    x = engine.new_variable()
    engine.push_async(len, (), (x,))  # which has no frame that would hold the token
    with pytest.raises(TypeError, match="len"):
        engine.wait_for_var(x, timeout=SOON)


def test_a_token_dropped_while_its_worker_sleeps_fails_the_op(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    x, y = engine.new_variable(), engine.new_variable()
    tokens: list[weft.Completion] = []
    engine.push_async(tokens.append, (), (x,))
    engine.push(lambda: None, (), (y,))
    engine.wait_for_var(y, timeout=SOON)  # the worker has left the first callable
    tokens.clear()  # without a garbage collection, which would help where there is no GIL
    with pytest.raises(errors.CompletionError):
        engine.wait_for_var(x, timeout=SOON)


def test_what_a_worker_has_made_goes_while_it_sleeps(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    made: list[set[int]] = []
    gone = threading.Event()
    engine.push(lambda: made.append(set()))
    engine.wait_for_all(timeout=SOON)
    kept = weakref.ref(made[0], lambda _: gone.set())
    made.clear()
    assert gone.wait(SOON)
    assert kept() is None


@pytest.mark.parametrize("second", [lambda done: done(), lambda done: done.fail(Boom())])
def test_used_twice_raises_to_the_second_user(parallel: weft.Engine, second: Callable[[weft.Completion], None]) -> None:
    x = parallel.new_variable()
    done = take(parallel, x)
    done()
    for _ in range(2):
        with pytest.raises(errors.CompletionError):
            second(done)
    parallel.wait_for_all(timeout=SOON)
    assert x.exception() is None
    assert x.completed_version == 1


def test_used_after_fail_raises_too(parallel: weft.Engine) -> None:
    x = parallel.new_variable()
    done = take(parallel, x)
    done.fail(Boom())
    with pytest.raises(errors.CompletionError):
        done()
    with pytest.raises(Boom):
        parallel.wait_for_var(x, timeout=SOON)


@pytest.mark.usefixtures("often")
def test_used_by_many_threads_at_once_only_one_wins(parallel: weft.Engine) -> None:
    with ThreadPoolExecutor(4) as pool:
        for _ in range(200):
            x, meet = parallel.new_variable(), threading.Barrier(4)
            done = take(parallel, x)

            def use(done: weft.Completion = done, meet: threading.Barrier = meet) -> bool:
                meet.wait(SOON)
                try:
                    done()
                except errors.CompletionError:
                    return False
                return True

            assert sum(pool.map(lambda use: use(), [use] * 4)) == 1
            parallel.wait_for_var(x, timeout=SOON)
            assert x.completed_version == 1


def test_an_async_op_after_a_failure_is_skipped(engine: weft.Engine) -> None:
    x, ran = engine.new_variable(), list[str]()
    engine.push(lambda: 1 / 0, (), (x,))
    engine.push_async(lambda done: ran.append("ran"), (), (x,))  # noqa: ARG005 - never run
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_var(x, timeout=SOON)
    assert ran == []


def test_a_hundred_in_flight_complete_in_any_order(parallel: weft.Engine) -> None:
    variables = [parallel.new_variable() for _ in range(100)]
    tokens = [take(parallel, x) for x in variables]
    for x, done in zip(reversed(variables), reversed(tokens), strict=True):
        assert not x.is_ready()
        done()
        parallel.wait_for_var(x, timeout=SOON)
    parallel.wait_for_all(timeout=SOON)
