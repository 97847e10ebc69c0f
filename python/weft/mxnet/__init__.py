"""Networks of MXNet's: symbol files of every version from 0.8 to 2.0, and their parameters.

Ops stand under MXNet's own names, with its attributes and its names of inputs, and compute by weft's functions:

>>> import weft
>>> import weft.mxnet
>>> x = weft.symbol.Variable("data")
>>> net = weft.symbol.FullyConnected(x, num_hidden=3, name="fc")
>>> net.list_arguments()
['data', 'fc_weight', 'fc_bias']
>>> net.infer_shape(data=(2, 4))[0]
[(2, 4), (3, 4), (3,)]

Where a function of weft's has MXNet's name with another meaning (``sum``, ``concat``), the op is named ``mxnet.sum``; in
files of MXNet's it is found under its own name. A script that was written for MXNet takes `weft.mxnet.symbol` and
`weft.mxnet.ndarray`: there each name is MXNet's, with its positional arguments and automatic names.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft import symbol as _symbol
from weft._call.operands import as_array
from weft._engine.labels import cpu, gpu
from weft._graph.naming import AttrScope
from weft._mxnet.arrays import read_arrays, write_arrays
from weft._mxnet.draws import seed
from weft._mxnet.names import register_all
from weft._mxnet.operator import BY_NAME
from weft._mxnet.script_shapes import is_np_shape, np_shape
from weft.errors import ArgumentTypeError, CheckpointError, CheckpointMissingError, GraphError
from weft.mxnet import ndarray, operator, symbol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    from weft._core import NDArray
    from weft.symbol import Symbol

__all__ = [
    "AttrScope", "cpu", "gpu", "is_np_shape", "list_ops", "load", "load_checkpoint", "load_params", "nd", "ndarray", "np_shape", "operator",
    "save_checkpoint", "save_params", "seed", "sym", "symbol",
]  # fmt: skip

register_all()

sym, nd = symbol, ndarray


def list_ops() -> tuple[str, ...]:
    """Return MXNet's names of the ops that are read, aliases included, sorted.

    Examples
    --------
    >>> import weft.mxnet
    >>> "Convolution" in weft.mxnet.list_ops()
    True
    """
    return tuple(sorted(BY_NAME))


def load(path: str | PathLike[str]) -> Symbol:
    """Return the symbol in a file; all of its ops can be computed.

    `weft.symbol.load` reads files with unknown ops, too: to look at them.

    Raises
    ------
    GraphError
        If ops are not known; the message names them all.
    CheckpointMissingError
        If there is no such file.
    """
    found = Path(path)
    try:
        net = _symbol.load(found)
    except FileNotFoundError:
        raise CheckpointMissingError(f"there is no file {str(found)!r}") from None
    missing: dict[str, int] = {}
    for node in net.get_internals().graph.indexed().nodes:
        if not node.is_variable and not node.op._entry.is_registered:
            missing[node.op.name] = missing.get(node.op.name, 0) + 1
    if missing:
        listed = ", ".join(f"{name} ({count})" for name, count in sorted(missing.items()))
        raise GraphError(
            f"{found.name} has ops that nobody has registered: {listed}. weft.register_op adds one; weft.symbol.load "
            "reads the file without them, to print it"
        )
    return net


def load_params(path: str | PathLike[str]) -> dict[str, NDArray]:
    """Return the arrays of a ``.params`` file, by the names that they have there.

    Raises
    ------
    CheckpointError
        If the file is damaged, or has sparse arrays.
    CheckpointMissingError
        If there is no such file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import weft.mxnet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "net.params"
    >>> weft.mxnet.save_params(path, {"arg:w": weft.ones(2)})
    >>> weft.mxnet.load_params(path)
    {'arg:w': NDArray([1., 1.])}
    """
    found = Path(path)
    try:
        data = found.read_bytes()
    except FileNotFoundError:
        raise CheckpointMissingError(f"there is no file {str(found)!r}{_epochs(found)}") from None
    return {name: as_array(array) for name, array in read_arrays(data, found.name).items()}


def _epochs(path: Path) -> str:
    """Return the epochs that there are, for one that is missing."""
    prefix = path.name.rpartition("-")[0]
    known = (
        sorted(each.stem.rpartition("-")[2] for each in path.parent.glob(f"{prefix}-[0-9]*.params")) if prefix else []
    )
    return f": of {prefix!r} there are the epochs {', '.join(known)}" if known else ""


def load_checkpoint(
    prefix: str | PathLike[str], epoch: int, *, allow_extra: bool = False
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Read a network and its parameters: ``<prefix>-symbol.json`` and ``<prefix>-<epoch>.params``.

    Parameters
    ----------
    prefix : str or path
        The beginning of both files' names.
    epoch : int
        The number of the parameters, written with at least four digits.
    allow_extra : bool, default: False
        Whether parameters that the network does not have are left out, instead of refused.

    Returns
    -------
    (Symbol, dict, dict)
        The network, its arguments and its auxiliary states, by name.

    Raises
    ------
    GraphError
        If the network has ops that are not known; the message names them all.
    CheckpointError
        If the parameters are damaged, or names do not match: the message lists those of both sides.
    CheckpointMissingError
        If a file is not there; the message says which epochs are.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import weft.mxnet
    >>> prefix = pathlib.Path(tempfile.mkdtemp()) / "net"
    >>> net = weft.symbol.FullyConnected(weft.symbol.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    >>> weft.mxnet.save_checkpoint(prefix, 3, net, {"fc_weight": weft.ones((2, 3))}, {})
    >>> net, arguments, states = weft.mxnet.load_checkpoint(prefix, 3)
    >>> net.eval(data=weft.ones((1, 3)), **arguments)
    [NDArray([[3., 3.]])]
    """
    where = str(prefix)
    if not isinstance(epoch, SupportsIndex):
        raise ArgumentTypeError(f"an epoch is a number, as 42 in net-0042.params, and {epoch!r} was given")
    net = load(f"{where}-symbol.json")
    found = load_params(f"{where}-{epoch:04d}.params")
    names, states = set(net.list_arguments()), set(net.list_auxiliary_states())
    arguments: dict[str, NDArray] = {}
    auxiliary: dict[str, NDArray] = {}
    extra: list[str] = []
    for name, array in found.items():
        kind, _, plain = name.rpartition(":")
        if plain in (states if kind == "aux" else names) and kind in {"arg", "aux"}:
            (auxiliary if kind == "aux" else arguments)[plain] = array
        elif not kind and plain in names | states:  # as Gluon's save_parameters writes them
            (auxiliary if plain in states else arguments)[plain] = array
        else:
            extra.append(name)
    lacking = sorted(states - auxiliary.keys())
    if lacking or (extra and not allow_extra):
        open_ = sorted(names - arguments.keys())
        raise CheckpointError(
            f"the names in {Path(where).name}-{epoch:04d}.params do not match the network's. Only the file has: "
            f"{_listed(extra)}. Only the network has, among its arguments (data and labels belong there): {_listed(open_)}; "
            f"among its auxiliary states: {_listed(lacking)}"
        )
    return net, arguments, auxiliary


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def save_params(path: str | PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write arrays into a ``.params`` file, which MXNet reads, too; waits for their values.

    Raises
    ------
    CheckpointError
        If MXNet has no such dtype.
    """
    data = write_arrays({name: np.asarray(as_array(array).numpy()) for name, array in arrays.items()})
    Path(path).write_bytes(data)


def save_checkpoint(
    prefix: str | PathLike[str],
    epoch: int,
    symbol: Symbol,
    arguments: Mapping[str, Any],
    auxiliaries: Mapping[str, Any],
) -> None:
    """Write a network and its parameters, as `load_checkpoint` reads them."""
    symbol.save(f"{prefix}-symbol.json")
    named = {f"arg:{name}": array for name, array in arguments.items()}
    named |= {f"aux:{name}": array for name, array in auxiliaries.items()}
    save_params(f"{prefix}-{epoch:04d}.params", named)
