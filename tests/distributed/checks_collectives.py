"""What collectives give, on however many ranks there are."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import NDArray, opt
from weft.distributed import Communicator
from weft.errors import (
    ArgumentTypeError,
    CommunicatorError,
    CommunicatorTypeError,
    CommunicatorValueError,
    WaitTimeoutError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKS: dict[str, Callable[[Communicator], None]] = {}

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


def check(function: Callable[[Communicator], None]) -> Callable[[Communicator], None]:
    """List a check."""
    CHECKS[function.__name__] = function
    return function


def given(comm: Communicator, dtype: str = "float32", shape: tuple[int, ...] = (2, 3)) -> list[np.ndarray[Any, Any]]:
    """What each rank has."""
    size = int(np.prod(shape))
    return [(np.arange(size) % 7 + rank).astype(dtype).reshape(shape) for rank in range(comm.size)]


@check
def reductions_of_every_dtype(comm: Communicator) -> None:
    for dtype in (*DTYPES, "complex64", "complex128"):
        for op, by in (("sum", np.sum), ("max", np.max), ("min", np.min), ("mean", np.mean)):
            every = given(comm, dtype)
            kind = every[0].dtype.kind
            if (kind == "c" and op in {"max", "min"}) or (kind in "iu" and op == "mean"):
                with pytest.raises(CommunicatorTypeError, match=op):
                    comm.all_reduce(weft.asarray(every[comm.rank]), op)
                continue
            x = weft.asarray(every[comm.rank])
            assert comm.all_reduce(x, op) is x
            np.testing.assert_allclose(x.numpy(), by(np.stack(every), axis=0), rtol=1e-6)
            assert x.dtype == dtype


@check
def booleans_have_no_sum(comm: Communicator) -> None:
    with pytest.raises(CommunicatorTypeError, match=r"no sum of dtype bool.*int64"):
        comm.all_reduce(weft.ones(2, dtype="bool"))
    assert comm.all_gather(weft.asarray([True, False])).numpy().all(axis=0).tolist() == [True, False]


@check
def a_result_goes_elsewhere(comm: Communicator) -> None:
    every = given(comm)
    x, out = weft.asarray(every[comm.rank]), weft.zeros((2, 3), dtype="float32")
    assert comm.all_reduce(x, out=out) is out
    np.testing.assert_array_equal(x.numpy(), every[comm.rank])
    np.testing.assert_array_equal(out.numpy(), sum(every))


@check
def other_layouts_go_through_a_packed_one(comm: Communicator) -> None:
    every = given(comm, shape=(4, 6))
    x = weft.asarray(every[comm.rank])
    comm.all_reduce(x[::2, ::-1])
    wanted = every[comm.rank].copy()
    wanted[::2] = sum(every)[::2]
    np.testing.assert_array_equal(x.numpy(), wanted)
    target = weft.zeros((6, comm.size, 4), dtype="float32")
    comm.all_gather(weft.asarray(every[comm.rank]).T, out=weft.swapaxes(target, 0, 1))
    np.testing.assert_array_equal(target.numpy(), np.stack([each.T for each in every], axis=1))
    part = weft.zeros((4, 4), dtype="float32")
    part[:, 1] = float(comm.rank)
    comm.broadcast(part[:, 1], root=comm.size - 1)
    assert part.numpy()[:, 1].tolist() == [comm.size - 1.0] * 4


@check
def parts_are_gathered_scattered_and_exchanged(comm: Communicator) -> None:
    every = given(comm)
    gathered = comm.all_gather(weft.asarray(every[comm.rank]))
    np.testing.assert_array_equal(gathered.numpy(), np.stack(every))
    scattered = comm.reduce_scatter(gathered)
    np.testing.assert_array_equal(scattered.numpy(), comm.size * every[comm.rank])
    flat = weft.asarray(np.arange(comm.size * 2.0) + comm.rank)
    total = comm.size * np.arange(comm.size * 2.0) + sum(range(comm.size))
    share = comm.reduce_scatter(flat)
    np.testing.assert_array_equal(share.numpy(), total[2 * comm.rank : 2 * comm.rank + 2])
    mean = comm.reduce_scatter(flat, "mean", out=weft.empty(2))
    np.testing.assert_allclose(mean.numpy(), share.numpy() / comm.size)
    swapped = comm.all_to_all(weft.asarray(np.arange(comm.size) + 10 * comm.rank))
    assert swapped.numpy().tolist() == [comm.rank + 10 * rank for rank in range(comm.size)]


@check
def a_root_gives(comm: Communicator) -> None:
    for root in range(comm.size):
        x = weft.full(5, float(comm.rank))
        assert comm.broadcast(x, root) is x
        assert x.numpy().tolist() == [float(root)] * 5


@check
def messages_go_round(comm: Communicator) -> None:
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    n = 1 << 18  # too many to be sent eagerly: all ranks send before they receive
    sent, got, second = weft.full(n, float(comm.rank)), weft.empty(n), weft.empty(2)
    comm.send(sent, right)
    comm.send(sent[::2][:2], right, tag=7)
    assert comm.recv(got, left) is got
    comm.recv(second, left, tag=7)
    assert got.numpy()[[0, -1]].tolist() == [float(left)] * 2
    assert second.numpy().tolist() == [float(left)] * 2
    comm.barrier()
    comm.wait()


@check
def empty_arrays_pass(comm: Communicator) -> None:
    assert comm.all_reduce(weft.zeros((0, 3))).shape == (0, 3)
    assert comm.all_gather(weft.zeros(0)).numpy().shape == (comm.size, 0)


@check
def what_is_read_and_written_is_ordered(comm: Communicator) -> None:
    x, seen = weft.ones(1000), []
    for at in range(50):
        x += float(comm.rank + at)
        comm.all_reduce(x, "max")
        seen.append(x[3] + 0.0)
    wanted, value = [], 1.0
    for at in range(50):
        value += comm.size - 1 + at
        wanted.append(value)
    assert [float(each) for each in seen] == wanted


@check
def nobody_waits_but_who_reads(comm: Communicator) -> None:
    x = weft.ones(3)
    if comm.rank:
        x.engine.push(lambda: comm._comm.recv(source=0), mutate_vars=[x], name="late")
    comm.all_reduce(x)
    if comm.rank == 0:
        with pytest.raises(WaitTimeoutError):
            x.wait_to_read(timeout=0.05)
        assert float(weft.ones(2).sum()) == 2.0  # others go on
        for rank in range(1, comm.size):
            comm._comm.send(None, dest=rank)
    assert x.numpy().tolist() == [comm.size] * 3
    assert comm.variable.is_ready()


@check
def waits_that_run_out_leave_calls_to_others(comm: Communicator) -> None:
    rng = np.random.default_rng(comm.rank)
    x = weft.empty(8)
    for at in range(60):
        x[...] = float(comm.rank + at)
        if at % 8 == comm.rank:
            x.engine.push(
                lambda: None, mutate_vars=[x], name="late"
            )  # workers are awake then, and the other ranks early
        comm.all_reduce(x)
        if rng.random() < 0.5:
            with suppress(WaitTimeoutError):
                x.wait_to_read(timeout=rng.random() * 1e-3)
        assert (x.numpy() == sum(range(comm.size)) + comm.size * at).all(), at


@check
def threads_wait_side_by_side(comm: Communicator) -> None:
    arrays = [weft.ones(4) for _ in range(12)]
    for turn in range(1, 9):
        for each in arrays:
            comm.all_reduce(each)
        with ThreadPoolExecutor(3) as pool:
            for found in pool.map(NDArray.numpy, arrays):
                assert (found == float(comm.size) ** turn).all(), turn


@check
def groups_of_ranks(comm: Communicator) -> None:
    group = comm.split(comm.rank % 2, key=-comm.rank)
    assert group is not None
    members = [rank for rank in range(comm.size) if rank % 2 == comm.rank % 2]
    assert (group.size, group.rank) == (len(members), len(members) - 1 - members.index(comm.rank))
    assert float(group.all_reduce(weft.full(1, float(comm.rank)))[0]) == sum(members)
    group.close()
    alone = comm.split(None if comm.rank else 0)
    assert (alone is None) == bool(comm.rank)


@check
def the_ranks_of_the_communicator_are_not_the_jobs(comm: Communicator) -> None:
    with Communicator(comm._comm.Dup(), name="own") as own:
        assert repr(own) == f"<weft.distributed.Communicator 'own', rank {comm.rank} of {comm.size}>"
        told = pickle.dumps(own)
        assert pickle.loads(told) is own
    with pytest.raises(CommunicatorError, match="'own' is closed"):
        own.all_reduce(weft.ones(1))
    with pytest.raises(CommunicatorError, match="no communicator 'own'"):
        weft.distributed.find("own")
    with pytest.raises(CommunicatorError, match="'own' is closed"):
        pickle.dumps(own)
    absent = pickle.loads(pickle.dumps(pickle.loads(told)))  # it goes through those that have none
    assert repr(absent) == f"<weft.distributed.Communicator 'own', rank {comm.rank} of {comm.size} of another process>"
    with pytest.raises(CommunicatorError, match=rf"pickled by rank {comm.rank} of .* has none of that name.*Dask"):
        absent.all_reduce(weft.ones(1))
    own.close()


@check
def programs_replay_collectives(comm: Communicator) -> None:
    state = weft.zeros(4)

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        y = x * 2.0
        comm.all_reduce(y, "mean")
        state[...] += y
        gathered = comm.all_gather(state)
        comm.barrier()
        return gathered.sum(axis=0)

    total = 0.0
    for at in range(5):
        mean = sum(2.0 * (rank + at) for rank in range(comm.size)) / comm.size
        total += mean
        np.testing.assert_allclose(step(weft.full(4, float(comm.rank + at))).numpy(), total * comm.size)
    assert len(step.programs) == 1


@check
def symbols_hold_collectives(comm: Communicator) -> None:
    x = weft.symbol.Variable("x", shape=(3,), dtype="float64")
    total = comm.all_reduce(x * 2.0)
    found = total.eval(x=weft.full(3, float(comm.rank)))[0]
    assert found.numpy().tolist() == [2.0 * sum(range(comm.size))] * 3
    loaded = weft.symbol.load_json(total.tojson())
    assert loaded.eval(x=weft.ones(3))[0].numpy().tolist() == [2.0 * comm.size] * 3
    assert comm.all_gather(x).infer_shape()[1] == [(comm.size, 3)]


@check
def programs_replay_what_moves(comm: Communicator) -> None:
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    inbox = weft.zeros(3)

    @weft.program
    def step(x: weft.NDArray) -> tuple[weft.NDArray, ...]:
        comm.send(x * 2.0, right)
        comm.recv(inbox, left)
        rows = weft.broadcast_to(x, (comm.size, 3)) + weft.arange(float(comm.size)).reshape(comm.size, 1)
        given = comm.broadcast(x + 1.0, comm.size - 1)
        return inbox * 1.0, comm.all_to_all(rows), comm.reduce_scatter(rows), given

    for at in range(4):
        got, exchanged, part, given = step(weft.full(3, float(comm.rank + at)))
        assert got.numpy().tolist() == [2.0 * (left + at)] * 3
        assert exchanged.numpy()[:, 0].tolist() == [float(rank + at + comm.rank) for rank in range(comm.size)]
        assert part.numpy().tolist() == [float(sum(rank + at + comm.rank for rank in range(comm.size)))] * 3
        assert given.numpy().tolist() == [float(comm.size - 1 + at + 1)] * 3
    assert len(step.programs) == 1


@check
def symbols_hold_what_moves_and_its_gradients(comm: Communicator) -> None:
    size, rank = comm.size, comm.rank
    x = weft.symbol.Variable("x", shape=(size, 2), dtype="float64")
    value = weft.asarray(np.arange(2.0 * size).reshape(size, 2) + 10.0 * rank)
    every = [np.arange(2.0 * size).reshape(size, 2) + 10.0 * each for each in range(size)]
    weight = [float(each + 1) for each in range(size)]
    cases: list[tuple[Callable[[Any], Any], Any, Any]] = [
        (comm.all_reduce, sum(every), np.full((size, 2), sum(weight))),
        (comm.all_gather, np.stack(every), np.full((size, 2), sum(weight))),
        (comm.reduce_scatter, sum(every)[rank], np.repeat(weight, 2).reshape(size, 2)),
        (comm.all_to_all, np.stack([each[rank] for each in every]), np.repeat(weight, 2).reshape(size, 2)),
        (lambda x: comm.broadcast(x, 0), every[0], np.full((size, 2), sum(weight) if rank == 0 else 0.0)),
    ]
    for call, wanted, gradient in cases:
        symbol = call(x * 1.0)
        np.testing.assert_array_equal(symbol.eval(x=value)[0].numpy(), wanted)
        total = (symbol * weight[rank]).sum()
        np.testing.assert_array_equal(total.gradient(["x"]).eval(x=value)[0].numpy(), gradient)
        eager = weft.grad(lambda x, call=call: (call(x * 1.0) * weight[rank]).sum())(value)
        np.testing.assert_array_equal(eager.numpy(), gradient)

    @weft.program
    def descend(x: weft.NDArray) -> weft.NDArray:
        found: weft.NDArray = weft.grad(lambda x: (comm.all_to_all(x * 1.0) * weight[rank]).sum())(x)
        return found

    np.testing.assert_array_equal(descend(value).numpy(), cases[3][2])


@check
def gradients_go_through_collectives(comm: Communicator) -> None:
    x, weight = weft.full(3, 1.0 + comm.rank), float(comm.rank + 1)
    weights = [rank + 1.0 for rank in range(comm.size)]

    def reduced(x: weft.NDArray) -> weft.NDArray:
        y = x * 1.0
        return (comm.all_reduce(y) * weight).sum()

    assert weft.grad(reduced)(x).numpy().tolist() == [sum(weights)] * 3
    gathered = weft.grad(lambda x: (comm.all_gather(x)[comm.rank] * weight).sum())(x)
    assert gathered.numpy().tolist() == [weight] * 3
    scattered = weft.grad(lambda x: (comm.reduce_scatter(x) * weight).sum())(weft.ones((comm.size, 2)))
    assert scattered.numpy().tolist() == [[each] * 2 for each in weights]
    with pytest.raises(weft.errors.GradientError, match="max"):
        weft.grad(lambda x: comm.all_reduce(x * 1.0, "max").sum())(x)


@check
def bad_input_is_refused_before_it_is_pushed(comm: Communicator) -> None:
    x = weft.zeros(8)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    cases: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: Communicator(3), CommunicatorTypeError, "made of one of mpi4py's, not of int"),
        (lambda: comm.all_reduce(np.ones(3)), CommunicatorTypeError, "NDArray"),  # type: ignore[arg-type]
        (lambda: comm.all_reduce(weft.ones(3), "product"), CommunicatorValueError, "'sum', 'mean'"),  # type: ignore[arg-type]
        (lambda: comm.all_reduce(weft.broadcast_to(weft.ones(1), (3,))), CommunicatorValueError, "read-only"),
        (lambda: comm.all_reduce(weft.ones(3), out=weft.ones(4)), CommunicatorValueError, r"\(4,\)"),
        (lambda: comm.all_reduce(weft.ones(3), out=weft.ones(3, dtype="float32")), CommunicatorTypeError, "float32"),
        (lambda: comm.all_reduce(x[:4], out=x[2:6]), CommunicatorValueError, "overlaps"),
        (lambda: comm.broadcast(x, comm.size), CommunicatorValueError, f"root={comm.size} is no rank"),
        (lambda: comm.broadcast(x, 0.5), CommunicatorTypeError, "root= is a whole number, not 0.5"),  # type: ignore[arg-type]
        (lambda: comm.all_gather(x, out=weft.zeros(8)), CommunicatorValueError, r"out= has the shape \(8,\)"),
        (lambda: comm.send(x, -1), CommunicatorValueError, "dest=-1"),
        (lambda: comm.recv(x, 0, tag=1 << 20), CommunicatorValueError, "tag"),
        (lambda: comm.all_to_all(weft.ones((comm.size * 2 + 1, 2))), CommunicatorValueError, "first axis"),
        (lambda: comm.reduce_scatter(weft.asarray(1.0)), CommunicatorValueError, "first axis"),
        (lambda: Communicator("world"), CommunicatorError, "mpi4py"),
        (lambda: Communicator(timeout=-1), ValueError, "positive"),
        (lambda: comm.split("left"), CommunicatorTypeError, "color= is a whole number, not 'left'"),  # type: ignore[arg-type]
        (lambda: comm.split(0, key="first"), CommunicatorTypeError, "key= is a whole number"),  # type: ignore[arg-type]
        (lambda: comm.split(-1), CommunicatorError, "at least 0"),
        (lambda: opt.DistOpt(opt.SGD(lr=0.1), communicator=3), ArgumentTypeError, "not int"),  # type: ignore[arg-type]
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()
    assert comm.all_reduce(x[:4], out=x[4:]).numpy().tolist() == [0.0] * 4  # other parts of one buffer


@check
def null_and_freed_communicators_are_refused(comm: Communicator) -> None:
    from mpi4py import MPI

    with pytest.raises(CommunicatorError, match="freed"):
        Communicator(MPI.COMM_NULL)
    freed = comm._comm.Dup()
    freed.Free()
    with pytest.raises(CommunicatorError, match="freed"):
        Communicator(freed)


@check
def a_trace_shows_bytes_and_ranks_on_a_lane_of_their_own(comm: Communicator) -> None:
    x = weft.ones(1024, dtype="float32")
    x.wait_to_read()
    with weft.trace() as trace:
        comm.all_reduce(x).wait_to_read()
        (x + 1.0).wait_to_read()
    text = str(trace.summary())
    assert f"all_reduce(sum), 4.0 KiB, {comm.size} ranks" in text


@check
def small_ones_in_a_row(comm: Communicator) -> None:
    every = [weft.full(1, float(comm.rank + at)) for at in range(200)]
    for x in every:
        comm.all_reduce(x)
    ranks = sum(range(comm.size))
    assert [float(x[0]) for x in every] == [ranks + comm.size * at for at in range(200)]
