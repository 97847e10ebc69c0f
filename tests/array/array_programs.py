"""An interpreter of array programs, for NumPy and for weft.

A program is data: steps whose numbers are resolved against the arrays at hand by shape and dtype alone, never by value,
so that one interpreter runs it on NumPy and on weft. What a step made is compared with NumPy bit for bit. The exception
is what passed through an inexact reduction: such an array is *rough*, compared with NumPy within a tolerance where the
reduction made it, and from there on, values being free to drift apart, only with weft's own serial run.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

import weft

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES = (
    "bool",
    "int8",
    "int32",
    "int64",
    "uint8",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
SHAPES = ((), (6,), (4, 6), (3, 4, 2), (1, 6), (4, 1), (0, 6))
#: Shapes at which an op is worth splitting over workers, with enough in common to meet each other.
LARGE = ((70_000,), (300, 250), (40, 50, 30), (1, 250), (300, 1), (250, 300))
#: The most arrays a program has at a time.
ARRAYS = 8

UNARY = {
    "b": ("logical_not", "bitwise_invert", "isfinite"),
    "i": ("abs", "negative", "square", "sign", "bitwise_invert", "isfinite"),
    "f": ("abs", "negative", "square", "sign", "sqrt", "exp", "sin", "tanh", "log1p", "floor", "round", "isnan"),
    "c": ("abs", "negative", "square", "conj", "isfinite"),
}
BINARY = {
    "b": ("logical_and", "logical_or", "logical_xor", "equal", "maximum"),
    "i": ("add", "subtract", "multiply", "floor_divide", "remainder", "minimum", "bitwise_xor", "less"),
    "f": ("add", "subtract", "multiply", "divide", "maximum", "floor_divide", "hypot", "copysign", "less_equal"),
    "c": ("add", "subtract", "multiply", "not_equal"),
}
INPLACE = {
    "b": (operator.iand, operator.ior, operator.ixor),
    "i": (operator.iadd, operator.isub, operator.imul, operator.iand, operator.ixor),
    "f": (operator.iadd, operator.isub, operator.imul, operator.itruediv),
    "c": (operator.iadd, operator.isub, operator.imul),
}
REDUCE = {
    "b": ("any", "all", "count_nonzero", "sum", "max", "argmax"),
    "i": ("sum", "prod", "max", "min", "argmax", "argmin", "any", "count_nonzero", "cumulative_sum", "mean"),
    "f": ("sum", "prod", "max", "min", "argmax", "all", "count_nonzero", "cumulative_sum", "mean", "var"),
    "c": ("sum", "prod", "any", "count_nonzero", "mean"),
}
#: Reductions that may depend on the order in which they go, by the kind that they reduce. Of -0.0 and 0.0 either is the most.
ROUGH = {
    "b": {"mean"},
    "i": {"mean"},
    "f": {"sum", "prod", "max", "min", "cumulative_sum", "mean", "var"},
    "c": {"sum", "prod", "mean"},
}
DRAWS = ("random", "standard_normal", "integers", "permutation")


@dataclass(frozen=True)
class Make:
    """A fresh array of seeded values."""

    shape: int
    dtype: int
    seed: int


@dataclass(frozen=True)
class Unary:
    """``op(x)``."""

    op: int
    x: int


@dataclass(frozen=True)
class Binary:
    """``op(x, y)``, with ``y`` an array that fits or a scalar; into an array that fits if ``out``."""

    op: int
    x: int
    y: int
    scalar: bool = False
    out: bool = False


@dataclass(frozen=True)
class Chain:
    """An expression of several ops on ``x`` and others, whose temporaries nobody holds."""

    x: int
    numbers: int


@dataclass(frozen=True)
class InPlace:
    """``x op= y``."""

    op: int
    x: int
    y: int
    scalar: bool = False


@dataclass(frozen=True)
class View:
    """A view of ``x``: a slice, a permutation of its axes, another shape, a broadcast."""

    kind: str
    x: int
    numbers: int


@dataclass(frozen=True)
class Shift:
    """``x[one slice] = y[another]``, or ``op=`` in place of ``=``; often ``x`` is ``y`` and the slices overlap."""

    x: int
    y: int
    numbers: int
    op: int | None = None


@dataclass(frozen=True)
class Fill:
    """``x[slice] = scalar``."""

    x: int
    numbers: int
    scalar: int


@dataclass(frozen=True)
class Scatter:
    """``x[mask] = scalar`` or ``x[indices] = scalar``."""

    x: int
    numbers: int
    masked: bool


@dataclass(frozen=True)
class Gather:
    """``x[indices]``."""

    x: int
    numbers: int


@dataclass(frozen=True)
class Reduce:
    """``op(x, axis=..., keepdims=...)``."""

    op: int
    x: int
    numbers: int


@dataclass(frozen=True)
class Matmul:
    """``x @ y``."""

    x: int
    y: int


@dataclass(frozen=True)
class Where:
    """``where(x, y, z)``."""

    x: int
    y: int
    z: int


@dataclass(frozen=True)
class Cast:
    """``astype(x, dtype)``."""

    x: int
    dtype: int


@dataclass(frozen=True)
class Join:
    """``concat`` or ``stack`` of ``x`` and ``y``."""

    x: int
    y: int
    stack: bool


@dataclass(frozen=True)
class Draw:
    """A draw from the program's generator."""

    kind: int
    shape: int


@dataclass(frozen=True)
class Delete:
    """Let go of a handle."""

    x: int


@dataclass(frozen=True)
class Peek:
    """Wait for an array and note its values."""

    x: int


Step = (
    Make
    | Unary
    | Binary
    | Chain
    | InPlace
    | View
    | Shift
    | Fill
    | Scatter
    | Gather
    | Reduce
    | Matmul
    | Where
    | Cast
    | Join
    | Draw
    | Delete
    | Peek
)
KINDS: tuple[Callable[[Random], Step], ...] = (
    lambda r: Make(r.randrange(99), r.randrange(99), r.randrange(99)),
    lambda r: Unary(r.randrange(99), r.randrange(99)),
    lambda r: Binary(r.randrange(99), r.randrange(99), r.randrange(99), r.random() < 0.2, r.random() < 0.2),
    lambda r: Chain(r.randrange(99), r.randrange(1 << 30)),
    lambda r: InPlace(r.randrange(99), r.randrange(99), r.randrange(99), r.random() < 0.2),
    lambda r: View(r.choice(("slice", "permute", "reshape", "broadcast")), r.randrange(99), r.randrange(1 << 30)),
    lambda r: Shift(r.randrange(99), r.randrange(99), r.randrange(1 << 30), r.choice((None, r.randrange(99)))),
    lambda r: Fill(r.randrange(99), r.randrange(1 << 30), r.randrange(5)),
    lambda r: Scatter(r.randrange(99), r.randrange(1 << 30), r.random() < 0.5),
    lambda r: Gather(r.randrange(99), r.randrange(1 << 30)),
    lambda r: Reduce(r.randrange(99), r.randrange(99), r.randrange(1 << 30)),
    lambda r: Matmul(r.randrange(99), r.randrange(99)),
    lambda r: Where(r.randrange(99), r.randrange(99), r.randrange(99)),
    lambda r: Cast(r.randrange(99), r.randrange(99)),
    lambda r: Join(r.randrange(99), r.randrange(99), r.random() < 0.5),
    lambda r: Draw(r.randrange(99), r.randrange(99)),
    lambda r: Delete(r.randrange(99)),
    lambda r: Peek(r.randrange(99)),
)
#: How often each kind is drawn in long programs: what pushes and overlaps most, what waits least.
WEIGHTS = (2, 4, 6, 3, 6, 5, 6, 3, 2, 2, 3, 1, 2, 2, 1, 2, 2, 1)

small, wide = st.integers(0, 98), st.integers(0, (1 << 30) - 1)
sometimes = st.integers(0, 4).map(lambda n: n == 4)
steps = st.one_of(
    st.builds(Make, small, small, small),
    st.builds(Unary, small, small),
    st.builds(Binary, small, small, small, sometimes, sometimes),
    st.builds(Chain, small, wide),
    st.builds(InPlace, small, small, small, sometimes),
    st.builds(View, st.sampled_from(["slice", "permute", "reshape", "broadcast"]), small, wide),
    st.builds(Shift, small, small, wide, st.none() | small),
    st.builds(Fill, small, wide, st.integers(0, 4)),
    st.builds(Scatter, small, wide, st.booleans()),
    st.builds(Gather, small, wide),
    st.builds(Reduce, small, small, wide),
    st.builds(Matmul, small, small),
    st.builds(Where, small, small, small),
    st.builds(Cast, small, small),
    st.builds(Join, small, small, st.booleans()),
    st.builds(Draw, small, small),
    st.builds(Delete, small),
    st.builds(Peek, small),
)
programs = st.lists(steps, min_size=1, max_size=25)


def kind_of(*dtypes: Any) -> str:
    """The row of the tables above that arrays of these dtypes use together."""
    return np.result_type(*dtypes).kind.replace("u", "i")


def broadcasts(to: tuple[int, ...] | None, *shapes: tuple[int, ...]) -> bool:
    """Whether the shapes go together, and without growing it into `to` if that is given."""
    try:
        together = np.broadcast_shapes(*shapes, *([] if to is None else [to]))
    except ValueError:
        return False
    return to is None or together == to


def tolerance(name: str, values: np.ndarray[Any, Any]) -> float | None:
    """How far a reduction of these values may be from NumPy's; None if any result is right, for they are wild."""
    if not values.size or not np.all(np.isfinite(values)):
        return None
    scale, eps = float(np.max(np.abs(values))), float(np.finfo(np.result_type(values.dtype, np.float32)).eps)
    if values.dtype == np.float64 or values.dtype.kind in "iub":
        eps = float(np.finfo(np.float64).eps)
    if scale > (8 if name == "prod" else 1e6) or (name == "prod" and values.size > 24):
        return None
    if name == "prod":
        return 32 * eps * float(max(scale, 1.0)) ** values.size
    return 8 * eps * values.size * max(scale, scale**2)


@dataclass
class Slot:
    """An array of the program; views of one memory have the same root."""

    array: Any
    root: int
    writable: bool = True


@dataclass(frozen=True)
class Seen:
    """Values that were noted; `rough` as the module says, `atol` where the reduction made them."""

    key: str
    value: np.ndarray[Any, Any]
    rough: bool
    atol: float | None


@dataclass
class Run:
    """One run of a program on ``xp``: NumPy or weft."""

    xp: Any
    rng: Any
    shapes: tuple[tuple[int, ...], ...]
    slots: list[Slot] = field(default_factory=list)
    rough: set[int] = field(default_factory=set)
    sinks: list[tuple[str, Any, bool, float | None]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    roots: int = 0

    def program(self, steps: list[Step]) -> list[Seen]:
        """Run it, and answer all that was seen."""
        with np.errstate(all="ignore"):
            for number, step in enumerate(steps):
                if not self.slots:
                    self.make(number, 7, number)
                self.step(number, step)
            for key, array, rough, atol in self.sinks:
                self.note(key, array, rough=rough, atol=atol)
            for i, slot in enumerate(self.slots):
                self.note(f"last {i}", slot.array, rough=slot.root in self.rough)
        return self.seen

    def any(self, n: int) -> Slot:
        """The ``n``-th slot, round and round."""
        return self.slots[n % len(self.slots)]

    def pick(self, n: int, fits: Callable[[Slot], bool]) -> Slot | None:
        """The ``n``-th slot of those that fit."""
        fitting = [slot for slot in self.slots if fits(slot)]
        return fitting[n % len(fitting)] if fitting else None

    def keep(self, array: Any, *sources: Slot, rough: bool = False) -> None:
        """Put a new array, made from `sources`, into a slot; the oldest goes where there are many."""
        self.roots += 1
        if rough or self.is_rough(*sources):
            self.rough.add(self.roots)
        if self.xp is np:  # whose functions give scalars for 0-d arrays, and keep the order of axes
            array = np.asarray(array, order="C")
        self.slots.append(Slot(array, self.roots))
        del self.slots[:-ARRAYS]

    def is_rough(self, *slots: Slot) -> bool:
        """Whether any of the slots is."""
        return any(slot.root in self.rough for slot in slots)

    def changed(self, target: Slot, *sources: Slot) -> None:
        """Note that `target` now depends on `sources`."""
        if self.is_rough(*sources):
            self.rough.add(target.root)

    def note(self, key: str, array: Any, *, rough: bool, atol: float | None = None) -> None:
        """Wait for an array and note its values."""
        assert self.xp is np or isinstance(array, weft.NDArray), f"{key}: {type(array)}"
        value = np.array(array) if self.xp is np else array.numpy()
        assert value.shape == array.shape, key
        self.seen.append(Seen(key, value, rough, atol))

    def make(self, shape: int, dtype: int, seed: int) -> None:
        """Make an array of small values, many of them equal."""
        dims, kind = self.shapes[shape % len(self.shapes)], np.dtype(DTYPES[dtype % len(DTYPES)])
        values: Any = np.random.default_rng(seed).integers(0, 9, dims)
        if kind.kind in "fc":
            values = (values - 4) / 4 * (1j if kind.kind == "c" else 1) + values % 3
        self.keep(self.xp.asarray(np.asarray(values).astype(kind)))

    @staticmethod
    def scalar(n: int, dtype: Any) -> Any:
        """A Python scalar that arrays of this dtype take as it is."""
        return {"b": n % 2 == 1, "i": n % 5, "f": n % 5 / 2, "c": complex(n % 3, 1)}[kind_of(dtype)]

    def step(self, number: int, step: Step) -> None:  # noqa: C901, PLR0912 - a case per kind
        """Run one step."""
        match step:
            case Make(shape, dtype, seed):
                self.make(shape, dtype, seed)
            case Unary(op, x):
                source = self.any(x)
                names = UNARY[kind_of(source.array.dtype)]
                self.keep(getattr(self.xp, names[op % len(names)])(source.array), source)
            case Binary():
                self.binary(step)
            case Chain(x, numbers):
                self.chain(self.any(x), Random(numbers))
            case InPlace():
                self.inplace(step)
            case View(kind, x, numbers):
                self.view(kind, self.any(x), Random(numbers))
            case Shift():
                self.shift(step)
            case Fill(x, numbers, scalar):
                target = self.any(x)
                if target.writable:
                    index = some_slices(target.array.shape, Random(numbers))
                    target.array[index] = self.scalar(scalar, target.array.dtype)
            case Scatter(x, numbers, masked):
                self.scatter(self.any(x), Random(numbers), masked=masked)
            case Gather(x, numbers):
                self.gather(number, self.any(x), Random(numbers))
            case Reduce(op, x, numbers):
                self.reduce(number, op, self.any(x), Random(numbers))
            case Delete(x):
                del self.slots[x % len(self.slots)]
            case Peek(x):
                slot = self.any(x)
                self.note(f"{number}: peek", slot.array, rough=self.is_rough(slot))
            case _:
                self.join(number, step)

    def join(self, number: int, step: Step) -> None:  # noqa: C901 - likewise
        """Run one of the steps that make a new array of whole ones."""
        xp = self.xp
        match step:
            case Matmul(x, y):
                one = self.any(x)
                other = self.pick(y, lambda slot: fits_matmul(one.array.shape, slot.array.shape))
                if other is not None and (kind := kind_of(one.array.dtype, other.array.dtype)) != "b":
                    result = xp.matmul(one.array, other.array)
                    if kind == "i":
                        self.keep(result, one, other)
                    else:
                        both = [np.ravel(slot.array) for slot in (one, other)] if xp is np else []
                        atol = tolerance("matmul", np.concatenate(both)) if both else None
                        self.sinks.append(
                            (f"{number}: matmul", result, self.is_rough(one, other) or atol is None, atol)
                        )
            case Where(x, y, z):
                condition = self.any(x)
                shape = condition.array.shape
                one, other = (self.pick(n, lambda slot: broadcasts(shape, slot.array.shape)) for n in (y, z))
                assert one is not None
                assert other is not None
                mask = xp.astype(condition.array, xp.bool)
                self.keep(xp.where(mask, one.array, other.array), condition, one, other)
            case Cast(x, dtype):
                one, to = self.any(x), DTYPES[dtype % len(DTYPES)]
                if np.can_cast(one.array.dtype, to, "same_kind"):
                    self.keep(xp.astype(one.array, getattr(xp, to)), one)
            case Join(x, y, stack):
                one = self.any(x)
                shape = one.array.shape
                other = self.pick(y, lambda slot: slot.array.shape == shape)
                assert other is not None, "x fits itself"
                if stack and len(shape) < 3:
                    self.keep(xp.stack([one.array, other.array], axis=-1), one, other)
                elif shape and one.array.size < 1 << 17:
                    self.keep(xp.concat([one.array, other.array], axis=len(shape) - 1), one, other)
            case Draw(kind, shape):
                name, dims = DRAWS[kind % len(DRAWS)], self.shapes[shape % len(self.shapes)]
                arguments = {"integers": (0, 9, dims), "permutation": (7,)}.get(name, (dims,))
                self.keep(getattr(self.rng, name)(*arguments))

    def binary(self, step: Binary) -> None:
        """Run ``op(x, y)``, with or without ``out``."""
        one = self.any(step.x)
        shape, right, sources = one.array.shape, None, [one]
        if step.scalar:
            dtype, right = one.array.dtype, self.scalar(step.y, one.array.dtype)
        else:
            other = self.pick(step.y, lambda slot: broadcasts(None, shape, slot.array.shape))
            assert other is not None, "x fits itself"
            sources.append(other)
            dtype, right = np.result_type(one.array.dtype, other.array.dtype), other.array
            shape = np.broadcast_shapes(shape, right.shape)
        if np.prod(shape) > 1 << 18:
            return
        names = BINARY[kind_of(dtype)]
        name = names[step.op % len(names)]
        call = getattr(self.xp, name)
        if not step.out:
            self.keep(call(one.array, right), *sources)
            return
        made = np.dtype(bool) if name in COMPARISONS else dtype
        target = self.pick(
            step.op, lambda slot: slot.writable and slot.array.shape == shape and slot.array.dtype == made
        )
        if target is not None:
            call(one.array, right, out=target.array)
            self.changed(target, *sources)

    def chain(self, source: Slot, random: Random) -> None:
        """Run an expression."""
        value, sources, shape = source.array, [source], source.array.shape
        for _ in range(random.randrange(2, 7)):
            kind = kind_of(value.dtype)
            if random.random() < 0.3:
                value = getattr(self.xp, random.choice(UNARY[kind]))(value)
            elif random.random() < 0.4:
                value = getattr(self.xp, random.choice(BINARY[kind]))(
                    value, self.scalar(random.randrange(5), value.dtype)
                )
            else:
                other = self.pick(random.randrange(99), lambda slot: broadcasts(shape, slot.array.shape))
                assert other is not None, "x fits itself"
                sources.append(other)
                operands = [value, other.array]
                random.shuffle(operands)
                name = random.choice(BINARY[kind_of(value.dtype, other.array.dtype)])
                value = getattr(self.xp, name)(*operands)
        self.keep(value, *sources)

    def inplace(self, step: InPlace) -> None:
        """Run ``x op= y``."""
        target = self.any(step.x)
        if not target.writable:
            return
        array = target.array
        names = INPLACE[kind_of(array.dtype)]
        op = names[step.op % len(names)]
        if step.scalar:
            assert op(array, self.scalar(step.y, array.dtype)) is array
            return
        source = self.pick(
            step.y,
            lambda slot: broadcasts(array.shape, slot.array.shape) and casts(slot.array.dtype, array.dtype),
        )
        assert source is not None, "x fits itself"
        assert op(array, source.array) is array
        self.changed(target, source)

    def view(self, kind: str, source: Slot, random: Random) -> None:
        """Make a view."""
        array, writable = source.array, source.writable
        if kind == "slice":
            view = array[some_slices(array.shape, random, integers=True)]
        elif kind == "permute":
            axes = list(range(array.ndim))
            random.shuffle(axes)
            view = self.xp.permute_dims(array, tuple(axes))
        elif kind == "reshape":
            view = self.xp.reshape(array, some_shape(array.shape, random))
        elif array.ndim < 3 and array.size < 1 << 16:
            view, writable = self.xp.broadcast_to(array, (random.randrange(1, 4), *array.shape)), False
        else:
            return
        # A reshape may have to copy: its root, then, is rough more often than it need be.
        self.slots.append(Slot(view, source.root, writable))
        del self.slots[:-ARRAYS]

    def shift(self, step: Shift) -> None:
        """Run ``x[one slice] = y[another]``, or an in-place op in place of the assignment."""
        target = self.any(step.x)
        if not target.writable:
            return
        array, random = target.array, Random(step.numbers)
        source = self.pick(step.y, lambda slot: slot.array.ndim == array.ndim and casts(slot.array.dtype, array.dtype))
        assert source is not None, "x fits itself"
        to, of = [], []
        for n, m in zip(array.shape, source.array.shape, strict=True):
            most = min(n, m)
            length = random.randrange(max(most - 2, 0), most + 1)
            to.append(run_of(length, n, random))
            of.append(run_of(length, m, random))
        there, here = (*to, ...), (*of, ...)
        if step.op is None:
            array[there] = source.array[here]
        else:
            names = INPLACE[kind_of(array.dtype)]
            part = names[step.op % len(names)](array[there], source.array[here])
            if random.random() < 0.5:
                array[there] = part  # as the statement `array[there] += ...` does
        self.changed(target, source)

    def scatter(self, target: Slot, random: Random, *, masked: bool) -> None:
        """Set what a mask or indices choose."""
        array, value = target.array, self.scalar(random.randrange(5), target.array.dtype)
        if not target.writable or not array.ndim:
            return
        if masked:
            array[array != self.scalar(random.randrange(5), array.dtype)] = value
        elif array.shape[0]:
            array[self.xp.asarray(some_indices(array.shape[0], random))] = value

    def gather(self, number: int, source: Slot, random: Random) -> None:
        """Get what a mask or indices choose."""
        array = source.array
        if not array.ndim:
            return
        if random.random() < 0.5:
            if not self.is_rough(source):  # or its shape would be
                self.sinks.append((f"{number}: masked", array[array != self.scalar(1, array.dtype)], False, None))
        elif array.shape[0] and array.size < 1 << 18:
            self.keep(array[self.xp.asarray(some_indices(array.shape[0], random))], source)

    def reduce(self, number: int, op: int, source: Slot, random: Random) -> None:
        """Reduce along some axes."""
        array = source.array
        kind = kind_of(array.dtype)
        name = REDUCE[kind][op % len(REDUCE[kind])]
        if not array.size or not array.ndim:
            return
        options: dict[str, Any] = {}
        if name in {"argmax", "argmin"}:
            options = {"axis": random.choice([None, random.randrange(array.ndim)]), "keepdims": random.random() < 0.5}
        elif name == "cumulative_sum":
            options = {"axis": random.randrange(-array.ndim, array.ndim)}
        else:
            axes = tuple(random.sample(range(array.ndim), random.randrange(1, array.ndim + 1)))
            options = {"axis": random.choice([None, axes, axes[0]]), "keepdims": random.random() < 0.5}
        result = getattr(self.xp, name)(array, **options)
        if name not in ROUGH[kind]:
            self.keep(result, source)
        elif random.random() < 0.5:
            self.keep(result, source, rough=True)
        else:
            atol = tolerance(name, array) if self.xp is np else None
            self.sinks.append((f"{number}: {name}", result, self.is_rough(source) or atol is None, atol))


COMPARISONS = {"equal", "not_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor"}


def casts(dtype: Any, to: Any) -> bool:
    """Whether an array of `dtype` may go into one of dtype `to`, in place or assigned."""
    return bool(np.can_cast(np.result_type(dtype, to), to, "same_kind"))


def fits_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Whether arrays of these shapes multiply, to something not too big."""
    return bool(left) and 1 <= len(right) <= 2 and right[-2:][0] == left[-1] > 0


def run_of(length: int, n: int, random: Random) -> slice:
    """A slice of `length` neighbours out of `n`, at times backwards."""
    start = random.randrange(n - length + 1)
    if length and random.random() < 0.25:
        return slice(start + length - 1, start - 1 if start else None, -1)
    return slice(start, start + length)


def some_slices(shape: tuple[int, ...], random: Random, *, integers: bool = False) -> tuple[Any, ...]:
    """A basic index that gives a view."""
    index: list[Any] = []
    for n in shape:
        kind = random.randrange(6)
        if kind == 0 and integers and n:
            index.append(random.randrange(-n, n))
        elif kind == 1:
            index.append(slice(None, None, random.choice([-1, 2, -2])))
        elif kind < 5 and n:
            start = random.randrange(n)
            index.append(slice(start, random.randrange(start, n) + 1))
        else:
            index.append(slice(None))
    if integers and random.random() < 0.1:
        index.insert(random.randrange(len(index) + 1), None)
    return (*index, ...)


def some_shape(shape: tuple[int, ...], random: Random) -> tuple[int, ...]:
    """Another shape of the same size."""
    dims = [n for n in shape if n != 1]
    random.shuffle(dims)
    if len(dims) > 1 and random.random() < 0.5:
        dims = [dims[0] * dims[1], *dims[2:]]
    if random.random() < 0.3 and len(dims) < 3:
        dims.insert(random.randrange(len(dims) + 1), 1)
    return tuple(dims)


def some_indices(n: int, random: Random) -> np.ndarray[Any, Any]:
    """Indices into an axis of length `n`, some negative, some twice."""
    return np.array([random.randrange(-n, n) for _ in range(random.randrange(1, 7))])


SEED = 5


def by_numpy(steps: list[Step], shapes: tuple[tuple[int, ...], ...] = SHAPES) -> list[Seen]:
    """What NumPy gives."""
    return Run(np, np.random.default_rng(SEED), shapes).program(steps)


def by_weft(steps: list[Step], shapes: tuple[tuple[int, ...], ...] = SHAPES) -> list[Seen]:
    """What weft gives, on the default engine."""
    return Run(weft, weft.random.default_rng(SEED), shapes).program(steps)


def bits(value: np.ndarray[Any, Any]) -> bytes:
    """The bits of an array, those of NaNs made the same."""
    flat = np.ascontiguousarray(value).reshape(-1)
    if flat.dtype.kind in "fc":
        flat = flat.view(flat.real.dtype).copy()
        flat[np.isnan(flat)] = np.nan
    return flat.tobytes()


def check(seen: list[Seen], numpy: list[Seen], serial: list[Seen]) -> None:
    """Compare what a run gave with what it must give."""
    assert [s.key for s in seen] == [s.key for s in numpy]
    for got, wanted, first in zip(seen, numpy, serial, strict=True):
        key, value = got.key, got.value
        assert (value.dtype, value.shape) == (wanted.value.dtype, wanted.value.shape), key
        assert bits(value) == bits(first.value), f"{key}: serial gave\n{first.value}\nand this engine\n{value}"
        if wanted.rough:
            continue
        if wanted.atol is not None:
            np.testing.assert_allclose(value, wanted.value, rtol=0, atol=wanted.atol, err_msg=key)
        else:
            assert bits(value) == bits(wanted.value), f"{key}: NumPy gave\n{wanted.value}\nand weft\n{value}"


def long_program(seed: int, length: int) -> list[Step]:
    """A program from a seed."""
    random = Random(seed)
    return [kind(random) for kind in random.choices(KINDS, WEIGHTS, k=length)]
