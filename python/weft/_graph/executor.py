"""`weft.symbol.Executor`: a symbol on arrays of its own, run forwards and backwards."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._call.devices import as_device
from weft._call.operands import as_array
from weft._core import GraphCore, NDArray, Scope, SymbolCore, graph_plan_memory
from weft._engine.labels import cpu
from weft._graph.differentiating import gradient_symbol
from weft._graph.evaluation import Schedule, read_by
from weft._graph.placing import place_groups
from weft._graph.replayed import can_record, record
from weft._graph.symbols import Symbol
from weft._graph.training import NEVER_AGAIN, trained_graph
from weft._ops.creation import ones_like, zeros
from weft._ops.dtypes import astype
from weft._ops.manipulation import broadcast_to
from weft._registry.brief import brief
from weft._tape.modes import TRAINING
from weft.errors import ArgumentTypeError, ArgumentValueError, GraphError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from weft._graph.replayed import Recorded
    from weft._graph.training import Again, Trained
    from weft._program.program import Program
    from weft._registry.op import Op


class Executor:
    """A symbol bound to arrays: made by `Symbol.bind` and `Symbol.simple_bind`.

    An executor is a program: its first calls record its ops on its arrays, and later ones replay them. Where this is
    not possible (arrays on a GPU, a monitor, arrays whose gradients the tape is asked for, ``weft.eager()``) the ops
    are pushed one by one.

    Attributes
    ----------
    arg_dict, grad_dict, aux_dict : dict of str to NDArray
        The arguments, the gradients that are asked for, and the auxiliary states: read and written in place.
    arg_arrays, grad_arrays, aux_arrays : list
        The same in the order of `list_arguments` and `list_auxiliary_states`; None where no gradient is asked for.
    grad_req : dict of str to str
        "write", "add" or "null" for each argument.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> y = weft.symbol.copy_to(x, device="cpu:0")
    >>> executor = y.bind({"x": weft.asarray([3.0])}, args_grad={"x": weft.zeros(1)})
    >>> executor.forward(is_train=True)
    [NDArray([3.])]
    >>> executor.backward(weft.asarray([2.0]))
    >>> executor.grad_dict["x"]
    NDArray([2.])
    """

    def __init__(
        self,
        symbol: Symbol,
        args: dict[str, NDArray],
        grads: dict[str, NDArray],
        requests: dict[str, str],
        states: dict[str, NDArray],
        device: Any,
        groups: Mapping[str, Any] | None,
        again: Again = NEVER_AGAIN,
        graph: GraphCore | None = None,
    ) -> None:
        self._symbol, self._device, self._groups = symbol, device, groups
        self._again = again
        self._stand_ins: dict[int, NDArray] = {}
        self.arg_dict, self.grad_dict, self.aux_dict = args, grads, states
        self.grad_req = requests
        self._wanted: list[str] = []
        for name in grads:  # loops in functions that binding runs: a comprehension is one more frame of Python
            if requests[name] != "null":
                self._wanted.append(name)
        self._monitor: Callable[[str, NDArray], object] | None = None
        self._monitors_arguments = False
        self._graph = GraphCore(symbol._core) if graph is None else graph
        self._order = self._graph.variables()
        if groups or len(args) + len(states) < len(self._order[0]) + len(self._order[1]):
            _ = self._forward  # which refuses devices that are not known, and two variables of one name
        self._backward: Schedule | None = None
        self._is_train = False
        self._values: list[Any] | None = None
        self._program: Program | None = None
        self._recorded: dict[tuple[Any, ...], tuple[tuple[Any, ...], Recorded | None]] = {}
        self._head_arrays: dict[str, NDArray] = {}
        self._outputs: list[NDArray] | None = None
        self._empty: list[NDArray] | None = None

    @cached_property
    def _forward(self) -> Schedule:
        """Forwards as calls, made at the first use."""
        return self._scheduled(self._graph)

    def _scheduled(self, graph: GraphCore) -> Schedule:
        shapes = {name: each.shape for name, each in (*self.arg_dict.items(), *self.aux_dict.items())}
        return Schedule(_placed(graph, self._device, self._groups), shapes)

    @cached_property
    def _recordable(self) -> bool:
        return all(
            _is_local(kind.attributes.get("device")) and kind.op.attribute("records", default=True)
            for kind in self._forward.kinds
        )

    @cached_property
    def _draws(self) -> bool:
        """Whether forwards have other values each time, outside of training, too: then they cannot be computed again."""
        return any(_draws(kind.op, kind.attributes) for kind in self._forward.kinds)

    @cached_property
    def _heads(self) -> list[str]:
        """The names of the gradients of outputs."""
        return [f"__head_gradient_{at}__" for at in range(len(self._symbol))]

    def __repr__(self) -> str:
        names = ", ".join(f"{name} {array.shape}" for name, array in self.arg_dict.items())
        return f"<Executor of {', '.join(self._symbol.list_outputs())}: {names}>"

    @property
    def arg_arrays(self) -> list[NDArray]:
        """The arguments in the order of `list_arguments`."""
        return [self.arg_dict[name] for name in self._order[0]]

    @property
    def grad_arrays(self) -> list[NDArray | None]:
        """The gradients in the order of `list_arguments`."""
        return [self.grad_dict.get(name) for name in self._order[0]]

    @property
    def aux_arrays(self) -> list[NDArray]:
        """The auxiliary states in the order of `list_auxiliary_states`."""
        return [self.aux_dict[name] for name in self._order[1]]

    @property
    def outputs(self) -> list[NDArray]:
        """The results of the last `forward`; zeros of their shapes and dtypes before the first one."""
        if self._outputs is not None:
            return self._outputs
        if self._empty is None:
            known = {**self.arg_dict, **self.aux_dict}
            shapes = self._symbol._shapes(**{name: each.shape for name, each in known.items()})[1]
            dtypes = self._symbol.infer_type(**{name: each.dtype for name, each in known.items()})[1]
            if not _is_known([shapes]):
                raise GraphError(
                    "the shapes of the outputs do not follow from those of the arguments: call forward() first"
                )
            pairs = zip(shapes, dtypes, strict=True)
            self._empty = [zeros(shape, dtype=dtype, device=self._device) for shape, dtype in pairs]
        return self._empty

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """The results of the last `forward`, by name."""
        return dict(zip(self._symbol.list_outputs(), self.outputs, strict=True))

    def forward(self, is_train: bool = False, **inputs: Any) -> list[NDArray]:
        """Compute the outputs, without waiting.

        Parameters
        ----------
        is_train : bool, default: False
            Whether `backward` follows, and ops behave as in training.
        **inputs : array-like
            New values for arguments, which are written in place.

        Returns
        -------
        list of NDArray
            The outputs.

        Raises
        ------
        GraphError
            If there is no such argument.
        ShapeError
            If a value has another shape than its argument.
        """
        if not isinstance(is_train, bool | int | np.bool_):
            raise ArgumentTypeError(
                f"is_train is True or False, not {type(is_train).__name__}: values go by name, as in "
                f"forward({next(iter(self.arg_dict), 'x')}=...)"
            )
        for name, value in inputs.items():
            target = self.arg_dict.get(name, self.aux_dict.get(name))
            if target is None:
                raise GraphError(f"the executor has no argument {name!r}: it has {', '.join(self.arg_dict)}")
            given = as_array(value, target)
            if given.shape != target.shape:
                raise ShapeError(
                    f"argument {name!r} has the shape {target.shape}, and one of {given.shape} was given: reshape() makes "
                    "an executor for other shapes"
                )
            if given is not target:
                target[...] = given
        keeps = self._wanted and (is_train or self._draws)
        schedule = self._training() if keeps else self._forward
        values, run = self._call(schedule)
        with _training(mode=is_train):
            found = self._forwards(schedule, values, run, is_train=is_train)
            if found is None:
                run(values)
            else:
                found.replay(values)
        self._program = None if found is None else found.program
        self._outputs = [values[at] for at in schedule.outputs[: len(self._symbol)]]
        self._is_train = bool(is_train)
        self._values = values if schedule is not self._forward else None
        return self._outputs

    def _call(self, schedule: Schedule) -> tuple[list[Any], Callable[[list[Any]], None]]:
        """Return the first values of forwards, and the function that makes its calls on such."""
        arrays: dict[str, Any] = {**self.arg_dict, **self.aux_dict}
        steps = schedule.steps
        if schedule is not self._forward:
            arrays.update(dict.fromkeys(self._heads))
            steps = steps[: self._count]

        def run(places: list[Any]) -> None:
            monitor = self._monitor
            if monitor is not None and self._monitors_arguments:
                for name, array in (*self.arg_dict.items(), *self.aux_dict.items()):
                    monitor(name, array)
            schedule.run(places, steps, monitor)

        return schedule.values(arrays), run

    def _forwards(
        self, schedule: Schedule, values: list[Any], run: Callable[[list[Any]], None], *, is_train: bool
    ) -> Recorded | None:
        """Return forwards as a recording; None if its calls are to be made one by one."""
        wanted = schedule.outputs[: len(self._symbol)]
        if schedule is not self._forward:
            wanted = list(dict.fromkeys([*wanted, *self._kept(schedule)]))
        key = "forward", is_train, schedule is self._forward
        return self._recording(key, values, [*self.arg_dict.values(), *self.aux_dict.values()], (), wanted, run)

    def _kept(self, schedule: Schedule) -> list[int]:
        """Return the entries of calls forwards that backwards needs."""
        made = {at for step in schedule.steps[: self._count] for at in range(step.first, step.first + step.results)}
        read = [at for step in schedule.steps[self._count :] for at in step.inputs]
        read = [at for at in read if at not in self._stand_ins]
        return [at for at in (*read, *schedule.outputs[len(self._symbol) :]) if at in made]

    def _recording(
        self,
        key: tuple[Any, ...],
        values: list[Any],
        states: list[NDArray],
        arguments: Sequence[int],
        wanted: Iterable[int],
        run: Callable[[list[Any]], None],
    ) -> Recorded | None:
        """Return calls as a recording, made now if there is none; None if they are to be made one by one."""
        if self._monitor is not None or not self._recordable or not can_record(states):
            return None
        known, found = self._recorded.get(key, ((), None))
        if len(known) != len(states) or any(one is not other for one, other in zip(known, states, strict=True)):
            found = record(f"executor {key[0]}", values, states, arguments, wanted, run)
            self._recorded[key] = tuple(states), found
        return found

    @property
    def program(self) -> Program:
        """The program that the last `forward` replayed; before the first one, that of ``forward()``.

        Raises
        ------
        GraphError
            If there is none, as the ops are pushed one by one.

        Examples
        --------
        >>> import weft
        >>> executor = weft.exp(weft.exp(weft.symbol.Variable("x"))).simple_bind(x=(4,), grad_req="null")
        >>> executor.program.nbytes
        16
        """
        program = self._program
        if program is None and self._outputs is None:  # planned at the first forward(), or when it is asked for
            values, run = self._call(self._forward)
            with _training(mode=False):
                found = self._forwards(self._forward, values, run, is_train=False)
            program = None if found is None else found.program
        if program is None:
            raise GraphError(
                "an executor that pushes its ops one by one has no program: it does so with a monitor, arrays on a GPU, "
                "arrays that require gradients, and in weft.eager()"
            )
        return program

    @cached_property
    def _both(self) -> Symbol:
        """The outputs, and the gradients that are asked for."""
        heads = [Symbol(SymbolCore.variable(name, None)) for name in self._heads]
        grads = gradient_symbol(self._symbol, self._wanted, heads)
        return Symbol(SymbolCore.group([self._symbol._core, grads._core]))

    def _trained(self, both: Symbol, again: Again) -> Trained:
        return trained_graph(self._symbol, both, {**self.arg_dict, **self.aux_dict}, self._heads, again)

    def _training(self) -> Schedule:
        """Return forwards and backwards as one schedule: values of forwards that backwards needs are kept."""
        if self._backward is None:
            trained = self._trained(self._both, self._again)
            self._backward = self._scheduled(trained.graph)
            outputs = SymbolCore.of_entries(trained.graph.symbol().entries()[: len(self._symbol)])
            forwards = self._scheduled(GraphCore(outputs))
            self._count = len(forwards.steps)
            _check_order(forwards, self._backward)
            if not self._groups:
                self._stand_ins = self._ignored(self._backward, trained)
        return self._backward

    def _ignored(self, schedule: Schedule, trained: Trained) -> dict[int, NDArray]:
        """Return arrays in the place of results forwards that backwards needs by shape alone: they have no elements of their own."""
        if trained.sizes is None:
            return {}
        made = {at for step in schedule.steps[: self._count] for at in range(step.first, step.first + step.results)}
        later = schedule.steps[self._count :]
        read = {at for step in later for at in read_by(step)}.union(schedule.outputs)
        ignored = (made & {at for step in later for at in step.inputs}) - read
        shapes, dtypes = trained.sizes
        return {at: broadcast_to(zeros((), dtype=dtypes[at]), shapes[at]) for at in ignored}

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute the gradients of the arguments into `grad_dict`, without waiting.

        ``forward(is_train=True)`` keeps the values that this needs, and so does a symbol that draws numbers. After
        ``forward()`` they are computed again, as ops do that do not train. Without either, forwards run first.

        Parameters
        ----------
        out_grads : array_like or list of array_like, optional
            The gradients of the outputs, of their shapes, by default ones; those of another dtype are cast to that of their output.
        is_train : bool, default: True
            Whether ops go backwards as in training.

        Raises
        ------
        GraphError
            If there are not as many gradients as outputs.
        ShapeError
            If one has another shape than its output.
        """
        if not self._wanted:
            return
        if self._outputs is None:
            self.forward(is_train=is_train)
        values, schedule = self._values_forwards()
        given: list[Any] = (
            [None] * len(self._heads)
            if out_grads is None
            else [out_grads]
            if not isinstance(out_grads, list | tuple)
            else list(cast("Any", out_grads))
        )
        if len(given) != len(self._heads):
            raise GraphError(
                f"the symbol has {len(self._heads)} outputs, and {len(given)} gradients of outputs were given"
            )
        fits = self._program is not None
        for name, said, grad, output in zip(self._heads, self._symbol.list_outputs(), given, self.outputs, strict=True):
            at = schedule.variables.get(name)
            if at is not None:
                values[at] = ones_like(output) if grad is None else _head(as_array(grad, output), output, said)
                fits = fits and _is_like(values[at], output)
        wanted = [(name, at) for name, at in zip(self._wanted, schedule.outputs[len(self._symbol) :], strict=True)]

        def run(places: list[Any]) -> None:
            schedule.run(places, schedule.steps[self._count :], self._monitor)
            for name, at in wanted:
                target = self.grad_dict[name]
                target[...] = target + places[at] if self.grad_req[name] == "add" else places[at]

        with _training(mode=is_train):
            if not fits or not self._replayed_backward(values, schedule, run, is_train=is_train):
                run(values)

    def _values_forwards(self) -> tuple[list[Any], Schedule]:
        """Return the values that backwards begins with, and its calls; they are computed now, if forwards kept nothing."""
        schedule = self._training()
        if self._values is None:
            values, run = self._call(schedule)
            with _training(mode=self._is_train):
                run(values)
            self._program, self._values = None, values
        values = list(self._values)
        for entry, stand_in in self._stand_ins.items():
            values[entry] = stand_in
        return values, schedule

    def get_optimized_symbol(self) -> Symbol:
        """Return the symbol that is computed: where MXNet's interface has bound it, equal calls are one.

        Examples
        --------
        >>> import weft.mxnet.symbol as S
        >>> x = S.Variable("x")
        >>> len((S.exp(x) * S.exp(x)).simple_bind(x=(2,)).get_optimized_symbol().get_internals())
        3
        """
        return self._symbol

    def debug_str(self) -> str:
        """Return the symbol's nodes as text, and how many bytes its plan of memory takes.

        The plan has the outputs, and what backwards needs where gradients are asked for: these lie in `grad_dict`.

        Examples
        --------
        >>> import weft
        >>> print(weft.symbol.exp(weft.symbol.Variable("x"), name="e").simple_bind(x=(4,)).debug_str().splitlines()[-1])
        Total 7.62939e-05 MB allocated
        """
        from weft._graph.symbol_summary import planned_bytes  # noqa: PLC0415 - needed for debugging alone

        known = {**self.arg_dict, **self.aux_dict}
        found = self._trained(self._both, NEVER_AGAIN) if self._wanted else None
        if found is not None and found.sizes is not None:
            planned = graph_plan_memory(found.graph, "min", False, self._both.list_outputs()[len(self._symbol) :])
            total = planned.attribute("storage_allocated_bytes")
        else:
            total = planned_bytes(self._symbol, {name: (each.shape, each.dtype) for name, each in known.items()})
        return f"{self._symbol.debug_str()}Total {total / 2**20:.6g} MB allocated\n"

    def _replayed_backward(
        self, values: list[Any], schedule: Schedule, run: Callable[[list[Any]], None], *, is_train: bool
    ) -> bool:
        """Replay backwards, on the kept values of forwards; return whether it can be."""
        own = [*self.arg_dict.values(), *self.aux_dict.values()]
        grads = [self.grad_dict[name] for name in self._wanted]
        heads = [schedule.variables[name] for name in self._heads if name in schedule.variables]
        if not can_record([*own, *grads, *(values[at] for at in heads)]):
            return False
        places = list(values)
        for at in heads:  # copies: the given memory may be shared
            places[at] = self._head_array(str(at), values[at])
        states = [*own, *grads, *(places[at] for at in heads)]
        kept = dict.fromkeys(self._kept(schedule))
        arguments = [at for at in kept if not any(values[at]._shares_buffer(state) for state in own)]
        key = "backward", is_train, *(self.grad_req[name] for name in self._wanted)
        found = self._recording(key, places, states, arguments, (), run)
        if found is None:
            return False
        found.replay(places, tuple(places[at] for at in arguments))
        return True

    def _head_array(self, key: str, grad: NDArray) -> NDArray:
        """Return an array of the executor's own with the gradient of an output in it."""
        known = self._head_arrays.get(key)
        if known is None or not _is_like(known, grad):
            known = self._head_arrays[key] = zeros(grad.shape, dtype=grad.dtype, device=grad.device)
        known[...] = grad
        return known

    def set_monitor_callback(
        self, callback: Callable[[str, NDArray], object] | None, monitor_all: bool = False
    ) -> None:
        """Call ``callback(name, array)`` for each result of each node as it is pushed.

        With `monitor_all`, each `forward` begins with the arguments and auxiliary states.
        """
        if callback is not None and not callable(callback):
            raise ArgumentTypeError(f"a monitor is called as callback(name, array), and {brief(callback)} was given")
        self._monitor, self._monitors_arguments = callback, bool(monitor_all)

    def reshape(self, *, partial_shaping: bool = False, allow_up_sizing: bool = False, **shapes: Any) -> Executor:
        """Return an executor for other shapes of arguments: arrays that keep their shape are shared with this one.

        Parameters
        ----------
        partial_shaping : bool, default: False
            Whether shapes of arguments that are not named may change as well.
        allow_up_sizing : bool, default: False
            Whether arrays may become larger.
        **shapes : tuple of int
            The new shapes.

        Raises
        ------
        ArgumentValueError
            If an array would change that must not.
        """
        found = self._symbol._shapes(**shapes)
        if not _is_known(found):  # the unknown stays
            kept = {name: array.shape for name, array in self.arg_dict.items() if name not in shapes}
            found = self._symbol._shapes(**kept, **shapes)
        if not _is_known(found):
            raise ShapeError(f"shapes do not follow from {', '.join(shapes)}: give more of them")

        def fitted(name: str, array: NDArray, shape: tuple[int, ...]) -> NDArray:
            if array.shape == shape:
                return array
            if not partial_shaping and name not in shapes:
                raise ArgumentValueError(
                    f"the shape of {name!r} would change from {array.shape} to {shape}: say partial_shaping=True if it may"
                )
            size = 1
            for length in shape:
                size *= length
            if size > array.size:
                if not allow_up_sizing:
                    raise ArgumentValueError(
                        f"{name!r} would grow from {array.shape} to {shape}: say allow_up_sizing=True if it may"
                    )
                return zeros(shape, dtype=array.dtype, device=array.device)
            return array.reshape(-1)[:size].reshape(shape)

        args = {n: fitted(n, self.arg_dict[n], s) for n, s in zip(self._order[0], found[0], strict=True)}
        grads = {
            n: fitted(n, self.grad_dict[n], s)
            for n, s in zip(self._order[0], found[0], strict=True)
            if n in self.grad_dict
        }
        states = {n: fitted(n, self.aux_dict[n], s) for n, s in zip(self._order[1], found[2], strict=True)}
        return Executor(self._symbol, args, grads, self.grad_req, states, self._device, self._groups, self._again)

    def copy_params_from(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any] | None = None,
        *,
        allow_extra_params: bool = False,
    ) -> None:
        """Copy values into arguments and auxiliary states, in place.

        Raises
        ------
        GraphError
            If a name is not known and `allow_extra_params` is false.
        """
        for given, known in ((arg_params, self.arg_dict), (aux_params or {}, self.aux_dict)):
            for name, value in given.items():
                if name in known:
                    known[name][...] = as_array(value, known[name])
                elif not allow_extra_params:
                    raise GraphError(f"the executor has no {name!r}: it has {', '.join(known)}")


def _training(*, mode: bool) -> Scope:
    """Let ops see in the block whether they train; the tape hears as before."""
    return Scope((TRAINING, mode))


def _is_local(device: Any) -> bool:
    """Return whether calls on a device can be replayed: results of a replay are on the first CPU device."""
    return device is None or as_device(device) == cpu(0)


def _is_known(shapes: Sequence[list[Any]]) -> bool:
    return not any(shape is None or None in shape for group in shapes for shape in group)


def _is_like(one: NDArray, other: NDArray) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one._device == other._device


def _head(grad: NDArray, output: NDArray, name: str) -> NDArray:
    """Return the gradient of an output in its dtype: real numbers become any that have gradients."""
    if grad.shape != output.shape:
        raise ShapeError(
            f"the output {name!r} has the shape {output.shape}, and its gradient was given with {grad.shape}"
        )
    if grad.dtype.kind == "c" and output.dtype.kind != "c":
        raise ArgumentTypeError(f"the output {name!r} has the dtype {output.dtype}, and its gradient is complex")
    fits = grad.dtype == output.dtype or grad.dtype.kind not in "biuf" or output.dtype.kind not in "fc"
    return grad if fits else astype(grad, output.dtype)


def _draws(op: Op, attributes: dict[str, Any]) -> bool:
    """Return whether an op that does not train has other results at each call: what the op says, else each impure one."""
    said = op.attribute("draws_untrained", None)
    if said is not None:
        return bool(said(attributes) if callable(said) else said)
    pure = op.attribute("pure", default=True)
    pure = pure(attributes) if callable(pure) else pure
    mutates = op.attribute("mutates", ())
    return not pure and not (mutates(attributes) if callable(mutates) else mutates)


def _placed(graph: GraphCore, device: Any, groups: Mapping[str, Any] | None) -> GraphCore:
    if not groups:
        return graph
    return place_groups(graph, device, groups)


def _check_order(forwards: Schedule, both: Schedule) -> None:
    """Raise GraphError if something backwards comes before something forwards."""
    first = both.steps[: len(forwards.steps)]
    if any(one.name != other.name for one, other in zip(first, forwards.steps, strict=True)):
        raise GraphError(
            "a gradient reads a state in a version that forward() overwrites: let the rule take a result of the op instead"
        )
