"""Collectives of arrays on devices, on however many ranks: CuPy and NCCL are the tests' own, and so is the driver."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import opt
from weft.errors import CommunicatorError, CommunicatorTypeError, CommunicatorUnavailableError, CommunicatorValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.distributed import Communicator

HERE = Path(__file__).parent
#: Whether the GPUs are real, and with them CuPy and NCCL.
REAL = bool(os.environ.get("WEFT_REAL_GPUS"))


def loaded(name: str, path: Path) -> Any:
    """A module of a file, by a name of its own."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stand_in() -> Any:
    """Put the tests' own CuPy, with its NCCL, in the place of CuPy."""
    cupy = loaded("cupy", HERE.parent / "cuda" / "cupy_on_host.py")
    cupy.cuda.nccl = loaded("nccl_on_host", HERE / "nccl_on_host.py")
    return cupy.cuda.nccl


CHECKS: dict[str, Callable[[Communicator], None]] = {}


def check(function: Callable[[Communicator], None]) -> Callable[[Communicator], None]:
    """List a check."""
    CHECKS[function.__name__] = function
    return function


def device(comm: Communicator) -> Any:
    """This rank's: one for each on real GPUs, of which the tests' driver has two."""
    return weft.gpu(comm.local_rank if REAL else comm.local_rank % 2)


def given(comm: Communicator, dtype: str = "float32", shape: tuple[int, ...] = (2, 3)) -> list[np.ndarray[Any, Any]]:
    """What each rank has."""
    size = int(np.prod(shape))
    return [(np.arange(size) % 7 + rank).astype(dtype).reshape(shape) for rank in range(comm.size)]


@check
def reductions_go_by_nccl(comm: Communicator) -> None:
    for dtype in ("int32", "uint8", "int64", "float16", "float32", "float64", "complex64"):
        for op, by in (("sum", np.sum), ("max", np.max), ("min", np.min), ("mean", np.mean)):
            every = given(comm, dtype)
            x = weft.asarray(every[comm.rank], device=device(comm))
            if (every[0].dtype.kind == "c" and op in {"max", "min"}) or (every[0].dtype.kind in "iu" and op == "mean"):
                with pytest.raises(CommunicatorTypeError, match=op):
                    comm.all_reduce(x, op)
                continue
            assert comm.all_reduce(x, op) is x
            assert x.device == device(comm)
            np.testing.assert_allclose(x.numpy(), by(np.stack(every), axis=0).astype(dtype), rtol=1e-3)
    out = weft.zeros((2, 3), dtype="float32", device=device(comm))
    every = given(comm)
    x = weft.asarray(every[comm.rank], device=device(comm))
    assert comm.all_reduce(x, out=out) is out
    np.testing.assert_array_equal(out.numpy(), sum(every))
    np.testing.assert_array_equal(x.numpy(), every[comm.rank])


@check
def parts_are_moved(comm: Communicator) -> None:
    for dtype in ("float32", "int16", "bool"):
        every = given(comm, dtype, (comm.size, 3))
        x = weft.asarray(every[comm.rank], device=device(comm))
        np.testing.assert_array_equal(comm.all_gather(x).numpy(), np.stack(every))
        wanted = np.stack([each[comm.rank] for each in every])
        np.testing.assert_array_equal(comm.all_to_all(x).numpy(), wanted)
        if dtype == "float32":
            np.testing.assert_array_equal(comm.reduce_scatter(x).numpy(), sum(every)[comm.rank])
        for root in range(comm.size):
            y = weft.asarray(every[comm.rank], device=device(comm))
            assert comm.broadcast(y, root) is y
            np.testing.assert_array_equal(y.numpy(), every[root])


@check
def other_layouts_go_through_a_packed_one(comm: Communicator) -> None:
    every = given(comm, shape=(4, 6))
    x = weft.asarray(every[comm.rank], device=device(comm))
    comm.all_reduce(x[::2, ::-1])
    wanted = every[comm.rank].copy()
    wanted[::2] = sum(every)[::2]
    np.testing.assert_array_equal(x.numpy(), wanted)


@check
def messages_go_from_rank_to_rank(comm: Communicator) -> None:
    x = weft.full(5, float(comm.rank), device=device(comm))
    if comm.rank == 0:
        comm.send(x, 1)
    elif comm.rank == 1:
        assert comm.recv(x, 0) is x
        assert x.numpy().tolist() == [0.0] * 5
    comm.wait()


@check
def what_is_read_and_written_is_ordered(comm: Communicator) -> None:
    x = weft.ones(1000, device=device(comm))
    seen, wanted, value = [], [], 1.0
    for at in range(20):
        x += float(comm.rank + at)
        comm.all_reduce(x, "max")
        seen.append(x[3] + 0.0)
        value += comm.size - 1 + at
        wanted.append(value)
    assert [float(each) for each in seen] == wanted
    version = comm.variable.version
    comm.all_reduce(x)
    assert comm.variable.version > version


@check
def gradients_go_through_them(comm: Communicator) -> None:
    x, weight = weft.full(3, 1.0, device=device(comm)), float(comm.rank + 1)
    weights = [rank + 1.0 for rank in range(comm.size)]
    gradient = weft.grad(lambda x: (comm.all_reduce(x * 1.0) * weight).sum())(x)
    assert gradient.numpy().tolist() == [sum(weights)] * 3


@check
def an_optimizer_reduces_gradients(comm: Communicator) -> None:
    w = weft.full((4, 3), 1.0 + comm.rank, dtype="float32", device=device(comm))
    w.requires_grad = True
    descent = opt.DistOpt(opt.SGD(lr=0.5), communicator=comm)
    x = weft.full((2, 4), 1.0 + comm.rank, dtype="float32", device=device(comm))
    descent((x @ w).sum())
    mean = sum(2.0 * (1.0 + rank) for rank in range(comm.size)) / comm.size
    np.testing.assert_allclose(w.numpy(), np.full((4, 3), 1.0 - 0.5 * mean))
    descent.backward_and_update_half((x @ w).sum())
    descent.backward_and_sparse_update((x @ w).sum(), spars=0.5, topK=True)
    np.testing.assert_array_equal(*comm.all_gather(w).numpy()[:2])


@check
def bad_input_is_refused_before_it_is_pushed(comm: Communicator) -> None:
    x = weft.zeros(4, device=device(comm))
    comm.all_reduce(x)
    with pytest.raises(CommunicatorValueError, match="one GPU for each rank"):
        comm.all_reduce(weft.zeros(4, device=weft.gpu(1 - device(comm).index)))
    with pytest.raises(CommunicatorValueError, match=r"on gpu:\d and out= on cpu|on .* and out= on .*cpu"):
        comm.all_reduce(x, out=weft.zeros(4))
    with pytest.raises(CommunicatorValueError, match="tag=3"):
        comm.send(x, 0, tag=3)
    with pytest.raises(CommunicatorTypeError, match="NCCL has no sum of dtype int16"):
        comm.all_reduce(weft.zeros(4, dtype="int16", device=device(comm)))
    assert not comm.all_reduce(x).numpy().any()


@check
def ranks_that_differ_are_told(comm: Communicator) -> None:
    x = weft.ones(3 if comm.rank else 4, dtype="float32", device=device(comm))
    with pytest.raises(CommunicatorError, match=r"all_reduce\(sum\) of float32 \(4,\) on GPUs at"):
        comm.all_reduce(x).numpy()
    assert comm.broken is not None


if not REAL:
    _nccl = stand_in()

    @check
    def they_are_on_streams(comm: Communicator) -> None:
        before = len(_nccl.seen)
        comm.all_reduce(weft.ones(3, device=device(comm))).wait_to_read()
        assert [name for name, _ in _nccl.seen[before:]] == ["allReduce"]
        assert _nccl.seen[-1][1]
        comm.close()
        assert _nccl.seen[-1] == ("destroy", 0)

    @check
    def what_nccl_refuses_breaks_the_communicator(comm: Communicator) -> None:
        x = weft.ones(13, dtype="float32", device=device(comm))
        with pytest.raises(CommunicatorError, match=r"all_reduce\(sum\) of float32 \(13,\)|given up"):
            comm.all_reduce(x).numpy()
        assert comm.broken is not None
        comm.close()
        assert _nccl.seen[-1] == ("abort", 0)

    @check
    def without_nccl_it_is_said_what_to_do(comm: Communicator) -> None:
        x = weft.ones(3, device=device(comm))
        _nccl.available = False
        with pytest.raises(CommunicatorUnavailableError, match=r"nvidia-nccl.*to_device"):
            comm.all_reduce(x)
        _nccl.available = True
        assert comm.all_reduce(x).numpy().tolist() == [comm.size] * 3
