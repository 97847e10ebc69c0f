"""Recovery after a failure: `recover`."""

from __future__ import annotations

from weft._core import NDArray, Variable, _recover
from weft._engine.default import get_engine
from weft._engine.task_handle import TaskHandle
from weft.errors import ArgumentTypeError


def recover(*objs: object, timeout: float | None = None) -> list[BaseException]:
    """Make the last good versions of objects their values again, after ops that were to change them failed.

    An op that was skipped, as an input had failed, has not touched its outputs: the last good version still lies there.
    One that raised while it ran may have changed half of it. So `recover` waits for all ops on the objects, and clears
    their failures: of all of them or, where the last good version of one is gone, of none.

    The first failure itself, a loss with its gradients, say, cannot be recovered, and need not be: the next ops make it
    anew.

    Parameters
    ----------
    *objs : object
        Arrays and variables of any engine, or objects that were given to tasks on the default engine. Views share
        memory, and are recovered together.
    timeout : float, optional
        The most seconds to wait for each engine's ops; None waits without limit.

    Returns
    -------
    list of BaseException
        The failures of the objects, each exception once; these count as told. Empty if nothing had failed.

    Raises
    ------
    RecoveryError
        If an op that ran had begun to change an object, or if nothing was ever written to it. Nothing has changed then.
    WaitTimeoutError
        If the time runs out. The ops go on.
    DeadlockError
        If called inside an op that accesses one of `objs` itself.
    ArgumentTypeError
        If an object can have no variable, or is the handle of a task: call the task again.

    See Also
    --------
    weft.model.Model.recover : Do so for all that a training step changes.

    Examples
    --------
    >>> import numpy, weft
    >>> @weft.task
    ... def compute(gradient: weft.Overwrite[numpy.ndarray]) -> None:
    ...     raise ValueError("a bad batch")
    >>> @weft.task
    ... def update(weights: weft.Mutate[numpy.ndarray], gradient: weft.Read[numpy.ndarray]) -> None:
    ...     weights -= gradient
    >>> weights, gradient = numpy.ones(2), numpy.zeros(2)
    >>> computing = compute(gradient)
    >>> updating = update(weights, gradient)
    >>> weft.recover(weights)
    [ValueError('a bad batch')]
    >>> weft.wait(weights)
    >>> weights
    array([1., 1.])
    """
    return _recover([_recovered(obj) for obj in objs], timeout)


def recover_one(self: Variable | NDArray, timeout: float | None = None) -> BaseException | None:
    """Make the last good version the value again, after ops that were to change it failed or were skipped.

    Waits for all ops that change it. See `weft.recover`.

    Parameters
    ----------
    timeout : float, optional
        Seconds; no limit by default.

    Returns
    -------
    BaseException or None
        Its failure, which counts as told; None if it had not failed.

    Raises
    ------
    RecoveryError
        If an op that ran had begun to change it, or if nothing was ever written to it. Nothing has changed then.
    WaitTimeoutError
        If the time runs out.

    Examples
    --------
    >>> import weft
    >>> x = weft.ones(2)
    >>> x.recover()  # nothing has failed
    """
    failed = _recover([self], timeout)
    return failed[0] if failed else None


def _recovered(obj: object) -> Variable | NDArray:
    if isinstance(obj, TaskHandle):
        raise ArgumentTypeError("the result of a task has no earlier value to recover: call the task again")
    return obj if isinstance(obj, (Variable, NDArray)) else get_engine().variable_of(obj)
