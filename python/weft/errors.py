"""The errors of weft: one class per kind of mistake.

Every class derives from `WeftError` and from the built-in class that a caller would catch without knowing weft.
An exception raised by a callable is none of these: it is delivered as itself, with a note that names the op.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "ArgumentDivisionError", "ArgumentIndexError", "ArgumentOverflowError", "ArgumentTypeError", "ArgumentValueError", "AxisError", "CaptureError", "CheckpointError",
    "CheckpointMissingError", "CommunicatorError", "CommunicatorTypeError", "CommunicatorUnavailableError",
    "CommunicatorValueError", "CompletionError", "CudaError", "CudaOutOfMemoryError", "CudaUnavailableError",
    "DeadlockError", "EngineClosedError", "ForkedError", "GradientError", "GraphError", "KernelArgumentError",
    "KernelCompileError", "LinAlgError", "ModelError", "NativeOpError", "NestedPushError", "OpCancelledError", "OutOfMemoryError", "PendingLimitError",
    "PlanError", "RecordingWarning", "RecoveryError", "ShapeError", "StateFileError", "TraceError", "UndeclaredAccessWarning",
    "VariableDeletedError", "WaitTimeoutError", "WeftError", "WrongEngineError",
]  # fmt: skip


class WeftError(Exception):
    """The root of all errors of weft.

    Catch it to handle every mistake in the use of an engine in one place.

    Examples
    --------
    >>> import weft
    >>> try:
    ...     weft.Engine(policy="fastest")
    ... except weft.errors.WeftError as error:
    ...     print(type(error).__name__)
    ArgumentValueError
    """


class ArgumentTypeError(WeftError, TypeError):
    """An argument has the wrong type: a payload that cannot be called, a list that holds no variables.

    Nothing was pushed or changed. The message names the argument; pass one of the type that it asks for.

    Examples
    --------
    >>> import weft
    >>> with weft.Engine(workers=1) as engine:
    ...     engine.push("not a callable")
    Traceback (most recent call last):
    ...
    weft.errors.ArgumentTypeError: ...
    """


class ArgumentValueError(WeftError, ValueError):
    """An argument has the right type and an impossible value: an unknown policy, no workers, a null address.

    Nothing was pushed or changed. The message names the argument and the values that it may have.

    Examples
    --------
    >>> import weft
    >>> weft.Engine(workers=0)
    Traceback (most recent call last):
    ...
    weft.errors.ArgumentValueError: ...
    """


class ArgumentIndexError(WeftError, IndexError):
    """An index names no element, or is no index: out of bounds, too many, of a dtype that positions do not have.

    The message has the index, and the axis and its length, or the shape.

    Examples
    --------
    >>> import weft
    >>> weft.ones(3)[5]
    Traceback (most recent call last):
    ...
    weft.errors.ArgumentIndexError: index 5 is out of bounds for axis 0 with size 3
    """


class ArgumentOverflowError(WeftError, OverflowError):
    """A number is too large for its place: an element of a dtype, a size, an axis.

    The message has the number, or its place.

    Examples
    --------
    >>> import weft
    >>> weft.add(weft.ones(3, dtype="uint8"), 300)
    Traceback (most recent call last):
    ...
    weft.errors.ArgumentOverflowError: Python integer 300 out of bounds for uint8
    """


class ArgumentDivisionError(WeftError, ZeroDivisionError):
    """A divisor among the arguments is 0: the step of a range.

    Examples
    --------
    >>> import weft
    >>> weft.arange(1, 0, 0)
    Traceback (most recent call last):
    ...
    weft.errors.ArgumentDivisionError: ...
    """


class LinAlgError(ArgumentValueError, np.linalg.LinAlgError):
    """A matrix is none that the function takes: singular, not square, not positive definite. It is also `numpy.linalg.LinAlgError`.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.inv(weft.zeros((2, 2))).numpy()
    Traceback (most recent call last):
    ...
    weft.errors.LinAlgError: Singular matrix
    weft: op 'linalg.inv' pushed at ...
    """


class OutOfMemoryError(WeftError, MemoryError):
    """There is no memory for an array, or no address for its last element.

    Examples
    --------
    >>> import weft
    >>> weft.arange(2**59).wait_to_read()
    Traceback (most recent call last):
    ...
    weft.errors.OutOfMemoryError: ...
    """


class AxisError(ArgumentValueError, np.exceptions.AxisError):
    """An array has no such axis. It is also NumPy's `numpy.exceptions.AxisError`, which is an IndexError and a ValueError.

    The message has the axis and the number of axes.

    Examples
    --------
    >>> import weft
    >>> weft.sum(weft.ones((2, 3)), axis=2)
    Traceback (most recent call last):
    ...
    weft.errors.AxisError: axis 2 is out of bounds for array of dimension 2
    """


class VariableDeletedError(WeftError, ValueError):
    """A variable was used after its deletion was pushed.

    Deletion is a variable's last access. Push the deletion later, or make a new variable.

    Examples
    --------
    >>> import weft
    >>> with weft.Engine(workers=1) as engine:
    ...     variable = engine.new_variable("x")
    ...     engine.delete_variable(variable)
    ...     engine.push(print, [variable])
    Traceback (most recent call last):
    ...
    weft.errors.VariableDeletedError: ...
    """


class WrongEngineError(WeftError, ValueError):
    """A variable was used with an engine that did not make it.

    Two engines know nothing of each other's ops. Push on ``variable.engine``, or make the variable with the engine
    that is to use it.

    Examples
    --------
    >>> import weft
    >>> with weft.Engine(workers=1) as one, weft.Engine(workers=1) as other:
    ...     one.push(print, [other.new_variable("x")])
    Traceback (most recent call last):
    ...
    weft.errors.WrongEngineError: ...
    """


class DeadlockError(WeftError, RuntimeError):
    """A wait inside an op could never end.

    Raised instead of hanging when an op waits for a variable that it accesses itself, for all ops, or round a cycle
    of waiting ops. The message names the ops. Wait outside, or push a further op with the accesses that it needs.

    Examples
    --------
    >>> import weft
    >>> with weft.Engine(workers=1) as engine:
    ...     engine.push(engine.wait_for_all, name="waits for itself")
    ...     engine.wait_for_all()
    Traceback (most recent call last):
    ...
    weft.errors.DeadlockError: ...
    """


class NestedPushError(WeftError, RuntimeError):
    """Inside an op, arithmetic on an array that the op itself accesses.

    Its ops would come after everything that was pushed on the array since, not with the running op. Compute with the
    array's values, which `numpy.asarray` gives inside the op without a wait. Nothing was pushed.

    Examples
    --------
    >>> import weft
    >>> x = weft.zeros(3)
    >>> def add_one():
    ...     global x
    ...     x += 1
    >>> x.engine.push(add_one, mutate_vars=[x])
    >>> x.wait_to_read()
    Traceback (most recent call last):
    ...
    weft.errors.NestedPushError: ...
    """


class EngineClosedError(WeftError, RuntimeError):
    """The engine was closed and takes no more ops.

    Push before ``close()`` or before the end of the ``with`` block, or make another engine; where the default engine
    was closed, ``weft.set_engine(None)`` makes the next use start a new one.

    Examples
    --------
    >>> import weft
    >>> engine = weft.Engine(workers=1)
    >>> engine.close()
    >>> engine.push(print)
    Traceback (most recent call last):
    ...
    weft.errors.EngineClosedError: ...
    """


class PendingLimitError(WeftError, RuntimeError):
    """A push would pass a limit on pending ops or bytes, and the engine was made with ``on_limit="raise"``.

    The op was not pushed. Wait for earlier ops and push again, raise ``max_pending_ops`` or ``max_pending_bytes``,
    or make the engine with ``on_limit="block"``.

    Examples
    --------
    >>> import threading, weft
    >>> gate = threading.Event()
    >>> with weft.Engine(workers=1, max_pending_ops=1, on_limit="raise") as engine:
    ...     engine.push(gate.wait)
    ...     try:
    ...         engine.push(print)
    ...     except weft.errors.PendingLimitError:
    ...         print("too many")
    ...     gate.set()
    too many
    """


class WaitTimeoutError(WeftError, TimeoutError):
    """A wait's time ran out before the ops were done.

    Nothing was cancelled: the ops go on, and the wait may be repeated.

    Examples
    --------
    >>> import threading, weft
    >>> gate = threading.Event()
    >>> with weft.Engine(workers=1) as engine:
    ...     variable = engine.new_variable("x")
    ...     engine.push(gate.wait, mutate_vars=[variable])
    ...     try:
    ...         engine.wait_for_var(variable, timeout=0.01)
    ...     except TimeoutError as error:
    ...         print(type(error).__name__)
    ...     gate.set()
    WaitTimeoutError
    """


class RecoveryError(WeftError, RuntimeError):
    """The last good version of something is gone, so that it cannot be the value again.

    Raised by `weft.recover` and its kin. Its ``__cause__`` is the exception of the op that spoilt it. Nothing has
    changed: overwrite the failed objects, or load saved ones.

    Examples
    --------
    >>> import weft
    >>> engine = weft.Engine(workers=1)
    >>> x = engine.new_variable("x")
    >>> engine.push(lambda: 1 / 0, mutate_vars=[x])
    >>> try:
    ...     x.recover()
    ... except RuntimeError as error:
    ...     print(type(error).__name__, "for a", type(error.__cause__).__name__)
    RecoveryError for a ZeroDivisionError
    """


class CompletionError(WeftError, RuntimeError):
    """A completion token was dropped, or used twice.

    An op pushed with ``push_async`` fails with this error if its token was dropped: keep the token until the work is
    done, then call ``done()`` or ``done.fail(error)``. A second use of a token raises this error to the caller and
    changes nothing.

    Examples
    --------
    >>> import weft
    >>> with weft.Engine(workers=1) as engine:
    ...     engine.push_async(lambda done: None)  # drops its token
    ...     engine.wait_for_all()
    Traceback (most recent call last):
    ...
    weft.errors.CompletionError: ...
    """


class NativeOpError(WeftError, RuntimeError):
    """A native function pushed with ``push_native`` returned a non-zero status.

    Parameters
    ----------
    message : str
        The failed function, with the name of the op.
    code : int
        The status that the function returned.

    Attributes
    ----------
    code : int
        The status that the function returned; its meaning belongs to that function.

    Examples
    --------
    >>> import weft
    >>> weft.errors.NativeOpError("the op 'solve' returned 3", 3).code
    3
    """

    code: int

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the code, which ``args`` leaves out so that ``str()`` is the message alone."""
        return type(self), (*self.args, self.code), self.__dict__


class OpCancelledError(WeftError, RuntimeError):
    """An op was dropped before it started, because its engine was closed with ``cancel=True`` or the process ended.

    The versions that it would have made fail with this error. Close with ``cancel=False`` to let pending ops run.

    Examples
    --------
    >>> import threading, weft
    >>> gate, engine = threading.Event(), weft.Engine(workers=1)
    >>> variable = engine.new_variable("x")
    >>> engine.push(gate.wait)
    >>> engine.push(print, mutate_vars=[variable])
    >>> try:
    ...     engine.close(cancel=True, timeout=0.01)
    ... except TimeoutError:  # the first op has started, and waits
    ...     gate.set()
    >>> engine.close()
    >>> type(variable.exception()).__name__
    'OpCancelledError'
    """


class TraceError(WeftError, RuntimeError):
    """A trace was used out of its turn: started twice, stopped or looked at before it was started.

    It is also raised where a second trace would record the same engine at the same time, and in a forked child, where no
    trace goes on. A trace records once: make another one with ``weft.trace()``, after the end of the one before.

    Examples
    --------
    >>> import weft
    >>> weft.trace().summary()
    Traceback (most recent call last):
    ...
    weft.errors.TraceError: ...
    """


class ForkedError(WeftError, RuntimeError):
    """In a forked child: an op was unfinished when the process forked, and its effect exists in the parent only.

    Variables that were complete at the fork can be used in the child. Wait before forking for the objects that the
    child is to use, or overwrite the variable in the child.
    """


class CudaUnavailableError(WeftError, RuntimeError):
    """CUDA was asked for and cannot be used: there is no NVIDIA driver, no such device, no CuPy or no NVRTC.

    The message names it, and the package to install. Nothing runs on the CPU instead.

    Examples
    --------
    >>> import weft
    >>> if not weft.cuda.is_available():
    ...     try:
    ...         weft.zeros(3, device="cuda:0")
    ...     except weft.errors.CudaUnavailableError as error:
    ...         assert "CUDA is not available" in str(error)
    """


class CudaError(WeftError, RuntimeError):
    """The driver refused a call, or an op failed while it ran on a device.

    The message names the op, the driver's function and its code. After a failure on the device the process cannot use
    that device any more: waits for it raise this error, too.
    """


class CudaOutOfMemoryError(CudaError, MemoryError):
    """A device had no memory for an op, after kept blocks were freed and pending frees were waited for.

    The message has the sizes. Free arrays, or work in smaller pieces.
    """


class CaptureError(WeftError, RuntimeError):
    """An op cannot be recorded, a value is not known while recording, or a program cannot be replayed now.

    The message names the op and the way out. An op that was refused has changed nothing. If the recording is
    incomplete, the end of the block raises, too, and there is no program.

    Examples
    --------
    >>> import weft
    >>> with weft.capture("step") as program:
    ...     try:
    ...         program.replay()
    ...     except weft.errors.CaptureError as error:
    ...         print(error)
    the block of the program 'step' has not ended: use the program after it
    """


class UndeclaredAccessWarning(WeftError, RuntimeWarning):  # noqa: N818 - a warning
    """The engine was not told of an access: nothing orders it.

    A task refers to an array that it does not declare; or `weft.wait` is asked for an object that no op was told to change.

    Examples
    --------
    >>> import warnings, numpy, weft
    >>> totals = numpy.zeros(3)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     @weft.task
    ...     def add() -> None:
    ...         totals[:] += 1
    >>> [warning.category.__name__ for warning in caught]
    ['UndeclaredAccessWarning']
    """


class RecordingWarning(WeftError, RuntimeWarning):  # noqa: N818 - a warning
    """A `weft.program` is recorded anew at call after call, or has recorded effects that replays would not repeat.

    One argument alone has made many programs; or numbers were drawn from `numpy.random`, or another generator that is
    not weft's, while it was recorded, and would be the same at each call. The message names the argument, or the
    generator, and the replacement. To make it an error, use ``warnings.simplefilter``.

    Examples
    --------
    >>> import warnings, weft
    >>> @weft.program
    ... def scale(x, rate):
    ...     return x * rate
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     for rate in range(8):
    ...         y = scale(weft.ones(2), 1.0 / (1 + rate))
    >>> [warning.category.__name__ for warning in caught]
    ['RecordingWarning']
    """


class KernelCompileError(WeftError, ValueError):
    """CUDA's compiler refused the source of a kernel. The message has its log."""


class PlanError(WeftError, ValueError, MemoryError):
    """No plan keeps to the bytes that are allowed, or none was found in the time that is.

    The message names the limit, the lower bound, and the best that was found. Allow more bytes or, where the lower
    bound is within the limit, more seconds.

    Examples
    --------
    >>> import weft
    >>> weft.graph.plan_offsets([0, 1], [2, 3], [64, 64], capacity=100)
    Traceback (most recent call last):
    ...
    weft.errors.PlanError: ...
    """


class KernelArgumentError(WeftError, TypeError):
    """A kernel was called with arguments that are not its parameters'. Nothing was pushed.

    The message names the argument, and the parameter as the kernel's source has it.
    """


class GraphError(WeftError, ValueError):
    """A symbol or a graph is wrong, or a file is none: names, counts, indices, cycles, unknown ops, missing attributes.

    The message names the node, and the line that made it where that is known. Nothing has changed.

    Examples
    --------
    >>> import weft
    >>> weft.symbol.load_json("{}")
    Traceback (most recent call last):
    ...
    weft.errors.GraphError: the graph has no 'nodes'
    """


class ShapeError(GraphError):
    """Shapes, or dtypes, contradict each other, or an op refuses those that it is given.

    The message names the node, the input and both shapes.

    Examples
    --------
    >>> import weft
    >>> x, y = weft.symbol.Variable("x"), weft.symbol.Variable("y")
    >>> (x + y).infer_shape(x=(2, 3), y=(4,))
    Traceback (most recent call last):
    ...
    weft.errors.ShapeError: node 'add0' (op 'add'), inputs of shapes (2, 3), (4,): operands could not be broadcast ...
    """


class GradientError(WeftError, ValueError):
    """A gradient was asked for that there is not, or that cannot be computed any more.

    The message names the op or the array, and the lines where it was made and, if that is the reason, overwritten.
    """


class ModelError(WeftError, RuntimeError):
    """A model was used before it was compiled.

    Its layers are sized by their inputs: call ``net.compile([x], is_train=True, use_graph=True)`` first.
    """


class StateFileError(WeftError, ValueError):
    """A file does not hold the states of this model: it is cut short, comes from elsewhere, or is another model's.

    The message says which names and shapes differ. Nothing was changed.
    """


class CheckpointError(WeftError, ValueError):
    """A file of parameters is damaged, holds unreadable entries, or has other names than the network that it belongs to.

    The message names the file, the place in it, and the names of both sides.
    """


class CheckpointMissingError(CheckpointError, FileNotFoundError):
    """A file of a checkpoint is not there. The message says which epochs there are."""


class CommunicatorError(WeftError, RuntimeError):
    """Ranks that work together could not: one has failed, ended, or called something else; or MPI has refused.

    The message names rank, op and line. The communicator is broken then, on all ranks, as they no longer agree on the
    next call: mend the named one, and start the job again. See `weft.distributed.Communicator`.

    Examples
    --------
    >>> import weft
    >>> weft.distributed.find("nobody's")
    Traceback (most recent call last):
    ...
    weft.errors.CommunicatorError: ...
    """


class CommunicatorValueError(CommunicatorError, ValueError):
    """A collective was given an impossible value: a rank out of range, memory that is read-only or overlaps in part.

    Nothing was pushed; but the other ranks wait for what this one did not call.
    """


class CommunicatorTypeError(CommunicatorError, TypeError):
    """A collective was given what MPI cannot send: no array, or one of a dtype that MPI lacks or does not reduce.

    Nothing was pushed; but the other ranks wait for what this one did not call. A `Communicator` made of an object that
    is no communicator of mpi4py raises it, too.
    """


class CommunicatorUnavailableError(CommunicatorError, ImportError):
    """There is no mpi4py, or it finds no MPI; or an array on a GPU is to travel, and CuPy has no NCCL.

    Install ``weft[mpi]``, and ``mpich`` or ``openmpi`` where the system brings no MPI.
    """
