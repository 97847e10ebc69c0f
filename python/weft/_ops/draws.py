"""The push of a draw: the work of NumPy's `Generator`, on a state that draws mutate.

The state of a generator is a small array: the words of NumPy's PCG64 or Philox. An op that draws mutates it, so the
engine runs the draws of one generator in the order of their pushes, at any worker count, and all else beside them. A
worker loads the words into its own NumPy generator, draws, and stores them.

Here: state, pushing, and `distribution`, which turns a declaration (a signature and one sentence) into a method.
The declarations themselves are in `weft.random`.
"""

from __future__ import annotations

import functools
import inspect
import operator
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, cast

import numpy as np

from weft._call.calls import call
from weft._core import NDArray, Scope, copy_elements, push_compute, recording, unrecorded
from weft._registry.avals import Aval
from weft._registry.brief import brief
from weft._registry.defaults import state
from weft._registry.gradients import refuse_gradient
from weft._registry.op import Op, group, register_op
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    import numpy.typing as npt

state(group("random"), pure=False)

Size: TypeAlias = int | Sequence[int] | None
Parameter: TypeAlias = "NDArray | npt.ArrayLike"
Shape: TypeAlias = tuple[int, ...]

#: The arguments of a distribution's method besides the distribution's parameters.
_OPTIONS = frozenset({"self", "size", "dtype", "out", "method", "endpoint", "check_valid", "tol"})
#: One line for each parameter's name, for the docstrings.
_MEANING = {
    "a": "Shape parameter, positive.",
    "alpha": "Concentrations of the k components, positive; shape ``(k,)``.",
    "b": "Second shape parameter, positive.",
    "check_valid": "What to do when `cov` is not positive semidefinite.",
    "colors": "Numbers of items of each of the k kinds; shape ``(k,)``.",
    "cov": "Covariance, symmetric and positive semidefinite; shape ``(k, k)``.",
    "df": "Degrees of freedom, positive.",
    "dfden": "Degrees of freedom of the denominator, positive.",
    "dfnum": "Degrees of freedom of the numerator, positive.",
    "dtype": "Type of the result.",
    "endpoint": "Whether `high` itself may be drawn.",
    "high": "Upper end.",
    "kappa": "Concentration, not negative.",
    "lam": "Expected number of events, not negative.",
    "left": "Lower end.",
    "loc": "Centre.",
    "low": "Lower end, which may be drawn.",
    "mean": "Mean.",
    "method": "NumPy's algorithm of that name.",
    "mode": "Where the density peaks, between `left` and `right`.",
    "mu": "Mode, in radians.",
    "n": "Number of trials or of successes wanted.",
    "nbad": "Number of items of the other kind.",
    "ngood": "Number of items of the kind that is counted.",
    "nonc": "Non-centrality, not negative.",
    "nsample": "Number of items taken.",
    "out": "Array to fill instead of a new one.",
    "p": "Probability, from 0 to 1.",
    "pvals": "Probabilities of the k outcomes, which sum to 1; shape ``(..., k)``.",
    "right": "Upper end.",
    "scale": "Scale, not negative.",
    "shape": "Shape parameter, not negative.",
    "sigma": "Standard deviation of the logarithm, not negative.",
    "size": "Shape of the result; by default that of the parameters, broadcast.",
    "tol": "Tolerance of the check of `cov`.",
}

_threads = threading.local()
#: The length of a PCG64 state, which distinguishes it from one of Philox.
PCG64_WORDS = 6
_PHILOX_WORDS = 13
_WORD = (1 << 64) - 1


#: What is told of the state of each generator that is drawn from, before the draw.
_WATCH: ContextVar[Callable[[NDArray], None] | None] = ContextVar("weft.random.watch", default=None)


class Draws:
    """The draws of a function that is computed again later: then they are the same, and no generator moves.

    Examples
    --------
    >>> import weft
    >>> from weft._ops.draws import Draws
    >>> rng, draws = weft.random.default_rng(7), Draws()
    >>> with draws.first():
    ...     x = rng.random(2)
    >>> with draws.again():
    ...     y = rng.random(2)
    >>> x.tolist() == y.tolist() != rng.random(2).tolist()
    True
    """

    def __init__(self) -> None:
        #: The states that were drawn from, and their words before.
        self._before: list[tuple[NDArray, NDArray]] = []

    def first(self) -> Scope:
        """Note in the block which generators are drawn from."""
        outer, where = _WATCH.get(), recording()

        def watch(own: NDArray) -> None:
            if outer is not None:
                outer(own)
            if not any(known._shares_buffer(own) for known, _ in self._before):
                self._before.append((own, own.copy() if recording() is where else unrecorded(own.copy)))

        return Scope((_WATCH, watch))

    @contextmanager
    def again(self) -> Generator[None]:
        """Let these generators be in the block what they were before, and after it what they are."""
        now = [(each, each.copy()) for each, _ in self._before]
        for each, words in self._before:
            copy_elements(each, words)
        try:
            yield
        finally:
            for each, words in now:
                copy_elements(each, words)


def is_watched() -> bool:
    """Return whether draws are noted: a loop that draws is no single op then."""
    return _WATCH.get() is not None


def unwatched() -> Scope:
    """Note no draws in the block, which records a loop that stays only if it draws nothing."""
    return Scope((_WATCH, None))


def drawn_from(own: NDArray) -> NDArray:
    """Return the state of a generator, which a draw is about to change."""
    watch = _WATCH.get()
    if watch is not None:
        watch(own)
    return own


def drawn_from_by_replay(states: Iterable[NDArray]) -> None:
    """Tell of the states among the arrays that a replay changes."""
    if is_watched():
        for each in states:
            if each.dtype == np.uint64 and each.shape in ((PCG64_WORDS,), (_PHILOX_WORDS,)):
                drawn_from(each)


class Drawing(Protocol):
    """The interface that `distribution` needs of a generator: the state that its draws mutate."""

    @property
    def _state(self) -> NDArray: ...


G = TypeVar("G", bound=Drawing)
P = ParamSpec("P")


def scratch(words: int = 0) -> np.random.Generator:
    """NumPy generator of this thread, in any state: for draws that load one first, and for checks.

    `words` is the length of the state to load: that of PCG64, or else of Philox.
    """
    # One per thread: NumPy locks a generator while it draws, and a fork would hand a locked one to the child.
    try:
        made: tuple[np.random.Generator, np.random.Generator] = _threads.generators
    except AttributeError:
        made = np.random.Generator(np.random.Philox(0)), np.random.Generator(np.random.PCG64(0))
        _threads.generators = made
    return made[words == PCG64_WORDS]


def pack(state: Mapping[str, Any]) -> npt.NDArray[np.uint64]:
    """Words of NumPy's dictionary of a state.

    Philox: counter, key, buffer, place in it, half a word and whether it is set. PCG64: state and increment as two
    words each, the lower one first, half a word and whether it is set.
    """
    inner = state["state"]
    half = (state["has_uint32"], state["uinteger"])
    if state["bit_generator"] == "PCG64":
        words = [each >> shift & _WORD for each in (inner["state"], inner["inc"]) for shift in (0, 64)]
        return np.array([*words, *half], np.uint64)
    return np.concatenate(
        (inner["counter"], inner["key"], state["buffer"], np.array((state["buffer_pos"], *half), np.uint64))
    )


def unpack(words: npt.NDArray[np.uint64]) -> dict[str, Any]:
    """NumPy's dictionary of the state in `words`."""
    if words.size == PCG64_WORDS:
        low, high, low_step, high_step, has_half, half = words.tolist()
        inner = {"state": high << 64 | low, "inc": high_step << 64 | low_step}
        return {"bit_generator": "PCG64", "state": inner, "has_uint32": has_half, "uinteger": half}
    place, has_half, half = words[10:].tolist()
    return {
        "bit_generator": "Philox",
        "state": {"counter": words[:4], "key": words[4:6]},
        "buffer": words[6:10],
        "buffer_pos": place,
        "has_uint32": has_half,
        "uinteger": half,
    }


def drawing_op(
    name: str,
    infer: Callable[..., Aval | tuple[Aval, ...]],
    fill: Callable[..., object],
    *,
    nout: int = 1,
    mutates: int = 0,
    refused: bool = True,
) -> Op:
    """Register the op ``random.<name>`` with the state as its first operand.

    Its gradient is refused, because its parameters are not operands of a derivative: a loss takes draws of a fixed
    distribution.

    Its computation is ``fill(generator, *outputs, *operands, **attributes)``; `infer` does not see the state. The
    first `mutates` operands after the state are changed too.
    """

    def rule(_: Aval, *avals: Aval, failure: object = None, **attributes: Any) -> Aval | tuple[Aval, ...]:  # noqa: ARG001
        return infer(*avals, **attributes)

    @register_op(f"random.{name}", infer=rule, nout=nout, mutates=range(1 + mutates))
    def op(*views: npt.NDArray[Any], failure: dict[int, Exception] | None = None, **attributes: Any) -> None:
        words = views[nout]
        generator = scratch(words.size)
        generator.bit_generator.state = unpack(words)
        try:
            fill(generator, *views[:nout], *views[nout + 1 :], **attributes)
        except Exception as error:
            if failure is None:
                raise
            failure[_address(views[0])] = error
        else:
            words[:] = pack(generator.bit_generator.state)

    if refused:
        refuse_gradient(op.name)
    return op


def _address(view: npt.NDArray[Any]) -> int:
    return int(view.__array_interface__["data"][0])


def push_draw(op: Op, state: NDArray, *arrays: NDArray, out: NDArray | None = None, **attributes: Any) -> NDArray:
    """Push a draw with one result, over arrays with values that NumPy may refuse."""
    if not arrays:
        return only(call(op, state, out=out, **attributes))
    # If NumPy refuses the values, the result fails, and not the generator, which has not moved. The key is the result's
    # memory: several replays of a program, each with its own result, may run together.
    failure: dict[int, Exception] = {}

    def report(drawn: npt.NDArray[Any]) -> None:
        error = failure.pop(_address(drawn), None)
        if error is not None:
            raise error

    result = only(call(op, state, *arrays, out=out, failure=failure, **attributes))
    push_compute(report, (), (), (result,), name=op.name)
    return result


def only(results: NDArray | tuple[NDArray, ...]) -> NDArray:
    """Return the result of an op that has one."""
    assert isinstance(results, NDArray)
    return results


def snapshot(value: Any) -> Any:
    """Return `value` as it is now: arrays and sequences are copied, numbers and NDArrays are not."""
    kept = value is None or isinstance(value, NDArray | bool | int | float | complex | np.generic)
    return cast("Any", value) if kept else np.array(value)


def is_count(value: object) -> bool:
    """Return whether `value` is a number of things, not an array of them."""
    return isinstance(value, int | np.integer)


def output_shape(size: Size) -> Shape | None:
    """`size` as a tuple, checked; None stays None."""
    if size is None:
        return None
    entries = tuple(size) if isinstance(size, Sequence | np.ndarray) else (size,)
    try:
        shape = tuple(map(operator.index, entries))
    except TypeError:
        raise ArgumentTypeError(f"size must be an int or a sequence of ints, not {brief(size)}") from None
    if any(length < 0 for length in shape):
        raise ArgumentValueError(f"size has a negative dimension: {shape}")
    return shape


@dataclass(frozen=True, slots=True)
class _Rule:
    """The facts of a distribution that hold before any draw."""

    name: str
    parameters: tuple[str, ...]
    result: np.dtype[Any] | None  # None: given by the option `dtype`
    core: tuple[int, ...]  # dimensions of each parameter that belong to one draw
    stacked: bool  # whether parameters with a core may have more dimensions
    trial: int  # draws for a check: some of NumPy's methods check nothing for an empty result
    fills: bool  # whether NumPy's method has `out`

    def infer(
        self, *avals: Aval, names: tuple[str, ...], values: dict[str, Any], size: Shape | None, options: dict[str, Any]
    ) -> Aval:
        """Shape and dtype of a draw. Refuses calls that NumPy would refuse, except by the operands' values.

        `names` are those of the parameters that are operands, `values` the other parameters.
        """
        for name, aval in zip(names, avals, strict=True):
            if aval.dtype.kind == "c":
                raise ArgumentTypeError(f"{self.name}: {name} must be real, not {aval.dtype}")
        shapes: dict[str, Shape] = {name: np.shape(value) for name, value in values.items() if value is not None}
        shapes.update(zip(names, (aval.shape for aval in avals), strict=True))
        batch, event = self._shapes(shapes)
        if size is not None and (len(batch) > len(size) or np.broadcast_shapes(batch, size) != size):
            raise ArgumentValueError(f"{self.name}: size {size} does not fit parameters of shape {batch}")
        if not avals:
            try:
                getattr(scratch(), self.name)(**values, **options, size=(self.trial, *batch))
            except TypeError as error:
                raise ArgumentTypeError(f"{self.name}: {error}") from None
            except ValueError as error:
                raise ArgumentValueError(f"{self.name}: {error}") from None
        dtype = np.dtype(options["dtype"]) if self.result is None else self.result
        return Aval((batch if size is None else size) + event, dtype)

    def _shapes(self, shapes: Mapping[str, Shape]) -> tuple[Shape, Shape]:
        """Shape of all draws by the parameters alone, and of one draw; ValueError if they do not fit."""
        outer: list[Shape] = []
        event: Shape = ()
        for name, core in zip(self.parameters, self.core, strict=True):
            shape = shapes.get(name, ())
            if len(shape) < core or (len(shape) > core and not self.stacked and any(self.core)):
                raise ArgumentValueError(f"{self.name}: {name} must have {core} dimensions, not the shape {shape}")
            inner = shape[len(shape) - core :]
            if event and core and set(inner) != set(event):
                raise ArgumentValueError(f"{self.name}: {name} of shape {shape} does not fit {event[0]} components")
            outer.append(shape[: len(shape) - core])
            event = event or inner[:1]
        try:
            return np.broadcast_shapes(*outer), event
        except ValueError:
            given = ", ".join(f"{name} {shape}" for name, shape in zip(self.parameters, outer, strict=True))
            raise ArgumentValueError(f"{self.name}: parameters cannot be broadcast together: {given}") from None

    def fill(
        self,
        generator: np.random.Generator,
        target: npt.NDArray[Any],
        *views: npt.NDArray[Any],
        names: tuple[str, ...],
        values: dict[str, Any],
        size: Shape | None,
        options: dict[str, Any],
    ) -> None:
        """Draw into `target`."""
        given = {**values, **dict(zip(names, views, strict=True)), **options}
        if "check_valid" in given and not views:
            given["check_valid"] = "ignore"  # it was checked at the call
        method = getattr(generator, self.name)
        if self.fills and target.flags.c_contiguous:
            method(**given, size=size, out=target)
        else:
            np.copyto(target, method(**given, size=size))

    def push(self, op: Op, state: NDArray, arguments: dict[str, Any]) -> NDArray:
        """Push the draw of a method's call."""
        given = {name: snapshot(arguments.pop(name)) for name in self.parameters}
        size, out = output_shape(arguments.pop("size")), arguments.pop("out", None)
        if out is not None:
            if not isinstance(out, NDArray):
                raise ArgumentTypeError(f"{self.name}: out must be an NDArray, not {type(out).__name__}")
            if size not in {None, out.shape}:
                raise ArgumentValueError(f"{self.name}: size is {size}, and out has the shape {out.shape}")
            if out.dtype != arguments["dtype"]:
                raise ArgumentTypeError(
                    f"{self.name}: out has dtype {out.dtype}, the draw {np.dtype(arguments['dtype'])}"
                )
            size = out.shape
        arrays = {name: value for name, value in given.items() if isinstance(value, NDArray)}
        values = {name: value for name, value in given.items() if name not in arrays}
        names = tuple(arrays)
        return push_draw(op, state, *arrays.values(), out=out, names=names, values=values, size=size, options=arguments)


def distribution(
    result: type[np.generic] = np.float64,
    *,
    core: tuple[int, ...] | None = None,
    stacked: bool = False,
    trial: int = 0,
    example: str,
) -> Callable[[Callable[Concatenate[G, P], NDArray]], Callable[Concatenate[G, P], NDArray]]:
    """Make a declared signature a method that pushes a draw with NumPy's method of that name.

    Parameters
    ----------
    result
        Type of the numbers drawn, unless an argument ``dtype`` gives it.
    core
        For each parameter, the number of its dimensions that belong to one draw; by default none.
    stacked
        Whether parameters with core dimensions may have others in front of them.
    trial
        Number of draws that make NumPy check the arguments.
    example
        Arguments for the docstring's example, whose ``size`` is 3.
    """

    def declare(declared: Callable[Concatenate[G, P], NDArray]) -> Callable[Concatenate[G, P], NDArray]:
        signature = inspect.signature(declared)
        names = tuple(signature.parameters)
        parameters = tuple(name for name in names if name not in _OPTIONS)
        dtype = None if "dtype" in names else np.dtype(result)
        core_of = core or (0,) * len(parameters)
        rule = _Rule(declared.__name__, parameters, dtype, core_of, stacked, trial, "out" in names)
        op = drawing_op(rule.name, rule.infer, rule.fill)

        @functools.wraps(declared)
        def method(self: G, /, *args: P.args, **kwargs: P.kwargs) -> NDArray:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            del arguments["self"]
            return rule.push(op, self._state, arguments)

        described = "\n".join(f"{name}\n    {_MEANING[name]}" for name in names[1:])
        width = (2,) if core else ()
        method.__doc__ = inspect.cleandoc(
            f"""{declared.__doc__}

            Parameters
            ----------
            {described.replace(chr(10), chr(10) + " " * 12)}

            Returns
            -------
            NDArray
                The numbers drawn; the call does not wait for them.

            Examples
            --------
            >>> import weft
            >>> weft.random.default_rng(7).{rule.name}({example}).shape
            {(3, *width)}
            """
        )
        return method

    return declare
