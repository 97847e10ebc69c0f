"""The signature of a task: the parameters that are accesses, and the way a call fills them."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any, ForwardRef

from weft._engine.access import Access, Mutate, Overwrite, Read, access_of
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class TaskSignature:
    """The accesses that a function's parameters declare, read once.

    Parameters
    ----------
    function : Callable
        The function; its annotations may be strings.

    Attributes
    ----------
    accesses : list of (str, Access)
        Name and access of each parameter that declares one, in order.

    Raises
    ------
    ArgumentTypeError
        If ``*args`` or ``**kwargs`` declares an access, or if an annotation cannot be evaluated.
    """

    __slots__ = ("_fewest", "_most", "_signature", "_slots", "accesses")

    def __init__(self, function: Callable[..., object]) -> None:
        self._signature = _signature_of(function)
        self.accesses: list[tuple[str, Access]] = []
        self._slots: list[int] = []
        parameters = self._signature.parameters.values()
        names = _Names(function)
        for index, parameter in enumerate(parameters):
            try:
                access = _access_of_parameter(parameter, names)
            except ArgumentTypeError as error:
                raise ArgumentTypeError(f"parameter {str(parameter).partition(':')[0]!r}: {error}") from None
            if access is not None:
                positional = parameter.kind in _POSITIONAL
                self.accesses.append((parameter.name, access))
                self._slots.append(index if positional else sys.maxsize)
        required = [p for p in parameters if p.default is p.empty and p.kind not in _VARIADIC]
        # The short way below is for calls that give all that is required or tagged by its place.
        self._fewest = max([len(required), *(index + 1 for index in self._slots)])
        self._most = sum(p.kind in _POSITIONAL for p in parameters)
        if any(p.kind is p.KEYWORD_ONLY for p in required):
            self._fewest = sys.maxsize

    def arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], tuple[Any, ...], dict[str, Any]]:
        """Return the argument for each of `accesses`, in order, and the arguments that the function is to be called with.

        Parameters
        ----------
        args : tuple
            The positional arguments of the call.
        kwargs : dict
            Its keyword arguments.

        Returns
        -------
        list of object
            Arguments, and defaults where the call gave none.
        tuple, dict
            As given, or with all defaults if one of these is an access: it comes to the function as an argument does.

        Raises
        ------
        TypeError
            If the function cannot be called with these arguments.
        """
        if not kwargs and self._fewest <= len(args) <= self._most:
            return [args[index] for index in self._slots], args, kwargs
        bound = bind(self._signature, args, kwargs)
        given = bound.arguments.keys() >= {name for name, _ in self.accesses}
        bound.apply_defaults()
        found = [bound.arguments[name] for name, _ in self.accesses]
        return (found, args, kwargs) if given else (found, bound.args, bound.kwargs)


def bind(signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> inspect.BoundArguments:
    """Return the arguments of a call by parameter; TypeError if they do not fit.

    As in a call of Python's, a keyword that no parameter has is named before a parameter that it was meant for.
    """
    try:
        return signature.bind(*args, **kwargs)
    except TypeError:
        parameters = signature.parameters
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            for strange in kwargs:
                if strange not in parameters:
                    raise TypeError(f"got an unexpected keyword argument {strange!r}") from None
        raise


class _Unknown:
    """A name in an annotation that is not defined at run time, and all that is made of it."""

    def __getattr__(self, name: str) -> _Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, item: object) -> _Unknown:
        return self

    def __or__(self, other: object) -> _Unknown:
        return self

    __ror__ = __or__


class _Names(dict[str, Any]):
    """The names that a function's string annotations may use.

    Names imported under ``TYPE_CHECKING`` become `_Unknown`, so that ``Read[np.ndarray]`` is read without numpy; the
    words of this package are known even then.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        target: Any = inspect.unwrap(function)
        while isinstance(target, functools.partial):
            target = inspect.unwrap(target.func)
        if not hasattr(target, "__globals__"):
            target = getattr(target, "__call__", None)  # noqa: B004 - the method of a callable instance
        words = {"weft": sys.modules["weft"], "Read": Read, "Mutate": Mutate, "Overwrite": Overwrite}
        self._scopes: list[Mapping[str, Any]] = [getattr(target, "__globals__", {}), vars(builtins), words]

    def __missing__(self, name: str) -> Any:
        return next((scope[name] for scope in self._scopes if name in scope), _Unknown())


def _signature_of(function: Callable[..., object]) -> inspect.Signature:
    """Return the signature, leaving annotations that name undefined things unevaluated."""
    try:
        if sys.version_info >= (3, 14):
            import annotationlib  # noqa: PLC0415 - new in 3.14

            return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
        return inspect.signature(function)
    except ValueError as error:
        raise ArgumentTypeError(
            f"its signature cannot be read ({error}): wrap it in a function with annotated parameters"
        ) from None


def _access_of_parameter(parameter: inspect.Parameter, names: _Names) -> Access | None:
    """Return the access that one parameter declares."""
    annotation = parameter.annotation
    if isinstance(annotation, str):
        annotation = _evaluated(annotation, names)
    if isinstance(annotation, (_Unknown, ForwardRef)):
        raise ArgumentTypeError(
            f"its annotation {parameter.annotation!r} is not defined at run time, where weft must see whether it "
            "declares an access: import it outside `if TYPE_CHECKING`"
        )
    access = access_of(annotation)
    if access is not None and parameter.kind in _VARIADIC:
        raise ArgumentTypeError(f"weft.{access.value} needs a parameter of its own for each object")
    return access


def _evaluated(text: str, names: _Names) -> object:
    """Return the value of a string annotation."""
    try:
        return eval(text, {}, names)  # noqa: S307 - the text is the function's own source
    except Exception as error:  # noqa: BLE001 - an annotation may raise anything
        raise ArgumentTypeError(f"its annotation {text!r} cannot be evaluated: {error}") from None
