"""The record of an op, and the registry of all ops: the contents of `weft.ops`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

from weft._core import Callee, GroupEntry, OpEntry, all_ops, call, canonical_key, find_op
from weft._registry.avals import Aval, avals_of, broadcast_of_ufunc, scalar_dtype
from weft._registry.brief import brief
from weft._registry.defaults import describe_op, follow_rule
from weft.errors import ArgumentTypeError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from weft._core import NDArray
    from weft._registry.avals import DType, Kind

    Infer: TypeAlias = Callable[..., Aval | tuple[Aval, ...]]
    Compute: TypeAlias = Callable[..., object]

_MISSING: Any = object()
#: By kind of device, the attribute for a computation faster than `compute`; backends add theirs.
FASTER = {"cpu": "push"}
_lock = threading.Lock()
#: The values that a rule of a gradient looks at, unless stated: all operands and all results.
EVERYTHING = (1 << 64) - 1


class Op(Callee):
    """One array function: its name, its rule, and how each kind of device computes it.

    Made by `register_op`. Calling an op pushes it and returns its results without waiting.

    Attributes
    ----------
    name : str
        The name in the registry, unique.
    infer : callable
        ``infer(*avals, **attributes)`` returns the `Aval` of the result, or a tuple of them; its errors are shown to users.
    compute : dict of str to callable
        By kind of device. ``compute["cpu"](*outputs, *inputs, **attributes)`` writes into the NumPy arrays `outputs`.
    ufunc : numpy.ufunc or None
        The element-wise function whose inner loops compute the op without the GIL, where one of exact dtypes exists.
    nout : int
        The number of results.
    inplace : tuple of (int, int)
        Pairs of an input and an output that may be the same memory.
    mutates : tuple of int
        The inputs that the op changes.
    aliases : tuple of str
        Other names.

    Examples
    --------
    >>> import weft
    >>> add = weft.ops.get_op("add")
    >>> add(weft.asarray([1, 2]), 10)
    NDArray([11, 12])
    """

    __slots__ = (
        "_entry",
        "aliases",
        "compute",
        "infer",
        "inplace",
        "level",
        "mutates",
        "name",
        "nout",
        "operator",
        "reads",
        "refused",
        "replaced",
        "ufunc",
    )

    infer: Infer

    def __init__(
        self,
        name: str,
        infer: Infer,
        compute: Compute,
        *,
        ufunc: np.ufunc | None = None,
        nout: int = 1,
        inplace: Sequence[tuple[int, int]] = (),
        mutates: Sequence[int] = (),
        aliases: Sequence[str] = (),
        level: int = 10,
    ) -> None:
        self.name = name
        self.infer = infer
        self.compute: dict[str, Compute] = {"cpu": compute}
        self.ufunc = ufunc
        self.nout = nout
        self.inplace = tuple(inplace)
        self.mutates = tuple(mutates)
        self.aliases = tuple(aliases)
        self.level = level
        self.operator = (
            ""  # the dispatcher's: the operator of the type slots that may run its loops, by its method's name: "add"
        )
        self.replaced: frozenset[str] = frozenset()  # kinds of devices that compute as was set later
        self.reads: int | tuple[int, ...] | None = (
            EVERYTHING  # the tape's: the values that the rule looks at, None without a gradient
        )
        self.refused = False  # the tape's: whether a request for a gradient is refused
        self._entry = OpEntry(name)
        if ufunc is not None:
            self._compute_by(ufunc, getattr(infer, "ufunc", None) is not ufunc, compute is ufunc)
        describe_op(self)

    def __call__(self, *arrays: Any, out: Any = None, **attributes: Any) -> NDArray | tuple[NDArray, ...]:
        """Push the op and return its result, or its results, at once."""
        results: NDArray | tuple[NDArray, ...] = call(self, *arrays, out=out, **attributes)
        return results

    def __repr__(self) -> str:
        """Return the expression that finds this op."""
        return f"weft.ops.get_op({self.name!r})"

    def set_attribute(self, key: str, value: object, level: int = 10) -> None:
        """Give the op an attribute; the one of the highest level counts.

        Parameters
        ----------
        key : str
            The attribute: ``"gradient"``, ``"layout"``, or any other. ``"compute:<kind>"`` is how that kind of device
            computes the op from now on, in place of loops, kernels and a ``"push"`` that was set before at no higher
            level; ``"push"`` is called as ``push(outputs, operands, **attributes)`` before an op becomes a Python
            callable, and returns whether it pushed it some faster way.
        value : object
            Its value.
        level : int, default: 10
            Its precedence.

        Raises
        ------
        ValueError
            If the attribute is set at this level already.

        Examples
        --------
        >>> import weft
        >>> sine = weft.ops.get_op("sin")
        >>> sine.set_attribute("doctest", "cos")
        >>> sine.attribute("doctest")
        'cos'
        """
        key = canonical_key(key)
        if key == "gradient_reads":
            self._check_reads(value)
        if key == "infer" and not callable(value):
            raise ArgumentTypeError(
                f"attribute 'infer' of op {self.name!r} is a function, and {brief(value)} was given"
            )
        with _lock:
            known = self._entry.level(key)
            self._entry.set_attribute(key, value, level)
            if known is None or known < level:
                self._follow(key, value, level)

    def _check_reads(self, value: object) -> None:
        each = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        if value is not None and not all(isinstance(mask, int) and 0 <= mask <= EVERYTHING for mask in each):
            raise ArgumentTypeError(
                f"gradient_reads of the op {self.name!r} is an integer whose bits are operands and, from 32 on, results; one for "
                f"each operand; or None for an op without a gradient: not {brief(value)}"
            )

    def _follow(self, key: str, value: Any, level: int) -> None:
        """Let the dispatcher's own field follow an attribute."""
        if key.startswith("compute:"):
            self._replace(key.removeprefix("compute:"), value, level)
        elif key == "infer":
            self.infer = value
            follow_rule(self)
            self._follow_rule()
            self._slow_down()
        elif key == "push":
            self._slow_down()
        elif key == "gradient_reads":
            self.reads = value
        elif key == "gradient_refused":
            self.refused = bool(value)
        elif key in {"inplace", "mutates"} and not callable(value):
            setattr(self, key, tuple(value))

    def _replace(self, kind: str, compute: Compute, level: int) -> None:
        """Compute by `compute` in place of some faster way."""
        faster = FASTER.get(kind)
        if faster is not None:
            self._entry.remove_attribute(faster, level)
        self.compute[kind] = compute
        self.replaced |= {kind}
        self._replace_on(kind)

    def _dtypes_by_rule(self, kinds: tuple[Kind, ...]) -> tuple[DType, ...]:
        """Return the dtypes of the results that the rule gives for operands of these dtypes, or classes of Python's numbers."""
        avals = [
            Aval((), scalar_dtype(kind), weak=True) if isinstance(kind, type) else Aval((), kind) for kind in kinds
        ]
        inferred = self.infer(*avals)
        return tuple(each.dtype for each in (inferred if isinstance(inferred, tuple) else (inferred,)))

    def _results_of(self, avals: Sequence[Aval], attributes: dict[str, Any]) -> tuple[Aval, ...]:
        """Return the rule's answer on the results, for attributes that the op has: rules that take any would swallow others."""
        if attributes:
            names = self._entry.attribute("attribute_names", None)
            if names is not None and not attributes.keys() <= set(names):
                strange = next(name for name in attributes if name not in names)
                known = ", ".join(names) or "none"
                raise ArgumentTypeError(f"op {self.name!r} has no attribute {strange!r}; its attributes: {known}")
        return avals_of(self.name, self.infer(*avals, **attributes))

    def attribute(self, key: str, default: object = _MISSING) -> Any:
        """Return an attribute.

        Raises
        ------
        KeyError
            If it was never set and no default is given.

        Examples
        --------
        >>> import weft
        >>> weft.ops.get_op("sin").attribute("layout", "any")
        'any'
        """
        found = self._entry.attribute(key, _MISSING)
        if found is not _MISSING:
            return found
        if default is _MISSING:
            raise KeyError(f"op {self.name!r} has no attribute {key!r}")
        return default

    def include(self, group: str | Group) -> Op:
        """Make the op a member of a group, and return it: the group's statements hold for the op.

        Examples
        --------
        >>> import weft
        >>> weft.ops.group("doctest_trigonometric").set_attribute("doctest_periodic", True)
        >>> cosine = weft.ops.get_op("cos").include("doctest_trigonometric")
        >>> cosine.attribute("doctest_periodic")
        True
        """
        self._entry.include(group if isinstance(group, str) else group.name)
        return self

    def describe(self, text: str) -> Op:
        """Describe the op in words, and return it.

        Examples
        --------
        >>> import weft
        >>> op = weft.ops.get_op("sin").describe("The sine.").add_argument("x", "array", "Angles in radians.")
        >>> op.docstring.splitlines()[0]
        'The sine.'
        """
        self._entry.describe(text)
        return self

    def add_argument(self, name: str, type: str, text: str) -> Op:  # noqa: A002 - the subject
        """Describe an argument in words, and return the op: see `describe`."""
        self._entry.add_argument(name, type, text)
        return self

    @property
    def docstring(self) -> str:
        """The words of `describe` and `add_argument`, in numpydoc's form."""
        return self._entry.docstring()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The keys of its attributes, sorted."""
        return tuple(self._entry.keys())


class Group:
    """Ops that share attributes: each that is included, later too, gets the group's statements.

    Made by `group`.

    Examples
    --------
    >>> import weft
    >>> pair = weft.ops.group("doctest_pair")
    >>> seen = []
    >>> pair.add_trigger(lambda op: seen.append(op.name))
    >>> for name in ("sinh", "cosh"):
    ...     _ = weft.ops.get_op(name).include(pair)
    >>> seen
    ['sinh', 'cosh']
    """

    __slots__ = ("_entry", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._entry = GroupEntry(name)

    def set_attribute(self, key: str, value: object, level: int = 10) -> None:
        """Give each member an attribute, as `Op.set_attribute` does.

        Raises
        ------
        ValueError
            If a member has it at this level already; then nothing has changed.
        """
        taken = [op.name for op in self.members if op._entry.level(key) == level]
        if taken:
            raise GraphError(
                f"group {self.name!r}: op {taken[0]!r} has an attribute {key!r} at level {level}: give another level"
            )
        self._entry.add_trigger(lambda op: op.set_attribute(key, value, level))

    def add_trigger(self, function: Callable[[Op], object]) -> None:
        """Call `function(op)` for each member, and for each that is included later."""
        self._entry.add_trigger(function)

    @property
    def members(self) -> tuple[Op, ...]:
        """The members, in their order of arrival."""
        return tuple(self._entry.members())

    def __repr__(self) -> str:
        """Return the expression that finds this group."""
        return f"weft.ops.group({self.name!r})"


@overload
def register_op(
    name: str,
    *,
    infer: Infer | None = None,
    ufunc: np.ufunc,
    nout: int = 1,
    inplace: Sequence[tuple[int, int]] = (),
    mutates: Sequence[int] = (),
    aliases: Sequence[str] = (),
    level: int = 10,
) -> Callable[[Compute], Op]: ...
@overload
def register_op(
    name: str,
    *,
    infer: Infer,
    ufunc: None = None,
    nout: int = 1,
    inplace: Sequence[tuple[int, int]] = (),
    mutates: Sequence[int] = (),
    aliases: Sequence[str] = (),
    level: int = 10,
) -> Callable[[Compute], Op]: ...
def register_op(
    name: str,
    *,
    infer: Infer | None = None,
    ufunc: np.ufunc | None = None,
    nout: int = 1,
    inplace: Sequence[tuple[int, int]] = (),
    mutates: Sequence[int] = (),
    aliases: Sequence[str] = (),
    level: int = 10,
) -> Callable[[Compute], Op]:
    """Register an array function under a name.

    Parameters
    ----------
    name : str
        The op's name. With a point, as ``"linalg.det"``, it is a member of the group before that.
    infer : callable
        ``infer(*avals, **attributes)`` returns the `Aval` of the result, or a tuple of `nout` of them, or raises.
        With `ufunc`, the default is that function's own rule.
    ufunc : numpy.ufunc, optional
        An element-wise function that does the same: where it has an inner loop for the operands' dtypes, that runs, and
        the GIL is not needed. The decorated function is for the other dtypes.
    nout : int, default: 1
        The number of results.
    inplace : sequence of (int, int), optional
        Pairs of an input and an output that may be the same memory.
    mutates : sequence of int, optional
        The inputs that the op changes.
    aliases : sequence of str, optional
        Other names of the op.
    level : int, default: 10
        Precedence: of two registrations of a name, the one of the higher level counts, whichever came first.

    Returns
    -------
    callable
        A decorator. It takes ``compute(*outputs, *inputs, **attributes)``, which writes into the NumPy arrays `outputs`
        on a worker, and returns the op.

    Raises
    ------
    ValueError
        If the name, or an alias, is taken at the same level.

    Examples
    --------
    >>> import numpy, weft
    >>> @weft.ops.register_op("doctest_double", infer=weft.ops.like_first, inplace=[(0, 0)])
    ... def double(out: numpy.ndarray, x: numpy.ndarray) -> None:
    ...     numpy.multiply(x, 2, out=out)
    >>> double(weft.asarray([1, 2, 3]))
    NDArray([2, 4, 6])
    """
    if infer is None:
        if ufunc is None:
            raise ArgumentTypeError(f"register_op({name!r}) needs infer=, or a ufunc= whose rule it takes")
        infer = broadcast_of_ufunc(ufunc)
    rule = infer

    def register(compute: Compute) -> Op:
        op = Op(
            name, rule, compute, ufunc=ufunc, nout=nout, inplace=inplace, mutates=mutates, aliases=aliases, level=level
        )
        op._entry.register(list(op.aliases), level, op)
        family, dot, _ = name.partition(".")
        return op.include(family) if dot else op

    return register


def get_op(name: str) -> Op:
    """Return the op of a name or an alias.

    Raises
    ------
    KeyError
        If there is none.

    Examples
    --------
    >>> import weft
    >>> weft.ops.get_op("arcsin").name
    'asin'
    """
    found: Op | None = find_op(name)
    if found is None:
        raise KeyError(f"no op is named {name!r}: weft.ops.list_ops() names them all")
    return found


def list_ops() -> tuple[str, ...]:
    """Return the names of all ops, sorted, without their aliases.

    Examples
    --------
    >>> import weft
    >>> "add" in weft.ops.list_ops()
    True
    """
    return tuple(sorted({op.name for op in all_ops()}))


def attribute_map(key: str) -> dict[str, Any]:
    """Return one attribute of all ops that have it, by name.

    Parameters
    ----------
    key : str
        The attribute, by its name here or in NNVM.

    Examples
    --------
    >>> import weft
    >>> weft.ops.attribute_map("FInplaceOption")["add"]
    ((0, 0), (1, 0))
    """
    absent = object()
    found = ((op.name, op.attribute(key, absent)) for op in all_ops())
    return {name: value for name, value in found if value is not absent}


def group(name: str) -> Group:
    """Return the group of ops of this name, which is made if there is none.

    Examples
    --------
    >>> import weft
    >>> weft.ops.group("doctest_group").members
    ()
    """
    return Group(name)
