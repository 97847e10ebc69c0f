"""The base of all layers: parameters made at the first call, names by the path of attributes, states."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from weft._core import NDArray
from weft._numpy.hints import refuse
from weft._program.unrecorded import outside
from weft._registry.brief import brief
from weft._singa.hints import INSTEAD_OF_LAYERS
from weft._singa.models.batches import as_batch
from weft._singa.models.tensors import Tensor, write
from weft._tape.leaves import is_own_leaf, is_stored
from weft._tape.modes import no_grad
from weft.errors import ArgumentTypeError, ArgumentValueError, ModelError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from weft._engine.labels import Device

T = TypeVar("T")


def _replaceable(method: Callable[..., T]) -> Callable[..., T]:
    """Return a method as it is: to type checkers, one that a subclass may define with arguments of its own."""
    return method


class Layer:
    """A part of a network: parameters, states, and a function of arrays. The base of one's own layers.

    A subclass defines `forward`, and `initialize` if shapes of its parameters follow from the first input: both take the
    same arguments, and `initialize` is called once, before the first `forward`. Values of attributes are found there:
    layers, tensors that store gradients (parameters) and other tensors (states), also in lists, tuples and dicts.
    Their names are the paths of attributes: ``conv1.W``, ``blocks.0.bn.scale``.

    Attributes
    ----------
    name : str or None
        The path from the model, once that is compiled.

    Examples
    --------
    >>> import weft
    >>> from weft import layer, tensor
    >>> class Scale(layer.Layer):
    ...     def initialize(self, x):
    ...         self.by = tensor.Tensor((x.shape[-1],), dtype=x.dtype, stores_grad=True).set_value(2.0)
    ...
    ...     def forward(self, x):
    ...         return x * self.by
    >>> scale = Scale()
    >>> scale(weft.ones(2))
    NDArray([2., 2.])
    >>> list(scale.get_params())
    ['by']
    """

    sep: ClassVar[str] = "."
    _initialized = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "initialize" in cls.__dict__ or "forward" in cls.__dict__:
            forward = cls.__dict__.get("forward")
            if forward is not None and cls.initialize is not Layer.initialize:
                cls.forward = _initializing(forward)  # type: ignore[method-assign] # called by its name, it is sized, too

    name: str | None
    _registered: dict[str, Layer]
    _frozen: set[str]

    if not TYPE_CHECKING:  # a checker takes a layer's arguments from `__init__` alone

        def __new__(cls, *args: object, **options: object) -> Self:
            """Make a layer without parts, even if its `__init__` does not call that of its base."""
            del args, options  # the subclass's
            made = super().__new__(cls)
            made.name, made._registered, made._frozen = None, {}, set()
            return made

    def __init__(self) -> None:
        """Take nothing: subclasses have arguments of their own."""

    @_replaceable
    def initialize(self, *inputs: Any) -> None:
        """Make the parameters, given the arguments of the first call."""

    @_replaceable
    def forward(self, *inputs: Any) -> Any:
        """Return the results for the inputs."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Return the results for the inputs."""
        if not self._initialized:
            self._prepare(inputs, options)
        return self.forward(*inputs, **options)

    def _prepare(self, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        """Make the parameters, now, even if this thread records a program."""

        def make() -> None:
            with no_grad():
                self.initialize(*inputs, **options)

        if type(self).initialize is not Layer.initialize:
            outside(make)
        self._initialized = True

    def register_layers(self, *args: Layer | Mapping[str, Layer]) -> None:
        """Enter layers under names: those of a dict, or their classes' names and numbers, ``Linear_0``."""
        items: list[tuple[str, Any]]
        if len(args) == 1 and not isinstance(args[0], Layer):
            items = list(args[0].items())
        else:
            items = [(f"{type(value).__name__}_{number}", value) for number, value in enumerate(args)]
        for name, value in items:
            if not isinstance(value, Layer):
                raise ArgumentTypeError(f"register_layers takes layers, and {name!r} is a {type(value).__name__}")
            self._registered[name] = value

    # Its parts.

    def named(self) -> Iterator[tuple[str, Layer | NDArray]]:
        """Yield its layers and arrays with their names, in the order of their assignments."""
        for name, value in self.__dict__.items():
            if name not in {"_registered", "inputs"}:
                yield from _found(name, value)
        yield from self._registered.items()

    def named_layers(self, prefix: str = "") -> Iterator[tuple[str, Layer]]:
        """Yield this layer and all inside with the paths to them, each once."""
        seen: set[int] = set()

        def walk(layer: Layer, path: str) -> Iterator[tuple[str, Layer]]:
            if id(layer) in seen:
                return
            seen.add(id(layer))
            yield path, layer
            for name, value in layer.named():
                if isinstance(value, Layer):
                    yield from walk(value, f"{path}{self.sep}{name}" if path else name)

        return walk(self, prefix)

    def _arrays(self) -> dict[str, NDArray]:
        """Return the arrays of this layer and all inside by their names; one that has two names by the first."""
        found: dict[str, NDArray] = {}
        seen: set[int] = set()
        for path, layer in self.named_layers():
            for name, value in layer.named():
                if (
                    isinstance(value, NDArray)
                    and id(value) not in seen
                    and (_is_state(value) or name in layer._frozen or is_own_leaf(value))
                ):
                    seen.add(id(value))
                    found[f"{path}{self.sep}{name}" if path else name] = value
        return found

    def get_params(self) -> dict[str, NDArray]:
        """Return the parameters of this layer and of all inside, by name: arrays with wanted gradients.

        Examples
        --------
        >>> import weft
        >>> from weft import layer
        >>> dense = layer.Linear(2)
        >>> dense(weft.ones((1, 3))).shape
        (1, 2)
        >>> {name: value.shape for name, value in dense.get_params().items()}
        {'W': (3, 2), 'b': (2,)}
        """
        return {name: value for name, value in self._arrays().items() if is_stored(value)}

    def get_states(self) -> dict[str, NDArray]:
        """Return parameters and states, such as running averages, of this layer and of all inside, by name."""
        return self._arrays()

    def set_params(self, parameters: Mapping[str, Any]) -> None:
        """Overwrite parameters that are named exactly; ArgumentValueError, and nothing changed, where one does not fit.

        Parameters
        ----------
        parameters : dict of str to array-like
            Values by name. Parameters that are not named stay as they are.
        """
        self._set("set_params", self.get_params(), parameters)

    def set_states(self, states: Mapping[str, Any]) -> None:
        """Overwrite parameters and states that are named exactly, as `set_params`."""
        self._set("set_states", self.get_states(), states)

    def _set(self, what: str, known: dict[str, NDArray], given: Mapping[str, Any]) -> None:
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ArgumentValueError(
                f"{what}: {type(self).__name__} has no {_listed(unknown)}: it has {_listed(known) or 'nothing yet: compile it'}"
            )
        for name, value in given.items():
            shape = tuple(getattr(value, "shape", ()))
            if shape != known[name].shape:
                raise ShapeError(f"{what}: {name!r} has the shape {known[name].shape}, and was given {shape}")
        for name, value in given.items():
            target = known[name]
            if isinstance(target, Tensor):
                target.copy_from(value)
            else:
                write(target, value, 0)

    def freeze(self) -> None:
        """Let the parameters of this layer, and of all inside, stay as they are: they have no gradients until `unfreeze`.

        Running averages, as those of `BatchNorm2d`, still follow the batches while layers train. Programs are recorded anew.

        Raises
        ------
        ModelError
            If there are parameters yet to be made: `weft.model.Model.compile`, or a first call, makes them.

        Examples
        --------
        >>> import weft
        >>> from weft import layer
        >>> net = layer.Sequential(layer.Linear(3), layer.Linear(1))
        >>> _ = net(weft.ones((2, 4)))
        >>> net[0].freeze()
        >>> list(net.get_params()), list(net.get_states())
        (['1.W', '1.b'], ['0.W', '0.b', '1.W', '1.b'])
        >>> net.unfreeze()
        >>> len(net.get_params())
        4
        """
        layers = dict(self.named_layers())
        for layer in layers.values():
            if not layer._initialized and type(layer).initialize is not Layer.initialize:
                raise ModelError(
                    f"freeze: {layer._called()} has no parameters yet: compile the model, or call the layer, first"
                )
        for layer in layers.values():
            for name, value in layer.named():
                if isinstance(value, NDArray) and is_stored(value):
                    value.requires_grad = False
                    layer._frozen.add(name)

    def unfreeze(self) -> None:
        """Train the parameters again that `freeze` has left out."""
        for _, layer in self.named_layers():
            for name, value in layer.named():
                if isinstance(value, NDArray) and name in layer._frozen:
                    value.requires_grad = True
            layer._frozen.clear()

    def dtype_check(self, *inputs: NDArray) -> None:
        """Raise unless all inputs have the dtype of the first."""
        for x in inputs[1:]:
            if x.dtype != inputs[0].dtype:
                raise ArgumentTypeError(f"{self._called()}: inputs of dtypes {inputs[0].dtype} and {x.dtype}")

    def device_check(self, *inputs: NDArray) -> None:
        """Raise unless all inputs are on the device of the first."""
        for x in inputs[1:]:
            if x.device != inputs[0].device:
                raise ArgumentValueError(f"{self._called()}: inputs on {inputs[0].device} and on {x.device}")

    def _called(self) -> str:
        """Return its name in messages."""
        return f"{self.name} ({type(self).__name__})" if self.name else type(self).__name__

    def _refuse(self, takes: str, x: NDArray, has: str, shape: Sequence[int]) -> ShapeError:
        """Return the error for an input that does not fit: with the layer's name and both shapes."""
        return ShapeError(
            f"{self._called()} takes {takes}, and was given the shape {x.shape}: {has} has the shape {tuple(shape)}"
        )

    def __repr__(self) -> str:
        """Return the class and the shapes of its arrays."""
        own = ", ".join(f"{name} {value.shape}" for name, value in self.named() if isinstance(value, NDArray))
        return f"<{self._called()}{': ' if own else ''}{own}>"


refuse(Layer, INSTEAD_OF_LAYERS)


class Own(Layer):
    """A layer of weft's own, which knows how many of its inputs are arrays. Not for users."""

    _arrays_first: ClassVar[int] = 1

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Return the results for the inputs."""
        if any(x.__class__ is not NDArray for x in inputs):
            inputs = tuple(map(as_batch, inputs))
        self._check_arrays(inputs)
        return super().__call__(*inputs, **options)

    def _check_arrays(self, inputs: tuple[Any, ...]) -> None:
        for x in inputs[: self._arrays_first]:
            if not hasattr(x, "shape"):
                raise ArgumentTypeError(
                    f"{self._called()} is called with arrays, and was given {brief(x)}: make one by weft.asarray or "
                    "tensor.from_numpy"
                )


class Lazy(Own):
    """A layer with parameters: how they are made and named. Not for users."""

    def _parameter(self, shape: Sequence[int], like: NDArray, fill: Callable[[Tensor], object] | None = None) -> Tensor:
        """Return a parameter beside an input, of its dtype if that is a floating-point one, filled or of zeros."""
        made = self._state(shape, like, fill)
        made.requires_grad = True
        return made

    def _state(self, shape: Sequence[int], like: NDArray, fill: Callable[[Tensor], object] | None = None) -> Tensor:
        device: Device = like.device
        made = Tensor(tuple(shape), device, like.dtype if like.dtype.kind == "f" else "float32")
        if fill is not None:
            fill(made)
        return made


def _is_state(value: NDArray) -> bool:
    return isinstance(value, Tensor) and not value._is_result


def _initializing(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a forward function that makes the parameters before the first call."""

    @functools.wraps(forward)
    def wrapped(self: Layer, *inputs: Any, **options: Any) -> Any:
        if not self._initialized:
            self._prepare(inputs, options)
        return forward(self, *inputs, **options)

    return wrapped


def _found(name: str, value: object) -> Iterator[tuple[str, Layer | NDArray]]:
    """Yield the layers and arrays in an attribute's value."""
    if isinstance(value, (Layer, NDArray)):
        yield name, value
    elif isinstance(value, list | tuple):
        for number, item in enumerate(cast("Sequence[object]", value)):
            yield from _found(f"{name}.{number}", item)
    elif isinstance(value, dict):
        for key, item in cast("Mapping[object, object]", value).items():
            yield from _found(f"{name}.{key}", item)


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))
