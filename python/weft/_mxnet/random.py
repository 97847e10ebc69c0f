"""Random numbers: of a shape, or of that of data."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.draws import generator_of
from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import Settings, dtype, number, optional, shape
from weft._numpy import namespace

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Dtypes, Shapes


def _uniform(s: Any, generator: Any, lengths: tuple[int, ...]) -> Any:
    return generator.random(lengths) * (s.high - s.low) + s.low


def _normal(s: Any, generator: Any, lengths: tuple[int, ...]) -> Any:
    return generator.standard_normal(lengths) * s.scale + s.loc


_KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "uniform": (_uniform, {"low": (number, 0.0), "high": (number, 1.0)}),
    "normal": (_normal, {"loc": (number, 0.0), "scale": (number, 1.0)}),
}
_ALIASES = {"uniform": ("uniform", "random_uniform"), "normal": ("normal", "random_normal")}


def _made_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del ins
    outs.learn(0, s.shape or (1,))


def _made_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del ins
    outs.learn(0, s.dtype or "float32")


def _register() -> None:
    for name, (draw, settings) in _KINDS.items():

        def made(s: Any, *, draw: Any = draw) -> Any:
            generator = generator_of(namespace.zeros(()))
            return namespace.astype(draw(s, generator, s.shape or (1,)), s.dtype or "float32")

        def like(s: Any, data: Any, *, draw: Any = draw) -> Any:
            return namespace.astype(draw(s, generator_of(data), data.shape), data.dtype)

        operator(
            f"_random_{name}",
            *_ALIASES[name],
            settings=Settings(("ctx",), **settings, shape=(optional(shape), None), dtype=(optional(dtype), None)),
            inputs=(),
            shapes=_made_shapes,
            dtypes=_made_dtypes,
            gradient=NONE,
            pure=False,
        )(made)
        operator(f"_random_{name}_like", settings=Settings(**settings), gradient=NONE, pure=False)(like)


_register()
