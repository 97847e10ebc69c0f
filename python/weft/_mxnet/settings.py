"""The attributes of MXNet's ops: their kinds, their text in files, their defaults."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._core import parse_value
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Stands in the place of a default where there is none.
REQUIRED: Any = object()

_LONG = re.compile(r"(\d)L\b")
_DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")


def _literal(value: Any) -> Any:
    """Return the value of a text as a literal; Python 2 wrote long integers as ``3L``."""
    return parse_value(_LONG.sub(r"\1", value.strip())) if isinstance(value, str) else value


def _several(found: Any) -> tuple[Any, ...] | None:
    """Return a list, or a tuple, as a tuple; None for anything else."""
    return tuple(found) if found.__class__ in (tuple, list) else None


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def integer(value: Any) -> int:
    """Read an integer."""
    found = _literal(value)
    if (isinstance(found, float) and found.is_integer()) or isinstance(found, bool):
        found = int(found)
    if not _is_integer(found):
        raise ValueError("an integer")
    return int(found)


def number(value: Any) -> float:
    """Read a real number."""
    found = _literal(value)
    if isinstance(found, str):
        try:
            return float(found)
        except ValueError:
            raise ValueError("a number") from None
    try:
        return float(found)
    except TypeError:
        raise ValueError("a number") from None


def flag(value: Any) -> bool:
    """Read a flag: ``True``, ``true`` and ``1`` say yes."""
    found = _literal(value)
    if isinstance(found, str) and found.lower() in {"true", "false"}:
        return found.lower() == "true"
    if isinstance(found, bool | int) and found in {0, 1}:
        return bool(found)
    raise ValueError("True or False")


def shape(value: Any) -> tuple[int, ...]:
    """Read a tuple of integers; one integer is a tuple of one."""
    found = _literal(value)
    if _is_integer(found):
        return (int(found),)
    several = _several(found)
    if several is not None and all(map(_is_integer, several)):
        return tuple(map(int, several))
    raise ValueError("a tuple of integers")


def axes(value: Any) -> tuple[int | None, ...]:
    """Read a tuple of integers and None."""
    found = _literal(value)
    if _is_integer(found) or found is None:
        return (found,)
    several = _several(found)
    if several is not None and all(each is None or _is_integer(each) for each in several):
        return several
    raise ValueError("a tuple of integers and None")


def numbers(value: Any) -> tuple[float, ...]:
    """Read a tuple of numbers."""
    found = _literal(value)
    if isinstance(found, int | float):
        return (float(found),)
    several = _several(found)
    if several is not None and all(isinstance(each, int | float) for each in several):
        return tuple(map(float, several))
    raise ValueError("a tuple of numbers")


def text(value: Any) -> str:
    """Read a text as it stands."""
    return value if isinstance(value, str) else str(value)


def dtype(value: Any) -> np.dtype[Any]:
    """Read a dtype by its name, or by its number in MXNet."""
    found = _literal(value)
    if _is_integer(found) and 0 <= found < len(_DTYPES):
        return np.dtype(_DTYPES[cast("int", found)])
    try:
        kind: np.dtype[Any] = np.dtype(found)  # pyright: ignore[reportUnknownArgumentType]
    except TypeError:
        raise ValueError(f"a dtype ({', '.join(_DTYPES)})") from None
    return kind


def optional(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a kind that reads ``None`` as well."""

    def read(value: Any) -> Any:
        return None if value is None or value in ("None", "") else kind(value)

    return read


def choice(*known: str) -> Callable[[Any], str]:
    """Return a kind that reads one of some words."""

    def read(value: Any) -> str:
        if isinstance(value, str) and value in known:
            return value
        raise ValueError(f"one of {', '.join(known)}")

    return read


class Settings:
    """The attributes of an op: a kind and a default for each name.

    Parameters
    ----------
    without_effect : sequence of str
        Names that MXNet's files have and that change no result: choices of algorithms, say.
    **known : (callable, object)
        The kind, which reads a text or a value, and the default: `REQUIRED` where there is none.

    Examples
    --------
    >>> from weft._mxnet.settings import REQUIRED, Settings, flag, shape
    >>> settings = Settings(kernel=(shape, REQUIRED), no_bias=(flag, False))
    >>> settings.read("Convolution", {"kernel": "(3L, 3L)"})
    {'kernel': (3, 3), 'no_bias': False}
    """

    __slots__ = ("known", "without_effect")

    #: Whether other names are attributes, too.
    is_open = False

    def __init__(self, without_effect: tuple[str, ...] = (), **known: tuple[Callable[[Any], Any], Any]) -> None:
        self.known = known
        self.without_effect = tuple(without_effect)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that a call may give."""
        return (*self.known, *sorted(self.without_effect))

    def parse(self, op: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return given attributes as a file has them: literals as such, a number that stands for a tuple as a number, other texts as texts.

        Raises
        ------
        GraphError
            If a name is not known, or a value is of another kind.
        """
        values = self.values(op, given)
        return {
            name: each if isinstance(each, str) or name not in self.known else _literal(given[name])
            for name, each in values.items()
        }

    def values(self, op: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return given attributes as values of their kinds; those without effect stay as they are.

        Raises
        ------
        GraphError
            As for `parse`.
        """
        found: dict[str, Any] = {}
        for name, value in given.items():
            kind = self.known.get(name)
            if kind is None:
                if name not in self.without_effect:
                    raise GraphError(
                        f"op {op!r} has no attribute {name!r}: it has {', '.join(self.known) or 'no attributes'}"
                    )
                found[name] = value
                continue
            try:
                found[name] = kind[0](value)
            except ValueError as error:
                raise GraphError(f"attribute {name!r} of op {op!r} is {error}, and {value!r} was given") from None
        return found

    def read(self, op: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a value for each attribute that has an effect: the given one, or the default.

        Raises
        ------
        GraphError
            As for `parse`, and if an attribute without a default is missing.
        """
        parsed = self.values(op, given)
        found = {name: parsed.get(name, default) for name, (_, default) in self.known.items()}
        missing = [name for name, value in found.items() if value is REQUIRED]
        if missing:
            raise GraphError(f"op {op!r} needs the attribute{'s'[: len(missing) > 1]} {', '.join(missing)}")
        return found
