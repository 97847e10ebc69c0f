"""Objects whose methods raise, or return odd values, where functions take arrays, numbers, keys, axes and dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import weft

from .cases import Generator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["GENERATOR"]

METHODS = (
    *("__array__", "__index__", "__int__", "__float__", "__complex__", "__bool__", "__len__", "__iter__"),
    *("__getitem__", "__eq__", "__hash__", "__repr__", "__dlpack__", "__dlpack_device__", "__buffer__", "__call__"),
    *("__array_interface__", "__array_struct__", "__radd__", "__rmul__", "shape", "dtype", "ndim"),
)
ANSWERS = (
    *("None", "NotImplemented", "-1", "2**80", "1e308", "float('nan')", "''", "b'x'", "()", "[]", "object()"),
    *("np.ones(2)", "np.ones(2, object)", "weft.ones(2)", "{}", "slice(None)", "...", "True", "1j"),
)
CALLS = (
    *(
        "weft.asarray({o})",
        "weft.add(x, {o})",
        "weft.add({o}, x)",
        "x + {o}",
        "{o} * x",
        "x @ {o}",
        "x == {o}",
        "{o} in x",
    ),
    *(
        "x[{o}]",
        "x[0, {o}]",
        "x[[{o}]]",
        "weft.sum(x, axis={o})",
        "weft.zeros({o})",
        "weft.zeros((2, {o}))",
        "x.astype({o})",
    ),
    *(
        "weft.reshape(x, {o})",
        "weft.concat([x, {o}])",
        "weft.where({o}, x, x)",
        "weft.take(x, {o}, axis=0)",
        "x.fill({o})",
    ),
    *("weft.arange({o})", "weft.linspace(0, {o}, 3)", "weft.full(2, {o})", "weft.repeat(x, {o})", "weft.roll(x, {o})"),
    *(
        "weft.random.default_rng({o})",
        "weft.program({o})(x)",
        "weft.program(lambda a, b: a)(x, {o})",
        "weft.pad(x, {o})",
    ),
    *(
        "weft.symbol.Variable('x') + {o}",
        "weft.symbol.load_json({o})",
        "weft.clip(x, {o}, 2)",
        "weft.sort(x, axis={o})",
    ),
    *("weft.einsum('ij->i', {o})", "weft.histogram(x, {o})", "weft.save({o}, x=x)", "x.__setitem__(0, {o})"),
)


class RefusedError(Exception):
    """What a method of a user's raises."""


@dataclass(frozen=True)
class Odd:
    """A call with an object: some methods answer, others raise."""

    call: str
    methods: tuple[tuple[str, str], ...]

    def odd(self) -> Any:
        names = {"np": np, "weft": weft}

        def method(answer: str) -> Any:
            left = iter(range(9))

            def run(*_: object, **__: object) -> Any:
                if next(left, None) is None:  # a sequence without an end takes NumPy's reader for ever
                    raise IndexError
                if answer == "raise":
                    raise RefusedError
                return eval(answer, names)

            return run

        found = {
            name: method(answer) if name.startswith("__") and "array_" not in name else property(method(answer))
            for name, answer in self.methods
        }
        return type("Odd", (), found)()

    def run(self) -> str | None:
        x = weft.asarray(np.arange(6.0).reshape(2, 3))
        try:
            result = eval(self.call.format(o="o"), {"weft": weft, "x": x, "o": self.odd()})
            if isinstance(result, weft.NDArray):
                result.wait_to_read()
        except (
            RefusedError,
            weft.errors.WeftError,
            TypeError,
            ValueError,
            LookupError,
            ArithmeticError,
            AttributeError,
        ):
            return None  # who raised it may be the object
        except (BufferError, OSError, MemoryError):
            return None
        except RecursionError as error:
            return f"recursion: {error}"
        weft.wait_all()
        return None

    def smaller(self) -> Iterator[Odd]:
        for at in range(len(self.methods)):
            yield Odd(self.call, self.methods[:at] + self.methods[at + 1 :])

    def __str__(self) -> str:
        return f"{self.call.format(o='o')}, where o has {dict(self.methods)}"


def make(random: Random) -> Odd:
    chosen = random.sample(METHODS, random.randrange(1, 4))
    answers = [random.choice(("raise", *ANSWERS, *ANSWERS)) for _ in chosen]
    return Odd(random.choice(CALLS), tuple(zip(chosen, answers, strict=True)))


GENERATOR = Generator("dunders", make, few=800)
