"""Names of ops in MXNet's files."""

from __future__ import annotations

import importlib
from functools import cache

from weft._core import find_op
from weft._mxnet.operator import BY_NAME, Operator, is_own

#: What registers ops, in an order in which each finds what it needs.
_MODULES = (
    "elementwise",
    "reductions",
    "reshaping",
    "joins",
    "slices",
    "repeats",
    "choices",
    "constants",
    "layers",
    "pooling",
    "normalising",
    "activations",
    "outputs",
    "recurrent",
    "detection",
    "suppression",
    "matching",
    "sorting",
    "gathering",
    "resizing",
    "regions",
    "turned_regions",
    "random",
    "attention",
    "sequences",
    "functions",
    "special",
    "spatial",
    "columns",
    "places",
    "images",
    "updates",
    "proposals",
    "linalg",
    "deformable",
    "quantisation",
    "custom",
)

_BACK = "_backward_"


@cache
def register_all() -> None:
    """Register the ops, once."""
    for name in _MODULES:
        importlib.import_module(f"weft._mxnet.{name}")


def registered_name(name: str, by_mxnet: bool) -> str | None:
    """Return the name under which an op that a file names is registered; None if nobody knows it.

    Parameters
    ----------
    name : str
        The name in the file.
    by_mxnet : bool
        Whether MXNet wrote the file: then its meaning of the name counts, but that of a user's op of this name.

    Examples
    --------
    >>> from weft._mxnet.names import registered_name
    >>> registered_name("ElementWiseSum", True), registered_name("_foreach", True)
    ('add_n', None)
    """
    register_all()
    plain = name.removeprefix("mxnet.")
    found = BY_NAME.get(plain)
    if found is None and plain.startswith(_BACK):
        found = _backward(plain.removeprefix(_BACK))
    users = find_op(name)
    if by_mxnet and users is not None and not isinstance(users, Operator) and not is_own(users):
        return str(users.name)
    return None if found is None else found.name


def _backward(name: str) -> Operator | None:
    """Return the op of gradients of another one."""
    from weft._mxnet.gradients import NONE, backward_of  # noqa: PLC0415 - for those alone who read gradients

    of = BY_NAME.get(name)
    if of is None and name.startswith(_BACK):
        of = _backward(name.removeprefix(_BACK))
    return None if of is None or of.backward is NONE else backward_of(of)
