"""SINGA's operators as classes: settings first, arrays at the call. Each calls a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._tape.user_operators import Operator
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable


class _Applied(Operator):
    """An operator that is a function of weft, and has the gradient of that."""

    _function: Callable[..., Any]
    _settings: tuple[str, ...] = ()

    def __init__(self, *settings: Any, **named: Any) -> None:
        given = dict(zip(self._settings, settings, strict=False)) | named
        unknown = sorted(set(given) - set(self._settings))
        if len(settings) > len(self._settings) or unknown:
            listed = ", ".join(self._settings) or "no settings"
            extra = ", ".join(map(repr, unknown or settings[len(self._settings) :]))
            raise ArgumentTypeError(f"{type(self).__name__} takes {listed}, and was given {extra}")
        self._given = given

    def forward(self, *arrays: Any) -> Any:
        """Return the function's results for the arrays."""
        return type(self)._function(*arrays, **self._given)

    def __call__(self, *arrays: Any) -> Any:
        """Return the function's results for the arrays; the tape hears its ops."""
        return self.forward(*arrays)


def applying(name: str, function: Callable[..., Any], settings: str = "", example: str = "") -> type[Operator]:
    """Return an operator class with instances that call a function.

    Parameters
    ----------
    name : str
        The class's.
    function : callable
        Takes arrays, and the settings by name.
    settings : str
        Names of the constructor's arguments, in order.
    example : str
        Which function of `weft.autograd` its docstring refers to, by default that of the function's name.

    Examples
    --------
    >>> import weft
    >>> from weft._singa.classes import applying
    >>> applying("Twice", lambda x, by=2: x * by, "by")(3)(weft.ones(1))
    NDArray([3.])
    """
    names = tuple(settings.split())
    namespace = {
        "__doc__": f"`{example or function.__name__}` as an operator{', made with ' + ', '.join(names) if names else ''}.",
        "__module__": "weft.autograd",
        "_function": staticmethod(function),
        "_settings": names,
    }
    return type(name, (_Applied,), namespace)
