"""Models: networks that are compiled for their inputs, and trained and evaluated eagerly or as programs.

>>> import numpy as np
>>> from weft import device, layer, model, opt, tensor
>>> class Perceptron(model.Model):
...     def __init__(self):
...         super().__init__()
...         self.dense, self.loss = layer.Linear(2), layer.SoftMaxCrossEntropy()
...
...     def forward(self, x):
...         return self.dense(x)
...
...     def train_one_batch(self, x, y):
...         out = self.forward(x)
...         loss = self.loss(out, y)
...         self.optimizer(loss)
...         return out, loss
>>> dev = device.get_default_device()
>>> dev.SetRandSeed(0)
>>> x, y = tensor.Tensor((4, 2), dev), tensor.Tensor((4,), dev, tensor.int32)
>>> x.copy_from_numpy(np.array([[1, 0], [0, 1], [2, 1], [1, 3]], np.float32))
>>> y.copy_from_numpy(np.array([0, 1, 0, 1], np.int32))
>>> net = Perceptron()
>>> net.set_optimizer(opt.SGD(0.5))
>>> net.compile([x], is_train=True, use_graph=True)
>>> losses = [float(net(x, y)[1].item()) for _ in range(50)]
>>> losses[-1] < 0.3 < losses[0]
True
>>> net.eval()
>>> net(x).argmax(axis=1)
NDArray([0, 1, 0, 1])
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from weft._core import NDArray, Scope, recording
from weft._engine.recover import recover
from weft._numpy import namespace
from weft._registry.brief import brief
from weft._singa.hints import absent_from
from weft._singa.layers.base import Layer
from weft._singa.models import blobs, files, torch_states as torch_moves
from weft._singa.models.batches import as_batch
from weft._singa.models.labels import HANDED, Handed, on_host
from weft._singa.models.no_optimizer import NoOptimizer
from weft._singa.models.running import Runs, in_mode, is_running
from weft._singa.models.tensors import Tensor, as_results
from weft._singa.optimizers.averages import EMA
from weft._singa.optimizers.base import Optimizer
from weft._singa.optimizers.gradients import GradientSum
from weft._tape.modes import flag
from weft.errors import ArgumentTypeError, ArgumentValueError, ModelError, StateFileError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from weft._program.program import Program

__all__ = ["Model", "singa_states", "torch_states"]

if not TYPE_CHECKING:  # a checker would take any name for one of the module's
    __getattr__ = absent_from(__name__)


class Model(Layer):
    """A network with its loss and its optimizer. The base of one's own.

    A subclass makes its layers in ``__init__``, and defines `forward` and `train_one_batch`. `compile` sizes the layers for
    their inputs; without it the first call does so, and calls run eagerly. A call of the model is `train_one_batch` or, after
    `eval`, `forward`: with ``use_graph=True`` as a program, recorded for each shape of inputs that comes, and replayed.
    Parameters, the optimizer's state and that of generators are changed in place; results are new tensors at each call.
    The weights are the same, bit for bit, however it runs.

    Attributes
    ----------
    training : bool
        Whether a call trains.
    graph_mode, sequential : bool
        Whether calls are programs, and whether the ops of these run one by one.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for name, around in (("train_one_batch", _dispatched), ("forward", _in_own_mode)):
            method = cls.__dict__.get(name)
            if method is not None:
                setattr(cls, name, around(method))  # called by its name, it runs as the model was told, too

    training: bool
    graph_mode: bool
    sequential: bool
    optimizer: Any
    _runs: Runs

    if not TYPE_CHECKING:  # as in `Layer`

        def __new__(cls, *args: object, **options: object) -> Self:
            """Make a model that is not compiled yet."""
            made = super().__new__(cls, *args, **options)
            made.training, made.graph_mode, made.sequential = True, False, False
            made.optimizer, made._runs = NoOptimizer(cls.__name__), Runs(cls.__name__)
            return made

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy, or a pickle, takes over: all but the programs, which are this model's."""
        return {**self.__dict__, "_runs": Runs(type(self).__name__)}

    def compile(
        self,
        inputs: Sequence[NDArray | Sequence[NDArray]],
        is_train: bool = True,
        use_graph: bool = False,
        sequential: bool = False,
    ) -> None:
        """Make the parameters of all layers for inputs of these shapes, and say how calls run.

        Parameters
        ----------
        inputs : list of array-like
            The arguments of `forward`, arrays or lists of them; their shapes, dtypes and devices count, their values do not.
            NumPy's and torch's arrays are taken as well.
        is_train : bool, default: True
            Whether calls train.
        use_graph : bool, default: False
            Whether calls are programs. The words "True" and "False" mean it, too: SINGA's command lines hand them over.
        sequential : bool, default: False
            Whether the ops of a program run one by one, in the order of the recording.

        Raises
        ------
        ArgumentTypeError
            If `inputs` is no list of arrays.
        ShapeError
            If a layer does not take its input, with its name and both shapes.
        """
        given: Any = inputs
        inputs = _as_arrays(list(cast("Sequence[Any]", given))) if isinstance(given, list | tuple) else given
        if not isinstance(inputs, list) or not _are_arrays(inputs):
            raise ArgumentTypeError("compile takes a list of arrays, the inputs of forward(): net.compile([x], ...)")
        self._name_layers()  # for messages
        with in_mode(self, training=False):
            self.forward(*inputs)
        self._initialized = True
        self._name_all()
        self._runs = Runs(type(self).__name__)
        self.graph(use_graph, sequential)
        self.train(is_train)

    def train(self, mode: bool = True) -> None:
        """Let calls of this model train, or not: `weft.autograd.training` is that while one runs, and for it alone."""
        self.training = flag(mode, "train(mode)")

    def eval(self) -> None:
        """Let calls evaluate: `forward` alone, by a program of its own."""
        self.train(mode=False)

    def graph(self, mode: bool = True, sequential: bool = False) -> None:
        """Say whether calls are programs, and whether the ops of these run one by one."""
        self.graph_mode, self.sequential = _switch(mode, "use_graph"), _switch(sequential, "sequential")

    def set_optimizer(self, optimizer: Any) -> None:
        """Take an optimizer, for `train_one_batch` to call: ``self.optimizer(loss)``."""
        if not callable(optimizer):
            raise ArgumentTypeError(
                f"set_optimizer takes an optimizer, such as opt.SGD(lr=0.1), not {brief(optimizer)} ({type(optimizer).__name__})"
            )
        self.optimizer = optimizer
        if self._initialized:
            self._prepare_optimizers()

    def train_one_batch(self, *inputs: Any, **options: Any) -> Any:
        """Compute the loss of a batch, and update the parameters."""
        del inputs, options
        name = type(self).__name__
        if type(self).forward is Layer.forward:
            raise NotImplementedError(f"{name} defines neither forward() nor train_one_batch()")
        raise NotImplementedError(
            f"{name} defines no train_one_batch(), which a call is while the model trains: call net.eval() first to evaluate "
            "by forward(), or define train_one_batch(self, x, y), which calls self.optimizer(loss)"
        )

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Train on a batch, or evaluate it."""
        if is_running(self):
            return self.forward(*inputs, **options)
        if self.training:
            return self.train_one_batch(*inputs, **options)
        forward: Any = type(self).forward
        return self._run("evaluation", getattr(forward, "__wrapped__", forward), inputs, options)

    def _run(self, kind: str, method: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        given: dict[Any, Any] = {**dict(enumerate(inputs)), **options}
        inputs, options = as_batch(inputs), as_batch(options)
        seen: dict[Any, Any] = {**dict(enumerate(inputs)), **options}
        host = on_host(given, seen)
        if not self._initialized:
            return self._run_first(kind, method, inputs, options)
        if host:
            handed = Handed(kind, host, self._runs.bounds)
            handed.check()
            with Scope((HANDED, handed)):
                found = self._run_batch(kind, method, inputs, options)
        else:
            found = self._run_batch(kind, method, inputs, options)
        return found if recording() is not None else as_results(found)

    def _run_batch(self, kind: str, method: Callable[..., Any], inputs: Any, options: Any) -> Any:
        with in_mode(self, training=kind == "training"):
            if self.graph_mode:
                function: Any = self._runs.function(self, kind, method, sequential=self.sequential)
            else:
                function = functools.partial(method, self)
            run = functools.partial(function, *inputs, **options)
            return self._runs.timed(kind, run, inputs, self._places())

    def _run_first(self, kind: str, method: Callable[..., Any], inputs: Any, options: Any) -> Any:
        """Run the first call of a model without `compile`, eagerly: it makes the parameters."""
        self._name_layers()  # for messages
        with in_mode(self, training=kind == "training"):
            found = method(self, *inputs, **options)
        self._initialized = True
        self._name_all()
        return found if recording() is not None else as_results(found)

    def _name_all(self) -> None:
        """Give layers, and the parameters that they have made, their names, also those that optimizers know them by."""
        self._name_layers()
        self._name_states()
        self._prepare_optimizers()

    def recover(self, timeout: float | None = None) -> list[BaseException]:
        """Make the last good versions of all that a step changes the values again, after a step that failed.

        A batch that fails, by a label out of range, say, fails all that is computed from it: the step's updates are skipped, and
        from then on every use of the parameters fails the same way. They have not been touched: this call makes them, the
        optimizer's state, the states of layers and what a `weft.opt.EMA` or a `weft.opt.GradientSum` among the attributes keeps
        the values again, as they were before the step. The step counts, and so does a batch to the mean of gradients.

        Parameters
        ----------
        timeout : float, optional
            Seconds; no limit by default.

        Returns
        -------
        list of BaseException
            The failures, each exception once; empty without any.

        Raises
        ------
        RecoveryError
            If an op failed while it changed one of them. Nothing has changed then: load a saved file, by `load_states`.

        Examples
        --------
        >>> from weft import layer, model, opt, tensor
        >>> import numpy as np
        >>> class Classifier(model.Model):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.dense, self.loss = layer.Linear(2), layer.SoftMaxCrossEntropy()
        ...
        ...     def forward(self, x):
        ...         return self.dense(x)
        ...
        ...     def train_one_batch(self, x, y):
        ...         loss = self.loss(self.forward(x), y)
        ...         self.optimizer(loss)
        ...         return loss
        >>> net, x = Classifier(), tensor.from_numpy(np.ones((2, 3), np.float32))
        >>> net.set_optimizer(opt.SGD(lr=0.1, momentum=0.9))
        >>> net.compile([x])
        >>> before = net.get_params()["dense.W"].numpy().copy()
        >>> loss = net(x, tensor.from_numpy(np.array([0, 5], np.int32)))  # there is no class 5
        >>> try:
        ...     loss.item()
        ... except IndexError:
        ...     failed = net.recover()
        >>> [type(error).__name__ for error in failed]
        ['ArgumentIndexError']
        >>> bool((net.get_params()["dense.W"].numpy() == before).all())
        True
        """
        self._check_compiled("recover")
        arrays = list(self.get_states().values())
        for optimizer in self._optimizers().values():
            arrays += optimizer.arrays()
        for value in self.__dict__.values():
            if isinstance(value, EMA | GradientSum):
                arrays += value._arrays()
        return recover(*arrays, timeout=timeout)

    def _name_layers(self) -> None:
        """Give layers their names: the paths to them."""
        for path, layer in self.named_layers():
            if path:
                layer.name = path

    def _name_states(self) -> None:
        """Give parameters and states their names: the paths to them."""
        for name, array in self.get_states().items():
            if isinstance(array, Tensor):
                array.name = name

    def _optimizers(self) -> dict[str, Optimizer]:
        """Return the optimizers among the attributes, and those that others wrap which are none themselves."""
        found: dict[str, Optimizer] = {}
        for name, value in self.__dict__.items():
            optimizer = value if isinstance(value, Optimizer) else getattr(value, "opt", None)
            if isinstance(optimizer, Optimizer):
                found[name] = optimizer
        return found

    def _prepare_optimizers(self) -> None:
        parameters = self.get_params()
        for optimizer in self._optimizers().values():
            optimizer.prepare(parameters)

    def _places(self) -> set[str]:
        return {place for optimizer in self._optimizers().values() for place in optimizer.places}

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs that were recorded of calls, to be looked at: `weft.Program.nbytes`, ``summary()``, ``timeline()``."""
        return tuple(step for function in self._runs.functions.values() for step in function.programs)

    def print_time_profiling(self) -> None:
        """Print how long iterations take: those that were timed since `Device.SetVerbosity`, or else some that are now.

        These replay the program that was used last, and put its states back.
        """
        lines = ["Time Profiling:"]
        for kind, times in self._runs.times.items():
            times.places = self._places() if kind == "training" else set()
            lines += [f"{kind}:", *(f"  {line}" for line in times.lines(2))]
        if len(lines) == 1:
            lines.append(self._runs.profile())
        sys.stdout.write("\n".join(lines) + "\n")

    # Files.

    def save_states(self, fpath: str | os.PathLike[str], aux_states: Mapping[str, Any] | None = None) -> None:
        """Write parameters, states and those of optimizers to a file, which appears when it is whole.

        SINGA's ``load_states`` reads it, too, but for optimizers' states, and objects that are no arrays.

        Parameters
        ----------
        fpath : str or PathLike
            The file, a zip; one of that name is replaced. Suffixes of other formats (``.safetensors``, ``.npz``, ``.pt``) are
            refused: ``weft.save(path, **net.get_states())`` writes the first two.
        aux_states : dict of str, optional
            Further values: arrays, numbers, strings, lists and dicts of them.

        Raises
        ------
        ModelError
            If the model is not compiled, so that it has no parameters.
        ArgumentValueError
            If the file's suffix is that of another format.
        """
        self._check_compiled("save_states")
        files.check_suffix(fpath)
        groups = {"model": blobs.packed(self, {name: _values(value) for name, value in self.get_states().items()})}
        plain: dict[str, dict[str, Any]] = {"aux": {}, "optimizers": {}}
        for name, optimizer in self._optimizers().items():
            plain["optimizers"][name] = {}
            for key, value in optimizer.get_states().items():
                if key in optimizer.slots:
                    groups[f"optimizer {name} {key}"] = {each: _values(array) for each, array in value.items()}
                else:
                    plain["optimizers"][name][key] = value
        groups["aux"] = {}
        for name, value in (aux_states or {}).items():
            if isinstance(value, NDArray | np.ndarray | np.generic):
                groups["aux"][name] = _values(value)
            else:
                plain["aux"][name] = value
        files.write(fpath, groups, plain)

    def load_states(self, fpath: str | os.PathLike[str]) -> dict[str, Any]:
        """Overwrite parameters, states and those of optimizers by a file's, and return the rest.

        Parameters
        ----------
        fpath : str or PathLike
            A file of `save_states`, or one that SINGA has written: that has nothing of optimizers, which stay as they are.

        Returns
        -------
        dict of str
            The values given as `aux_states`; arrays are tensors.

        Raises
        ------
        StateFileError
            If the file is cut short, comes from elsewhere, or is another model's: names and shapes are to be the same.
            Nothing has changed then.
        ModelError
            If the model is not compiled, so that it has no parameters.
        """
        self._check_compiled("load_states")
        groups, plain = files.read(fpath)
        given, own = blobs.unpacked(self, groups.get("model", {})), self.get_states()
        missing, unknown = sorted(set(own) - set(given)), sorted(set(given) - set(own))
        if missing or unknown:
            says = [f"it lacks {_listed(missing)}"] * bool(missing) + [f"it has {_listed(unknown)}"] * bool(unknown)
            raise StateFileError(
                f"{fpath} holds the states of another model than {type(self).__name__}: {', and '.join(says)}"
            )
        for name, array in given.items():
            if array.shape != own[name].shape or not np.can_cast(array.dtype, own[name].dtype, "same_kind"):
                raise StateFileError(
                    f"{fpath} holds the states of another model than {type(self).__name__}: {name!r} there is of shape "
                    f"{array.shape} and dtype {array.dtype}, and here of {own[name].shape} and {own[name].dtype}"
                )
        kept: list[tuple[Optimizer, dict[str, Any]]] = []
        for name, optimizer in self._optimizers().items():
            states: dict[str, Any] = dict(plain["optimizers"].get(name, {}))
            prefix = f"optimizer {name} "
            states |= {key.removeprefix(prefix): arrays for key, arrays in groups.items() if key.startswith(prefix)}
            try:
                optimizer.check_states(states)
            except (ArgumentValueError, ValueError) as error:
                raise StateFileError(f"{fpath} was saved with another optimizer: {error}") from error
            kept.append((optimizer, states))
        self.set_states(given)
        for optimizer, states in kept:
            optimizer.set_states(states)
        aux: dict[str, Any] = {name: Tensor(data=array) for name, array in groups.get("aux", {}).items()}
        return aux | plain["aux"]

    def _check_compiled(self, call: str) -> None:
        if not self._initialized:
            raise ModelError(
                f"{call}: {type(self).__name__} is not compiled, so it has no parameters yet: call compile([x]) first"
            )


def singa_states(fpath: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a model that SINGA's ``save_states`` has written, to be looked at, or given to `Model.set_states`.

    `Model.load_states` reads such a file at once, with auxiliary states, and with weights of `weft.layer.CudnnRNN`.

    Parameters
    ----------
    fpath : str or PathLike
        The file.

    Returns
    -------
    dict of str to numpy.ndarray
        Values by name, without auxiliary states.

    Raises
    ------
    StateFileError
        If it is no such file.
    """
    groups, _ = files.read(fpath)
    return groups.get("model", {})


def torch_states(net: Layer, state_dict: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the values of a PyTorch module by their names, and in their layouts, in the same network here.

    The network here has PyTorch's names: layers bear the names of the module's attributes. Matrices of `weft.layer.Linear` and of
    recurrent layers are transposed, the joint projection of attention is cut into three. The page "Take over a PyTorch model"
    has the table.

    Parameters
    ----------
    net : Layer
        A compiled model, or a layer that was called.
    state_dict : dict of str to array-like
        The result of ``module.state_dict()``, or of `weft.load` for a safetensors file.

    Returns
    -------
    dict of str to numpy.ndarray
        Values for `Layer.set_states`.

    Raises
    ------
    ArgumentValueError
        If names are here or there alone: all of them are listed.

    Examples
    --------
    >>> import numpy as np
    >>> import weft
    >>> from weft import layer, model
    >>> net = layer.Sequential(layer.Linear(2))
    >>> _ = net(weft.ones((1, 3)))
    >>> net.set_states(model.torch_states(net, {"0.weight": np.eye(2, 3), "0.bias": np.zeros(2)}))
    >>> net[0].W.tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    return torch_moves.moved(net, state_dict)


def _dispatched(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a training method that runs as the model was told, unless it is called by one that runs."""

    @functools.wraps(method)
    def wrapped(self: Model, *inputs: Any, **options: Any) -> Any:
        if is_running(self):
            return method(self, *inputs, **options)
        return self._run("training", method, inputs, options)

    return wrapped


def _in_own_mode(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a forward method with layers that train if the model does, in calls from anywhere."""

    @functools.wraps(method)
    def wrapped(self: Model, *inputs: Any, **options: Any) -> Any:
        if is_running(self):
            return method(self, *inputs, **options)
        with in_mode(self, training=self.training):
            return method(self, *inputs, **options)

    return wrapped


def _switch(value: object, name: str) -> bool:
    words = {"True": True, "False": False}
    return flag(words.get(value, value) if isinstance(value, str) else value, name)


def _are_arrays(inputs: Sequence[Any]) -> bool:
    """Return whether there are arrays, and lists of arrays, and nothing else."""
    return bool(inputs) and all(
        isinstance(x, NDArray) or (isinstance(x, list | tuple) and _are_arrays(cast("Sequence[Any]", x)))
        for x in inputs
    )


def _as_arrays(inputs: list[Any]) -> list[Any]:
    """Return the inputs of `compile`, with other libraries' arrays as NDArrays."""
    found: list[Any] = []
    for x in as_batch(inputs):
        if isinstance(x, list | tuple):
            found.append(_as_arrays(list(cast("Sequence[Any]", x))))
        else:
            found.append(namespace.asarray(x) if isinstance(x, np.ndarray) else x)
    return found


def _values(value: Any) -> npt.NDArray[Any]:
    return value.numpy() if isinstance(value, NDArray) else np.asarray(value)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:6]))
    return f"{shown} and {len(names) - 6} more" if len(names) > 6 else shown  # as many as fit a line
