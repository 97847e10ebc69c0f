"""NDArrays in other libraries' hands: NumPy's asarray, DLPack, pickle, copy."""

from __future__ import annotations

import copy
import importlib.util
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import RunScript

X = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, -1.0]])
B = np.array([True, False, True])


def same(ours: Any, expected: np.ndarray[Any, Any]) -> None:
    assert type(ours) is weft.NDArray
    np.testing.assert_array_equal(np.asarray(ours), expected, strict=True)


def weft_dtypes() -> set[np.dtype[Any]]:
    return {np.dtype(code) for code in "?bhilBHILfdFD"}


# numpy.asarray


def test_asarray_is_a_read_only_view() -> None:
    x = weft.asarray(X)
    view = np.asarray(x)
    np.testing.assert_array_equal(view, X, strict=True)
    assert not view.flags.writeable
    assert np.shares_memory(view, np.asarray(x[1:, ::2]))
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0
    x += 1.0
    x.wait_to_read()
    np.testing.assert_array_equal(view, X + 1.0)


def test_asarray_copies_where_asked_or_needed() -> None:
    x = weft.asarray(X)
    for made in (np.array(x), np.asarray(x, copy=True), np.asarray(x, dtype=np.float32), x.__array__(copy=True)):
        assert made.flags.writeable
        assert not np.shares_memory(made, np.asarray(x))
    assert np.asarray(x, np.float32).dtype == np.float32
    assert np.shares_memory(np.asarray(x, copy=False), np.asarray(x))
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float32, copy=False)


def test_a_view_keeps_the_memory_alive() -> None:
    view = np.asarray(weft.asarray(np.arange(1000.0)) * 2.0)
    for _ in range(20):
        weft.asarray(np.zeros(1000)).wait_to_read()
    np.testing.assert_array_equal(view, np.arange(1000.0) * 2.0)


def test_asarray_raises_what_the_op_raised() -> None:
    x = weft.random.default_rng(1).normal(0.0, weft.asarray(-1.0))
    for use in (np.asarray, np.from_dlpack, pickle.dumps, lambda x: x.__dlpack__()):
        with pytest.raises(ValueError, match="scale < 0"):
            use(x)
    for lazy in (copy.copy, np.median):  # they push, so that the wait raises
        made = lazy(x)
        with pytest.raises(ValueError, match="scale < 0"):
            np.asarray(made)


# the standard's namespace


def test_namespace() -> None:
    x = weft.zeros(3)
    assert x.__array_namespace__() is weft
    assert x.__array_namespace__(api_version="2024.12") is weft
    for wrong in ("2019.01", "2999.12"):
        with pytest.raises(ValueError, match=wrong):
            x.__array_namespace__(api_version=wrong)


# DLPack


def test_numpy_takes_dlpack_without_a_copy() -> None:
    x = weft.asarray(X)
    taken = np.from_dlpack(x)
    np.testing.assert_array_equal(taken, X, strict=True)
    assert not taken.flags.writeable
    assert np.shares_memory(taken, np.asarray(x))
    part = np.from_dlpack(x[:, ::2])
    assert np.shares_memory(part, np.asarray(x))
    np.testing.assert_array_equal(part, X[:, ::2])
    copied = np.from_dlpack(x, copy=True)
    assert copied.flags.writeable
    assert not np.shares_memory(copied, np.asarray(x))
    assert np.shares_memory(np.from_dlpack(x, device="cpu", copy=False), np.asarray(x))


@pytest.mark.parametrize("dtype", sorted(weft_dtypes(), key=str), ids=str)
def test_dlpack_of_each_dtype(dtype: np.dtype[Any]) -> None:
    for shape in ((), (0,), (2, 3)):
        host = np.ones(shape, dtype)
        np.testing.assert_array_equal(np.from_dlpack(weft.asarray(host)), host, strict=True)
        same(weft.from_dlpack(weft.asarray(host)), host)
        same(weft.from_dlpack(host), host)


def test_dlpack_options() -> None:
    x = weft.asarray(X)
    assert x.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    old = repr(x.__dlpack__())  # a copy: it cannot say that the memory is read-only
    assert '"dltensor"' in old
    with pytest.raises(BufferError, match="read"):
        x.__dlpack__(copy=False)
    assert x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)


def test_a_capsule_keeps_the_memory_alive() -> None:
    taken = np.from_dlpack(weft.asarray(np.arange(1000.0)) + 1.0)
    for _ in range(20):
        weft.asarray(np.zeros(1000)).wait_to_read()
    np.testing.assert_array_equal(taken, np.arange(1000.0) + 1.0)


# What follows runs where the libraries are, as in the CI job that installs them.

if importlib.util.find_spec("torch"):

    def test_torch() -> None:
        import torch

        taken = torch.from_dlpack(weft.asarray(X))
        assert taken.tolist() == X.tolist()
        tensor = torch.arange(6.0).reshape(2, 3)
        shared = weft.from_dlpack(tensor)
        same(shared, np.arange(6, dtype=np.float32).reshape(2, 3))
        same(weft.asarray(tensor), np.arange(6, dtype=np.float32).reshape(2, 3))


if importlib.util.find_spec("jax"):

    def test_jax() -> None:
        import jax.numpy as jnp

        x = X.astype(np.float32)
        taken = jnp.from_dlpack(weft.asarray(x))
        np.testing.assert_array_equal(np.asarray(taken), x)
        same(weft.from_dlpack(jnp.asarray(x)), x)


if importlib.util.find_spec("sklearn") and importlib.util.find_spec("array_api_compat"):

    def test_scikit_learn(script: RunScript) -> None:
        source = """
        import numpy as np
        import sklearn
        from sklearn.decomposition import PCA
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
        from sklearn.linear_model import Ridge
        from sklearn.preprocessing import StandardScaler

        import weft

        rng = np.random.default_rng(0)
        x = rng.normal(size=(60, 5))
        y, t = (x @ [1, 2, 0, 0, 1] > 0).astype(np.int64), x @ [1.0, 2.0, 3.0, 4.0, 5.0]
        for fit in (
            lambda x, y, t: StandardScaler().fit_transform(x),
            lambda x, y, t: abs(PCA(2, svd_solver="full").fit_transform(x)),
            lambda x, y, t: LinearDiscriminantAnalysis().fit(x, y).predict_proba(x),
            lambda x, y, t: Ridge(solver="svd").fit(x, t).predict(x),
        ):
            with sklearn.config_context(array_api_dispatch=True):
                result = fit(*map(weft.asarray, (x, y, t)))
            assert type(result) is weft.NDArray
            np.testing.assert_allclose(np.asarray(result), fit(x, y, t))
        """
        done = script(source, SCIPY_ARRAY_API="1")
        assert done.returncode == 0, done.stderr


# pickle and copy


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("host", [X, np.asfortranarray(X), X[:, ::2], np.array(3), np.zeros((0, 2)), B], ids=str)
def test_pickle(protocol: int, host: np.ndarray[Any, Any]) -> None:
    twin = pickle.loads(pickle.dumps(weft.asarray(host), protocol))
    same(twin, host)
    assert twin.engine is weft.get_engine()
    twin += twin
    same(twin, host + host)


def test_pickle_out_of_band() -> None:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(weft.asarray(X), protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    twin = pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])
    twin += 1.0
    same(twin, X + 1.0)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies(duplicate: Callable[[weft.NDArray], weft.NDArray]) -> None:
    x = weft.asarray(X)
    twin, part = duplicate(x), duplicate(x[:, ::2])
    x += 1.0
    same(twin, X)
    same(part, X[:, ::2])
    assert duplicate(twin).engine is twin.engine


def test_deepcopy_of_a_container_keeps_identity() -> None:
    x = weft.asarray(X)
    first, second = copy.deepcopy([x, x])
    assert first is second
