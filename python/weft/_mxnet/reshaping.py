"""New shapes of the same elements, in the same order or another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import LINEAR
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import product
from weft._mxnet.settings import REQUIRED, Settings, flag, integer, optional, shape
from weft._numpy import namespace
from weft.errors import GraphError, ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Lengths, Shapes

_KEEP, _REST, _COPY_REST, _JOIN, _SPLIT = 0, -1, -2, -3, -4


def reshaped(known: Lengths, codes: tuple[int, ...], *, reverse: bool = False) -> Lengths:
    """Return the shape that MXNet's codes make of a shape.

    0 keeps a length, -1 takes the rest, -2 copies all further lengths, -3 joins two, -4 splits one into the two numbers
    that follow. Reversed, they are read from the right.

    Examples
    --------
    >>> from weft._mxnet.reshaping import reshaped
    >>> reshaped((2, 3, 4), (-3, 4)), reshaped((2, 3, 4), (0, -4, -1, 1, -2))
    ((6, 4), (2, 3, 1, 4))
    >>> reshaped((10, 5, 4), (-1, 0), reverse=True)
    (50, 4)
    """
    if reverse:
        return reshaped(known[::-1], _reversed(codes))[::-1]
    reader = _Codes(known, codes)
    numbers = iter(codes)
    for code in numbers:
        if code == _SPLIT:
            reader.split([next(numbers, 0), next(numbers, 0)])
        else:
            reader.read(code)
    return reader.result()


class _Codes:
    """A shape that is read from the left; codes turn its lengths into others."""

    def __init__(self, known: Lengths, codes: tuple[int, ...]) -> None:
        self._known, self._codes = known, codes
        self._found: list[int | None] = []
        self._rest: int | None = None
        self._at = 0

    def _take(self) -> int | None:
        if self._at >= len(self._known):
            raise ShapeError(f"shape={self._codes} asks for more axes than data of shape {self._known} has")
        self._at += 1
        return self._known[self._at - 1]

    def read(self, code: int) -> None:
        """Follow a code other than -4."""
        if code == _KEEP:
            self._found.append(self._take())
        elif code == _REST:
            if self._rest is not None:
                raise ShapeError(f"shape={self._codes} leaves two lengths open: one -1 is possible")
            self._rest = len(self._found)
            self._found.append(None)
            self._at += 1
        elif code == _COPY_REST:
            self._found.extend(self._known[self._at :])
            self._at = len(self._known)
        elif code == _JOIN:
            self._found.append(product((self._take(), self._take())))
        elif code > 0:
            self._found.append(code)
            self._at += 1
        else:
            raise ShapeError(f"shape={self._codes}: {code} is no code that there is (0, -1, -2, -3 and -4 are)")

    def split(self, parts: list[int]) -> None:
        """Split a length into two; one of them may be -1."""
        whole = self._take()
        if parts == [_REST, _REST] or 0 in parts:
            raise ShapeError(f"shape={self._codes}: -4 is followed by two lengths, of which one may be -1")
        if _REST in parts and whole is not None:
            at = parts.index(_REST)
            parts[at] = whole // parts[1 - at]
        if whole is not None and parts[0] * parts[1] != whole:
            raise ShapeError(f"shape={self._codes}: {whole} does not split into {tuple(parts)}")
        self._found.extend(None if each < 0 else each for each in parts)

    def result(self) -> Lengths:
        """Return the shape, with the rest in the place of -1."""
        found, total = self._found, product(self._known)
        if self._rest is None:
            if total is not None and product(found) not in (None, total):
                raise ShapeError(f"data of shape {self._known} cannot be reshaped to {tuple(found)}")
            return tuple(found)
        others = product(found[: self._rest] + found[self._rest + 1 :])
        if total is not None and others is not None:
            if not others or total % others:
                raise ShapeError(
                    f"data of shape {self._known} cannot be reshaped by {self._codes}: {total} is no multiple of {others}"
                )
            found[self._rest] = total // others
        return tuple(found)


def _reversed(codes: tuple[int, ...]) -> tuple[int, ...]:
    """Return codes from right to left; those that belong together stay in order."""
    parts: list[tuple[int, ...]] = []
    at = 0
    while at < len(codes):
        step = 3 if codes[at] == _SPLIT else 1
        part = codes[at : at + step]
        parts.append((part[0], *part[:0:-1]))
        at += step
    return tuple(each for part in reversed(parts) for each in part)


def _target(s: Any, known: Lengths) -> Lengths:
    if s.shape:
        return reshaped(known, s.shape, reverse=s.reverse)
    if not s.target_shape:
        raise GraphError("op 'Reshape' needs the attribute shape")
    total = product(known)
    found: list[int | None] = [known[0] if s.keep_highest else s.target_shape[0], *s.target_shape[1:]]
    if 0 in found:
        open_at = found.index(0)
        others = product(found[:open_at] + found[open_at + 1 :])
        found[open_at] = None if total is None or not others else total // others
    return tuple(found)


def _reshape_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        if s.shape and all(each > 0 for each in s.shape):
            outs.learn(0, s.shape)
        return
    outs.learn(0, _target(s, known))
    found = outs[0]
    # One length that is not known follows from the number of elements.
    total = None if found is None else product(found)
    if total and sum(each is None for each in known) == 1:
        others = product(each for each in known if each is not None)
        if others and total % others == 0:
            ins.learn(0, tuple(total // others if each is None else each for each in known))


@operator(
    "Reshape",
    "reshape",
    settings=Settings(shape=(shape, ()), reverse=(flag, False), target_shape=(shape, ()), keep_highest=(flag, False)),
    shapes=_reshape_shapes,
    gradient=LINEAR,
    inplace=((0, 0),),
    identity=True,
)
def _reshape(s: Any, data: Any) -> Any:
    return data.reshape(_target(s, data.shape))


def _plain_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None and None not in known:
        outs.learn(0, _plain(s, known))
    elif -1 not in s.newshape:
        outs.learn(0, s.newshape)


def _plain(s: Any, known: Lengths) -> Lengths:
    """Return the shape as NumPy reads it."""
    if -1 not in s.newshape:
        return tuple(s.newshape)
    others = product(each for each in s.newshape if each != -1)
    total = product(known)
    if total is None or not others or total % others:
        raise ShapeError(f"data of shape {known} cannot be reshaped to {s.newshape}")
    return tuple(total // others if each == -1 else each for each in s.newshape)


@operator(
    "_np_reshape",
    "_npi_reshape",
    settings=Settings(("order",), newshape=(shape, REQUIRED)),
    shapes=_plain_shapes,
    gradient=LINEAR,
    inplace=((0, 0),),
    identity=True,
)
def _plain_reshape(s: Any, data: Any) -> Any:
    return data.reshape(_plain(s, data.shape))


#: The codes of MXNet 2's ``npx.reshape`` as those of `reshaped`.
_NEW_CODES = {-1: _REST, -2: _KEEP, -4: _COPY_REST, -5: _JOIN, -6: _SPLIT}


def _new_target(s: Any, known: Lengths) -> Lengths:
    codes: list[int] = []
    axes = list(known[::-1] if s.reverse else known)
    at = 0
    parts = 0
    order = _reversed_new(s.newshape) if s.reverse else s.newshape
    for code in order:
        if parts:
            parts -= 1
            codes.append(code)
            continue
        if code == -3:  # leaves out a length of 1
            if axes[at] not in (1, None):
                raise ShapeError(f"newshape={s.newshape}: -3 leaves out a length of 1, and there is {axes[at]}")
            del axes[at]
            continue
        codes.append(_NEW_CODES.get(code, code))
        at += 2 if code == -5 else 1  # joins two
        parts = 2 if code == -6 else 0  # splits one
    found = reshaped(tuple(axes), tuple(codes))
    return found[::-1] if s.reverse else found


def _reversed_new(codes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(
        {_SPLIT: -6}.get(each, each) for each in _reversed(tuple({-6: _SPLIT}.get(each, each) for each in codes))
    )


def _new_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        outs.learn(0, _new_target(s, known))


@operator(
    "_npx_reshape",
    settings=Settings(("order",), newshape=(shape, REQUIRED), reverse=(flag, False)),
    shapes=_new_shapes,
    gradient=LINEAR,
    inplace=((0, 0),),
    identity=True,
)
def _new_reshape(s: Any, data: Any) -> Any:
    return data.reshape(_new_target(s, data.shape))


def _flat_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    outs.learn_rank(0, 2)
    known = ins[0]
    if known is not None:
        if not known:
            raise ShapeError("a scalar has no axis that Flatten could keep")
        outs.learn(0, (known[0], product(known[1:])))
        ins.learn(0, (outs.length(0, 0), *(None,) * (len(known) - 1)))


@operator(
    "Flatten",
    "flatten",
    "_npx_batch_flatten",
    shapes=_flat_shapes,
    gradient=LINEAR,
    inplace=((0, 0),),
    identity=True,
)
def _flatten(s: Any, data: Any) -> Any:
    del s
    return data.reshape((data.shape[0], -1))


def _order(s: Any, rank: int) -> tuple[int, ...]:
    given = tuple(each % rank for each in s.axes or ())
    return given or tuple(range(rank))[::-1]


def _transpose_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    rank = len(s.axes) if s.axes else ins.rank(0) if ins[0] is not None else outs.rank(0)
    if rank is None:
        return
    order = _order(s, rank)
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"axes={s.axes} is no order of {rank} axes")
    ins.learn_rank(0, rank)
    outs.learn_rank(0, rank)
    own, made = ins[0], outs[0]
    assert own is not None
    assert made is not None
    back: list[int | None] = [None] * rank
    for to, at in enumerate(order):
        back[at] = made[to]
    ins.learn(0, back)
    own = ins[0] or own
    outs.learn(0, tuple(own[at] for at in order))


@operator(
    "transpose",
    "_np_transpose",
    "_npi_transpose",
    settings=Settings(axes=(optional(shape), ())),
    shapes=_transpose_shapes,
    layout="permute_dims",
    gradient=LINEAR,
)
def _transpose(s: Any, data: Any) -> Any:
    return namespace.permute_dims(data, _order(s, data.ndim))


def _swapped(s: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    found = list(values)
    found[s.dim1], found[s.dim2] = found[s.dim2], found[s.dim1]
    return tuple(found)


def _swap_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    for one, other in ((ins, outs), (outs, ins)):
        known = one[0]
        if known is not None:
            if not all(-len(known) <= at < len(known) for at in (s.dim1, s.dim2)):
                raise ShapeError(f"there are no axes {s.dim1} and {s.dim2} in data of shape {known}")
            other.learn(0, _swapped(s, known))


@operator(
    "SwapAxis",
    "swapaxes",
    settings=Settings(dim1=(integer, 0), dim2=(integer, 0)),
    shapes=_swap_shapes,
    gradient=LINEAR,
)
def _swap(s: Any, data: Any) -> Any:
    return namespace.swapaxes(data, s.dim1, s.dim2)


@operator(
    "_npi_swapaxes", settings=Settings(dim1=(integer, 0), dim2=(integer, 0)), shapes=_swap_shapes, gradient=LINEAR
)
def _swap_new(s: Any, data: Any) -> Any:
    return namespace.swapaxes(data, s.dim1, s.dim2)


def _expand_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        at = s.axis if s.axis >= 0 else s.axis + len(known) + 1
        if not 0 <= at <= len(known):
            raise ShapeError(f"axis={s.axis} is no place for a new axis in data of shape {known}")
        outs.learn(0, (*known[:at], 1, *known[at:]))
    made = outs[0]
    if made is not None:
        at = s.axis if s.axis >= 0 else s.axis + len(made)
        ins.learn(0, (*made[:at], *made[at + 1 :]))


@operator(
    "expand_dims",
    "_npi_expand_dims",
    settings=Settings(axis=(integer, REQUIRED)),
    shapes=_expand_shapes,
    gradient=LINEAR,
    inplace=((0, 0),),
    identity=True,
)
def _expand(s: Any, data: Any) -> Any:
    return namespace.expand_dims(data, s.axis)


def _squeezed(s: Any, known: Lengths) -> Lengths:
    if s.axis is None:
        if None in known:
            return known
        return tuple(each for each in known if each != 1) or (1,)
    gone = {each % len(known) for each in s.axis}
    if any(known[at] not in (1, None) for at in gone):
        raise ShapeError(f"axis={s.axis} of data of shape {known} has not only lengths of 1")
    return tuple(each for at, each in enumerate(known) if at not in gone) or (1,)


def _squeeze_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None and (s.axis is not None or None not in known):
        outs.learn(0, _squeezed(s, known))


@operator(
    "squeeze",
    "_np_squeeze",
    "_npi_squeeze",
    settings=Settings(axis=(optional(shape), None)),
    shapes=_squeeze_shapes,
    gradient=LINEAR,
    inplace=((0, 0),),
    identity=True,
)
def _squeeze(s: Any, data: Any) -> Any:
    return data.reshape(_squeezed(s, data.shape))


def _like_parts(s: Any, known: Lengths, like: Lengths) -> Lengths:
    """Return a shape with some of its axes in the place of some of the other's."""
    if s.lhs_begin is None and s.lhs_end is None and s.rhs_begin is None and s.rhs_end is None:
        return like
    own, other = (
        slice(begin, end).indices(len(each))[:2]
        for each, begin, end in ((known, s.lhs_begin, s.lhs_end), (like, s.rhs_begin, s.rhs_end))
    )
    return (*known[: own[0]], *like[other[0] : other[1]], *known[own[1] :])


def _second_shape(s: Any, ins: Shapes, outs: Shapes) -> None:
    known, like = ins[0], ins[1]
    if known is not None and like is not None:
        outs.learn(0, _like_parts(s, known, like))


@operator(
    "reshape_like",
    "_npx_reshape_like",
    settings=Settings(
        lhs_begin=(optional(integer), None),
        lhs_end=(optional(integer), None),
        rhs_begin=(optional(integer), None),
        rhs_end=(optional(integer), None),
    ),
    inputs=("lhs", "rhs"),
    shapes=_second_shape,
    gradient=LINEAR,
    inplace=((0, 0),),
    identity=True,
)
def _reshape_like(s: Any, data: Any, like: Any) -> Any:
    return data.reshape(_like_parts(s, data.shape, like.shape))
