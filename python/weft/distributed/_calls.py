"""Collectives as ops of the registry: their rules, their gradients, and how they reach a communicator.

An op names its communicator, so that graphs that hold it can be saved, and compared. Other layouts go through a
contiguous array.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from weft._call.calls import one
from weft._call.copies import copy_cast
from weft._call.outputs import check_writable
from weft._core import NDArray, beside
from weft._ops.elementwise import divide
from weft._registry.avals import Aval
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op
from weft._registry.symbol_hook import is_symbol
from weft.distributed import _halves as halves, _mpi, _nccl
from weft.distributed._registry import find
from weft.errors import CommunicatorTypeError, CommunicatorValueError, GradientError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._registry.gradients import Node
    from weft._registry.op import Op
    from weft.distributed._communicator import Communicator

#: Elements that MPI counts in one call.
_MOST = 2**31 - 1
#: Tags below this one leave room for those of headers.
_TAGS = 1 << 14


def _like(x: Aval, *, communicator: str, **_: object) -> Aval:
    del communicator
    return Aval(x.shape, x.dtype)


def _reduced(x: Aval, *, reduction: str, communicator: str, **_: object) -> Aval:
    del communicator
    _mpi.check_operation(reduction, x.dtype)
    return Aval(x.shape, x.dtype)


def _gathered(x: Aval, *, ranks: int, communicator: str) -> Aval:
    del communicator
    return Aval((ranks, *x.shape), x.dtype)


def _scattered(x: Aval, *, reduction: str, ranks: int, communicator: str) -> Aval:
    del communicator
    _mpi.check_operation(reduction, x.dtype)
    _check_parts("reduce_scatter", x.shape, ranks)
    share = x.shape[0] // ranks
    return Aval(x.shape[1:] if x.shape[0] == ranks else (share, *x.shape[1:]), x.dtype)


def _exchanged(x: Aval, *, ranks: int, communicator: str) -> Aval:
    del communicator
    _check_parts("all_to_all", x.shape, ranks)
    return Aval(x.shape, x.dtype)


def _check_parts(name: str, shape: tuple[int, ...], ranks: int) -> None:
    if not shape or not shape[0] or shape[0] % ranks:
        raise CommunicatorValueError(
            f"{name}() takes a part for each of {ranks} ranks along the first axis, and an array of shape {shape} was given"
        )


def _refuse(*_: Elements, communicator: str, **__: object) -> None:
    """Stand for a computation: no rank alone computes the result of several."""
    raise CommunicatorTypeError(
        f"a collective of communicator {communicator!r} is carried out for arrays, and not for values"
    )


_ALL_REDUCE = register_op("all_reduce", infer=_reduced, inplace=[(0, 0)])(_refuse)
_BROADCAST = register_op("broadcast_from", infer=_like, inplace=[(0, 0)])(_refuse)
_ALL_GATHER = register_op("all_gather", infer=_gathered)(_refuse)
_REDUCE_SCATTER = register_op("reduce_scatter", infer=_scattered)(_refuse)
_ALL_TO_ALL = register_op("all_to_all", infer=_exchanged)(_refuse)

for _op, _text in (
    (_ALL_REDUCE, "Reduce the arrays of all ranks, and give the result to all."),
    (_BROADCAST, "Give all ranks what one has."),
    (_ALL_GATHER, "Give all ranks the arrays of all, along a new first axis."),
    (_REDUCE_SCATTER, "Reduce the arrays of all ranks, and give each its part."),
    (_ALL_TO_ALL, "Exchange parts along the first axis."),
):
    _op.describe(_text)
    _op.set_attribute("pure", False)


def all_reduce(comm: Communicator, x: Any, reduction: str, out: NDArray | None) -> NDArray:
    """Push `Communicator.all_reduce`."""
    target = x if out is None else out
    return _called(_ALL_REDUCE, comm, x, target, reduction=reduction)


def broadcast(comm: Communicator, x: Any, root: int) -> NDArray:
    """Push `Communicator.broadcast`."""
    return _called(_BROADCAST, comm, x, x, root=_rank(comm, root, "root"))


def all_gather(comm: Communicator, x: Any, out: NDArray | None) -> NDArray:
    """Push `Communicator.all_gather`."""
    return _called(_ALL_GATHER, comm, x, out, ranks=comm.size)


def reduce_scatter(comm: Communicator, x: Any, reduction: str, out: NDArray | None) -> NDArray:
    """Push `Communicator.reduce_scatter`."""
    return _called(_REDUCE_SCATTER, comm, x, out, reduction=reduction, ranks=comm.size)


def all_to_all(comm: Communicator, x: Any, out: NDArray | None) -> NDArray:
    """Push `Communicator.all_to_all`."""
    return _called(_ALL_TO_ALL, comm, x, out, ranks=comm.size)


def _called(op: Op, comm: Communicator, x: Any, out: NDArray | None, **attributes: Any) -> NDArray:
    """Check a communicator's arguments, and push the op."""
    if is_symbol(x):
        return one(op, x, communicator=comm.name, **attributes)
    comm._refuse()
    _check_array(op.name, x)
    if out is not None:
        _check_target(op, x, out)
        due = op.infer(Aval(x.shape, x.dtype), communicator=comm.name, **attributes)
        if isinstance(due, Aval) and out.shape != due.shape:
            raise CommunicatorValueError(
                f"{op.name}() gives an array of shape {due.shape}, and out= has the shape {out.shape}"
            )
    return one(op, x, out=out, communicator=comm.name, **attributes)


def _check_array(name: str, x: object) -> None:
    if not isinstance(x, NDArray):
        raise CommunicatorTypeError(f"{name}() takes an NDArray, not {type(x).__name__}: weft.asarray(x) makes one")
    if x._elsewhere:
        _nccl.check(name, x)
        return
    if x.size > _MOST:
        raise CommunicatorValueError(
            f"{name}() takes arrays of at most {_MOST} elements, and one has {x.size}: send parts"
        )
    _mpi.datatype_of(x.dtype)


def _check_target(op: Op, x: NDArray, out: NDArray) -> None:
    _check_array(op.name, out)
    try:
        check_writable(out)
    except ValueError as error:
        raise CommunicatorValueError(f"{op.name}() cannot write its result: {error}") from None
    if out.device != x.device and (out._elsewhere or x._elsewhere):
        raise CommunicatorValueError(f"{op.name}() was given an array on {x.device} and out= on {out.device}")
    if out.dtype != x.dtype:
        raise CommunicatorTypeError(f"{op.name}() gives {x.dtype}, and out= has the dtype {out.dtype}")
    same = out is x or (out._offset == x._offset and out.strides == x.strides and out.shape == x.shape)
    if x._shares_buffer(out) and not (same and op.inplace) and _overlap(x, out):
        raise CommunicatorValueError(
            f"{op.name}() was given an out= of shape {out.shape} that overlaps its input of shape {x.shape} in part: pass "
            "the input itself, or other memory"
        )


def _overlap(one: NDArray, other: NDArray) -> bool:
    """Return whether two views of a buffer reach common bytes."""

    def reach(x: NDArray) -> tuple[int, int]:
        if not x.size:
            return 0, 0
        spans = [(length - 1) * stride for length, stride in zip(x.shape, x.strides, strict=True)]
        return x._offset + sum(min(span, 0) for span in spans), x._offset + sum(max(s, 0) for s in spans) + x.itemsize

    (first, last), (begin, end) = reach(one), reach(other)
    return first < end and begin < last


def whole(value: int, what: str) -> int:
    """Return a whole number that was given as such."""
    try:
        return operator.index(value)
    except TypeError:
        raise CommunicatorTypeError(f"{what} is a whole number, not {value!r}") from None


def _rank(comm: Communicator, rank: int, name: str) -> int:
    found = whole(rank, f"{name}=")
    if not 0 <= found < comm.size:
        raise CommunicatorValueError(f"{name}={found} is no rank of {comm!r}: ranks are 0 to {comm.size - 1}")
    return found


def _tag(tag: int) -> int:
    found = whole(tag, "tag=")
    if not 0 <= found < _TAGS:
        raise CommunicatorValueError(f"a tag is a number from 0 to {_TAGS - 1}, not {found}")
    return found


def _packed(x: NDArray, *, empty: bool = False) -> NDArray:
    """Return the array itself if it is contiguous, or else one of the same elements, or without any yet, that is."""
    if x._contiguous:
        return x
    made = beside(x, x.shape, x.dtype)
    if not empty:
        copy_cast(made, x)
    return made


def _carry(
    comm: Communicator,
    verb: str,
    work: str,
    count: int,
    target: NDArray | None,
    source: NDArray | None = None,
    *,
    peer: int = 0,
    tag: int = 0,
) -> None:
    """Push a move of elements as they are: by NCCL where they are on a GPU, by MPI elsewhere."""
    array = target if source is None else source
    assert array is not None, "there is something to move"  # a barrier goes another way
    if array._elsewhere:
        _nccl.push(comm, verb, work, count, target, source, peer=peer, tag=tag)
    else:
        comm._core.push(verb, work, _mpi.datatype_of(array.dtype), count, target, source, peer=peer, tag=tag)


def _push_reduction(
    work: str, result: NDArray, x: NDArray, comm: Communicator, reduction: str, count: int, *, in_place: bool
) -> None:
    """Push a reduction of `x` into `result`, and the division that makes a sum a mean."""
    if x.dtype.name == "float16" and not x._elsewhere:
        halves.push(work, result, x, comm, reduction)
        return
    verb = f"{work}({reduction})"
    target = _packed(result, empty=not in_place)
    source = None if in_place else _packed(x)
    if x._elsewhere:
        _nccl.push(comm, verb, work, count, target, source, reduction=reduction)
    else:
        datatype, op = _mpi.datatype_of(x.dtype), _mpi.operation_of(reduction, x.dtype)
        if work == "all_reduce" and reduction != "mean":
            comm._core.learn(x, reduction, verb, datatype, op)
        comm._core.push(verb, work, datatype, count, target, source, op=op)
    if reduction == "mean":
        divide(target, comm.size, out=target)
    if target is not result:
        copy_cast(result, target)


def _push_all_reduce(
    results: tuple[NDArray, ...], given: tuple[NDArray, ...], *, reduction: str, communicator: str
) -> bool:
    (result,), (x,) = results, given
    same = result._shares_buffer(x)  # its author has seen to it that the place is the same then
    _push_reduction("all_reduce", result, x, find(communicator), reduction, x.size, in_place=same)
    return True


def _push_reduce_scatter(
    results: tuple[NDArray, ...], given: tuple[NDArray, ...], *, reduction: str, ranks: int, communicator: str
) -> bool:
    (result,), (x,) = results, given
    _push_reduction("reduce_scatter", result, x, find(communicator), reduction, x.size // ranks, in_place=False)
    return True


def _push_broadcast(results: tuple[NDArray, ...], given: tuple[NDArray, ...], *, root: int, communicator: str) -> bool:
    (result,), (x,) = results, given
    comm = find(communicator)
    target = _packed(result, empty=comm.rank != root)
    if comm.rank == root and not result._shares_buffer(x):
        copy_cast(target, x)
    _carry(comm, f"broadcast(root={root})", "broadcast", x.size, target, peer=root)
    if target is not result and (comm.rank != root or not result._shares_buffer(x)):
        copy_cast(result, target)
    return True


def _push_exchange(work: str, result: NDArray, x: NDArray, comm: Communicator, count: int) -> bool:
    target = _packed(result, empty=True)
    _carry(comm, work, work, count, target, _packed(x))
    if target is not result:
        copy_cast(result, target)
    return True


def _push_all_gather(
    results: tuple[NDArray, ...], given: tuple[NDArray, ...], *, ranks: int, communicator: str
) -> bool:
    del ranks
    (result,), (x,) = results, given
    return _push_exchange("all_gather", result, x, find(communicator), x.size)


def _push_all_to_all(
    results: tuple[NDArray, ...], given: tuple[NDArray, ...], *, ranks: int, communicator: str
) -> bool:
    (result,), (x,) = results, given
    return _push_exchange("all_to_all", result, x, find(communicator), x.size // ranks)


for _name in ("push", "push_on_device"):
    _ALL_REDUCE.set_attribute(_name, _push_all_reduce)
    _BROADCAST.set_attribute(_name, _push_broadcast)
    _ALL_GATHER.set_attribute(_name, _push_all_gather)
    _REDUCE_SCATTER.set_attribute(_name, _push_reduce_scatter)
    _ALL_TO_ALL.set_attribute(_name, _push_all_to_all)


def send(comm: Communicator, x: NDArray, dest: int, tag: int) -> None:
    """Push `Communicator.send`."""
    comm._refuse()
    _check_array("send", x)
    peer, x = _rank(comm, dest, "dest"), x._now
    _carry(comm, f"send(dest={peer})", "send", x.size, None, _packed(x), peer=peer, tag=_tag(tag))


def recv(comm: Communicator, x: NDArray, source: int, tag: int) -> NDArray:
    """Push `Communicator.recv`."""
    comm._refuse()
    _check_array("recv", x)
    try:
        check_writable(x)
    except ValueError as error:
        raise CommunicatorValueError(f"recv() cannot write the message: {error}") from None
    peer = _rank(comm, source, "source")
    here = x._now
    target = _packed(here, empty=True)
    _carry(comm, f"recv(source={peer})", "recv", here.size, target, peer=peer, tag=_tag(tag))
    if target is not here:
        copy_cast(here, target)
    return x


def barrier(comm: Communicator) -> None:
    """Push `Communicator.barrier`."""
    comm._core.push("barrier", "barrier", 0, 0)


@gradient_of("all_reduce")
def _of_all_reduce(node: Node, grads: Any) -> Any:
    return (get_op("all_reduce")(grads[0], **_linear(node, "all_reduce")),)


@gradient_of("broadcast_from")
def _of_broadcast(node: Node, grads: Any) -> Any:
    name = node.attributes["communicator"]
    total = get_op("all_reduce")(grads[0], reduction="sum", communicator=name)
    return (total if find(name).rank == node.attributes["root"] else total * 0,)


@gradient_of("all_gather")
def _of_all_gather(node: Node, grads: Any) -> Any:
    return (get_op("reduce_scatter")(grads[0], reduction="sum", **node.attributes),)


@gradient_of("reduce_scatter", inputs=())
def _of_reduce_scatter(node: Node, grads: Any) -> Any:
    attributes = _linear(node, "reduce_scatter")
    mean = attributes.pop("reduction") == "mean"
    found = one(get_op("all_gather"), grads[0], **attributes)
    shape = tuple(node.inputs[0].shape)
    found = found if tuple(found.shape) == shape else found.reshape(shape)
    return (found / attributes["ranks"] if mean else found,)


@gradient_of("all_to_all")
def _of_all_to_all(node: Node, grads: Any) -> Any:
    return (get_op("all_to_all")(grads[0], **node.attributes),)


def _linear(node: Node, name: str) -> dict[str, Any]:
    """Return the attributes of a reduction that has a gradient."""
    attributes = dict(node.attributes)
    if attributes["reduction"] not in {"sum", "mean"}:
        raise GradientError(f"{name}({attributes['reduction']}) has no gradient: those of sum and mean do")
    return attributes
