"""Products of matrices are weft's own, and the process's BLAS is left alone."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import weft

if TYPE_CHECKING:
    from conftest import MakeEngine, RunScript

EIGHT = 8
KINDS = ["float32", "float64", "complex64", "complex128"]
#: Rows, what is added up, columns: one block of the output, and several with a rest.
SHAPES = [(1, 1, 1), (1, 7, 1), (3, 4, 5), (33, 65, 17), (512, 64, 512), (513, 40, 20), (20, 40, 1100), (700, 30, 600)]


def threads() -> list[int]:
    """How many threads each BLAS of this process takes for one call."""
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def matrix(shape: tuple[int, ...], dtype: str, seed: int = 1) -> Any:
    draw = np.random.default_rng(seed)
    found = draw.standard_normal(shape)
    return (found + 1j * draw.standard_normal(shape) if dtype.startswith("complex") else found).astype(dtype)


def test_the_threads_of_blas_are_left_alone(make_engine: MakeEngine) -> None:
    with threadpool_limits(EIGHT, user_api="blas"):
        before = threads()
        x = weft.full((3, 3), 2.0, engine=make_engine(4))
        for found in (x @ x, x.sum(), weft.einsum("ij,jk", x, x), weft.linalg.inv(x + weft.eye(3, engine=x.engine))):
            found.wait_to_read()
        assert threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_waits_for_no_call_of_its_parent(script: RunScript) -> None:
    done = script(
        """
        import os, signal, threading, warnings
        import weft
        from weft._call.blas import limited

        warnings.simplefilter("ignore", DeprecationWarning)
        began, over = threading.Event(), threading.Event()

        def call():
            with limited(1):
                began.set()
                over.wait()

        calling = threading.Thread(target=call)
        calling.start()
        began.wait()
        child = os.fork()
        if not child:
            signal.alarm(20)  # it would wait for ever
            with weft.Engine(1, blas_threads=2) as engine:
                x = weft.linalg.inv(2.0 * weft.eye(2, engine=engine))
                os._exit(x.tolist() != [[0.5, 0], [0, 0.5]])
        over.set()
        calling.join()
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", KINDS)
def test_products(dtype: str, shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    a, b = matrix((rows, inner), dtype), matrix((inner, columns), dtype, 2)
    found = weft.asarray(a) @ weft.asarray(b)
    assert found.dtype == dtype
    tolerance = 1e-4 if dtype in {"float32", "complex64"} else 1e-12
    np.testing.assert_allclose(found.numpy(), a @ b, rtol=tolerance, atol=tolerance * inner)


@pytest.mark.parametrize("dtype", KINDS)
def test_products_of_views(dtype: str) -> None:
    a, b = matrix((40, 60), dtype), matrix((80, 30), dtype, 2)
    x, y = weft.asarray(a), weft.asarray(b)
    for left, right, theirs, ours in (
        (x.T, y[:40], a.T, b[:40]),
        (x[::2, ::3], y[::4], a[::2, ::3], b[::4]),
        (x[::-1, ::-1], y[10:70][::-1], a[::-1, ::-1], b[10:70][::-1]),
        (weft.broadcast_to(x[:1], (9, 60)), y[:60], np.broadcast_to(a[:1], (9, 60)), b[:60]),
    ):
        found = (left @ right).numpy()
        np.testing.assert_allclose(found, theirs @ ours, rtol=1e-3, atol=1e-3)


def test_stacks_of_products() -> None:
    a, b = matrix((3, 1, 20, 30), "float64"), matrix((4, 30, 10), "float64", 2)
    np.testing.assert_allclose((weft.asarray(a) @ weft.asarray(b)).numpy(), a @ b, rtol=1e-12, atol=1e-12)


def test_what_is_no_number_stays_none() -> None:
    a = np.array([[np.nan, 1.0], [np.inf, 2.0]])
    b = np.array([[1.0, 0.0], [3.0, 4.0]])
    with np.errstate(invalid="ignore"):
        expected = a @ b
    np.testing.assert_array_equal((weft.asarray(a) @ weft.asarray(b)).numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bits_depend_on_the_shape_alone(make_engine: MakeEngine, dtype: str) -> None:
    a, b = matrix((1100, 200), dtype), matrix((200, 700), dtype, 2)
    found = set()
    for workers, policy in ((1, "work_stealing"), (2, "work_stealing"), (4, "work_stealing"), (1, "serial")):
        engine = make_engine(workers, policy)
        x, y = weft.asarray(a, engine=engine), weft.asarray(b, engine=engine)
        several = [x @ y for _ in range(4)]
        found |= {each.numpy().tobytes() for each in several}
    assert len(found) == 1


def test_an_engine_has_threads_of_its_own_for_blas(make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set around its calls of LAPACK, for no other engine's, and then as before."""
    engine = make_engine(2, blas_threads=1)
    assert engine.blas_threads == 1
    assert make_engine(1).blas_threads is None
    seen: list[list[int]] = []
    inverse = np.linalg.inv

    def watched(x: Any) -> Any:
        seen.append(threads())
        return inverse(x)

    monkeypatch.setattr(np.linalg, "inv", watched)
    x = matrix((20, 20), "float64")  # a smaller one is inverted by the thread that asks for it
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        many = [weft.linalg.inv(weft.asarray(x, engine=engine)) for _ in range(20)]
        for each in many:
            np.testing.assert_allclose(each.numpy() @ x, np.eye(20), atol=1e-9)
        engine.wait_for_all(timeout=30)
        assert threads() == before
        assert all(set(each) == {1} for each in seen)
        seen.clear()
        weft.linalg.inv(weft.asarray(x, engine=make_engine(1))).wait_to_read()
        assert seen == [before]
        with pytest.raises(np.linalg.LinAlgError):
            weft.linalg.inv(weft.zeros((2, 2), engine=engine)).wait_to_read()
        assert threads() == before
    assert weft.linalg.lstsq(weft.asarray(x, engine=engine), weft.ones(20, engine=engine))[2] == 20


def test_engines_with_different_numbers_take_turns(make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: list[Any] = []
    determinant = np.linalg.det

    def watched(x: Any) -> Any:
        if set(threads()) != {int(x[0, 0])}:
            wrong.append(threads())
        return determinant(x)

    monkeypatch.setattr(np.linalg, "det", watched)
    with threadpool_limits(2, user_api="blas"):
        engines = [make_engine(2, blas_threads=count) for count in (1, 2, 3)]
        arrays = [weft.full((2, 2), float(count), engine=engine) for count, engine in enumerate(engines, 1)]
        for found in [weft.linalg.det(x) for x in arrays * 10]:
            found.wait_to_read()
        assert not wrong
        assert set(threads()) == {2}


def test_threads_for_blas_need_threadpoolctl(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft._call import blas

    blas.find.cache_clear()
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with pytest.raises(ImportError, match="pip install threadpoolctl"):
        weft.Engine(1, blas_threads=1)
    with pytest.raises(ValueError, match="blas_threads must be at least 1, not 0"):
        weft.Engine(1, blas_threads=0)
