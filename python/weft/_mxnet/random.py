"""Random numbers: of a shape, or of that of data; of distributions with arrays of parameters; drawn classes, shuffled rows."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.draws import generator_of
from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, dtype, flag, integer, number, optional, shape
from weft._numpy import namespace
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Dtypes, Shapes

    _Lengths = tuple[int, ...]


def _uniform(generator: Any, lengths: _Lengths, low: Any, high: Any) -> Any:
    return generator.random(lengths) * (high - low) + low


def _normal(generator: Any, lengths: _Lengths, loc: Any, scale: Any) -> Any:
    return generator.standard_normal(lengths) * scale + loc


def _gamma(generator: Any, lengths: _Lengths, alpha: Any, beta: Any) -> Any:
    return generator.gamma(alpha, 1.0, lengths) * beta


def _exponential(generator: Any, lengths: _Lengths, lam: Any) -> Any:
    return generator.standard_exponential(lengths) / lam


def _poisson(generator: Any, lengths: _Lengths, lam: Any) -> Any:
    return generator.poisson(lam, lengths)


def _negative_binomial(generator: Any, lengths: _Lengths, k: Any, p: Any) -> Any:
    return generator.negative_binomial(k, p, lengths)


def _by_mean(generator: Any, lengths: _Lengths, mu: Any, alpha: Any) -> Any:
    """Return draws of a negative binomial with this mean; with no dispersion, of Poisson's."""
    if not hasattr(alpha, "dtype"):
        rate = mu if alpha == 0 else generator.gamma(1 / alpha, 1.0, lengths) * (alpha * mu)
        return generator.poisson(rate, lengths)
    wide: Any = namespace.where(alpha > 0, alpha, 1.0)
    rate = namespace.where(alpha > 0, generator.gamma(1 / wide, 1.0, lengths) * (wide * mu), mu)
    return generator.poisson(rate, lengths)


#: How each distribution is drawn, its parameters in one number, and their names as arrays.
_KINDS: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "uniform": (_uniform, {"low": (number, 0.0), "high": (number, 1.0)}, ("low", "high")),
    "normal": (_normal, {"loc": (number, 0.0), "scale": (number, 1.0)}, ("mu", "sigma")),
    "gamma": (_gamma, {"alpha": (number, 1.0), "beta": (number, 1.0)}, ("alpha", "beta")),
    "exponential": (_exponential, {"lam": (number, 1.0)}, ("lam",)),
    "poisson": (_poisson, {"lam": (number, 1.0)}, ("lam",)),
    "negative_binomial": (_negative_binomial, {"k": (integer, 1), "p": (number, 1.0)}, ("k", "p")),
    "generalized_negative_binomial": (_by_mean, {"mu": (number, 1.0), "alpha": (number, 1.0)}, ("mu", "alpha")),
}
_ALIASES = {"uniform": ("uniform",), "normal": ("normal",)}
#: The ranges of parameters: positive, and not negative.
_POSITIVE = {"normal": ("scale",), "gamma": ("alpha", "beta"), "exponential": ("lam",)}
_NOT_NEGATIVE = {"poisson": ("lam",), "negative_binomial": ("k", "p"), "generalized_negative_binomial": ("mu", "alpha")}


def _checked(name: str, s: Any) -> None:
    """Refuse parameters that no distribution has, as MXNet does.

    Raises
    ------
    ArgumentValueError
        If one is not in its range; the message names it.
    """
    for key in _POSITIVE.get(name, ()):
        if not getattr(s, key) > 0:
            raise ArgumentValueError(f"random {name}: {key} is positive, and {getattr(s, key)} was given")
    for key in _NOT_NEGATIVE.get(name, ()):
        if not getattr(s, key) >= 0:
            raise ArgumentValueError(f"random {name}: {key} is not negative, and {getattr(s, key)} was given")
    if name in {"uniform", "randint"} and not s.low <= s.high:
        raise ArgumentValueError(f"random {name}: low is at most high, and {s.low} and {s.high} were given")


def _made_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del ins
    outs.learn(0, s.shape or (1,))


def _made_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del ins
    outs.learn(0, s.dtype or "float32")


def _each_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, theirs=())
    known = ins[0]
    if known is not None:
        outs.learn(0, (*known, *(s.shape or ())))


def _each_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    ins.alike(outs, theirs=())
    outs.learn(0, s.dtype or ins[0])


_MADE: dict[str, Any] = {"shape": (optional(shape), None), "dtype": (optional(dtype), None)}


def _register(name: str, draw: Any, settings: dict[str, Any], parameters: tuple[str, ...]) -> None:
    def given(s: Any) -> list[Any]:
        _checked(name, s)
        return [getattr(s, key) for key in settings]

    def made(s: Any) -> Any:
        generator = generator_of(namespace.zeros(()))
        return namespace.astype(draw(generator, s.shape or (1,), *given(s)), s.dtype or "float32")

    def like(s: Any, data: Any) -> Any:
        return namespace.astype(draw(generator_of(data), data.shape, *given(s)), data.dtype)

    def of_each(s: Any, *arrays: Any) -> Any:
        lengths = tuple(s.shape or ())
        spread = [each.reshape((*each.shape, *(1,) * len(lengths))) for each in arrays]
        found = draw(generator_of(arrays[0]), (*arrays[0].shape, *lengths), *spread)
        return namespace.astype(found, s.dtype or arrays[0].dtype)

    operator(
        f"_random_{name}",
        *_ALIASES.get(name, ()),
        f"random_{name}",
        settings=Settings(("ctx",), **settings, **_MADE),
        inputs=(),
        shapes=_made_shapes,
        dtypes=_made_dtypes,
        gradient=NONE,
        pure=False,
    )(made)
    operator(f"_random_{name}_like", settings=Settings(**settings), gradient=NONE, pure=False)(like)
    operator(
        f"_sample_{name}",
        f"sample_{name}",
        settings=Settings(**_MADE),
        inputs=parameters,
        shapes=_each_shapes,
        dtypes=_each_dtypes,
        gradient=NONE,
        pure=False,
    )(of_each)


for _name, _said in _KINDS.items():
    _register(_name, *_said)


def _whole_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del ins
    outs.learn(0, s.dtype or "int32")


@operator(
    "_random_randint",
    "random_randint",
    settings=Settings(("ctx",), low=(integer, REQUIRED), high=(integer, REQUIRED), **_MADE),
    inputs=(),
    shapes=_made_shapes,
    dtypes=_whole_dtypes,
    gradient=NONE,
    pure=False,
)
def _randint(s: Any) -> Any:
    _checked("randint", s)
    found = generator_of(namespace.zeros(())).integers(s.low, s.high, s.shape or (1,))
    return namespace.astype(found, s.dtype or "int32")


def _class_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        lengths = (*known[:-1], *(s.shape or ()))
        for at in range(len(outs)):
            outs.learn(at, lengths or (1,))


def _class_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    outs.learn(0, s.dtype)
    if len(outs) > 1:
        outs.learn(1, ins[0])


@operator(
    "_sample_multinomial",
    "sample_multinomial",
    settings=Settings(shape=(optional(shape), None), get_prob=(flag, False), dtype=(dtype, "int32")),
    outputs=lambda s: 2 if s.get_prob else 1,
    shapes=_class_shapes,
    dtypes=_class_dtypes,
    gradient=NONE,
    pure=False,
)
def _classes(s: Any, data: Any) -> Any:
    """Return classes drawn by their chances, and with `get_prob` the logarithms of these."""
    lead, lengths = data.shape[:-1], tuple(s.shape or ())
    rows = data.reshape((*lead, *(1,) * len(lengths), data.shape[-1]))
    drawn = generator_of(data).random((*lead, *lengths))[..., None]
    below = namespace.cumsum(rows, axis=-1) <= drawn * namespace.sum(rows, axis=-1, keepdims=True)
    found = namespace.clip(namespace.sum(namespace.astype(below, "int64"), axis=-1), 0, data.shape[-1] - 1)
    answer = namespace.astype(found, s.dtype)
    answer = answer if answer.ndim else answer.reshape((1,))
    if not s.get_prob:
        return answer
    chances = namespace.broadcast_to(rows, (*found.shape, data.shape[-1]))
    logs = namespace.log(namespace.take_along_axis(chances, found[..., None], axis=-1)[..., 0])
    return answer, logs if logs.ndim else logs.reshape((1,))


@operator("_shuffle", "shuffle", gradient=NONE, pure=False)
def _shuffle(s: Any, data: Any) -> Any:
    """Return the rows in an order that is drawn."""
    del s
    order = namespace.argsort(generator_of(data).random((data.shape[0],)))
    return namespace.take(data, order, axis=0)
