"""The functions of MXNet's module ``random``: of numbers, or of arrays of parameters, for arrays and symbols alike."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

#: The parameters of distributions, as MXNet's functions name them.
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "uniform": ("low", "high"),
    "normal": ("loc", "scale"),
    "gamma": ("alpha", "beta"),
    "exponential": ("scale",),
    "poisson": ("lam",),
    "negative_binomial": ("k", "p"),
    "generalized_negative_binomial": ("mu", "alpha"),
}
#: Functions whose op has another name.
_NAMES = {"multinomial": "_sample_multinomial", "shuffle": "_shuffle", "randint": "_random_randint"}
#: What a call names after the parameters.
_REST = ("shape", "dtype", "ctx", "out")


@cache
def draw_function(
    name: str, function: Callable[[str], Callable[..., Any]], is_operand: Callable[[Any], bool]
) -> Callable[..., Any] | None:
    """Return a function of MXNet's module ``random``; None if it has none of this name.

    `function` returns the function of an op by its name; `is_operand` says whether a value is an array, or a symbol.

    Examples
    --------
    >>> import weft.mxnet.ndarray as nd
    >>> nd.random.exponential(scale=3, shape=(2, 3)).shape, nd.random.normal(nd.ones(4), nd.ones(4), 2).shape
    ((2, 3), (4, 2))
    """
    if name in _NAMES:
        return function(_NAMES[name])
    if name == "randn":
        normal = draw_function("normal", function, is_operand)
        assert normal is not None
        return lambda *shape, **named: normal(shape=shape, **named)
    parameters = _PARAMETERS.get(name)
    if parameters is None:
        return None

    def call(*given: Any, **named: Any) -> Any:
        order = (*parameters, *_REST)
        if len(given) > len(order):
            raise ArgumentTypeError(f"random.{name}() takes {', '.join(order)}, and {len(given)} arguments were given")
        named |= dict(zip(order, given, strict=False))
        named = {key: each for key, each in named.items() if each is not None}
        values = {key: named.pop(key) for key in parameters if key in named}
        of_arrays = any(map(is_operand, values.values()))
        if of_arrays and not (len(values) == len(parameters) and all(map(is_operand, values.values()))):
            raise ArgumentTypeError(f"random.{name}(): {' and '.join(parameters)} are numbers, or all are arrays")
        if name == "exponential" and values:  # ops take its inverse
            values = {"lam": 1 / values["scale"]}
        if of_arrays:
            return function(f"_sample_{name}")(*values.values(), **named)
        return function(f"_random_{name}")(**values, **named)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Draw numbers: {', '.join((*parameters, *_REST))}."
    return call
