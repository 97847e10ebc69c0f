"""A PyTorch module's `state_dict` under the names, and in the layouts, of the same network's layers here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray
from weft._singa.layers.attention import MultiHeadAttention
from weft._singa.layers.convolution import Conv2d
from weft._singa.layers.linear import Embedding, Linear
from weft._singa.layers.normalization import BatchNorm2d, GroupNorm, LayerNorm
from weft._singa.layers.recurrent import LSTM, RNN, CudnnRNN
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from weft._singa.layers.base import Layer

    Elements = npt.NDArray[Any]
    #: The counterparts of a value there: names in the layer, and values.
    Moved = Iterator[tuple[str, Elements]]


def _transposed(name: str) -> Callable[[Elements], Moved]:
    def moved(x: Elements) -> Moved:
        yield name, x.T

    return moved


def _as_it_is(name: str) -> Callable[[Elements], Moved]:
    def moved(x: Elements) -> Moved:
        yield name, x

    return moved


def _split(*names: str) -> Callable[[Elements], Moved]:
    """Return a function that cuts a matrix, or a vector, into parts with names, and transposes matrices."""

    def moved(x: Elements) -> Moved:
        for name, part in zip(names, np.split(x, len(names)), strict=True):
            yield name, part.T

    return moved


_NORM = {"weight": _as_it_is("scale"), "bias": _as_it_is("bias")}
#: By the class of a layer: the counterpart of each of PyTorch's values.
_MOVES: dict[type[Layer], dict[str, Callable[[Elements], Moved]]] = {
    Linear: {"weight": _transposed("W"), "bias": _as_it_is("b")},
    Conv2d: {"weight": _as_it_is("W"), "bias": _as_it_is("b")},
    Embedding: {"weight": _as_it_is("W")},
    LayerNorm: _NORM,
    GroupNorm: _NORM,
    BatchNorm2d: {
        **_NORM,
        "running_mean": _as_it_is("running_mean"),
        "running_var": _as_it_is("running_var"),
        "num_batches_tracked": lambda _: iter(()),
    },
    MultiHeadAttention: {
        "in_proj_weight": _split("q.W", "k.W", "v.W"),
        "in_proj_bias": _split("q.b", "k.b", "v.b"),
        "out_proj.weight": _transposed("out.W"),
        "out_proj.bias": _as_it_is("out.b"),
    },
}


def _recurrent(layer: Layer) -> dict[str, Callable[[Elements], Moved]]:
    """Return the moves of a recurrent layer, for each of its layers and directions."""
    assert isinstance(layer, LSTM | RNN | CudnnRNN)
    found: dict[str, Callable[[Elements], Moved]] = {}
    for number in range(layer.num_layers):
        for suffix in layer._suffixes(number):
            way = suffix.removeprefix(f"_l{number}")
            for at, theirs in enumerate(("weight_ih", "weight_hh", "bias_ih", "bias_hh")):
                names = [gate[at] + suffix for gate in layer.names if gate[at]]
                if names:
                    found[f"{theirs}_l{number}{way}"] = _split(*names)
    return found


def moved(net: Layer, states: Mapping[str, Any]) -> dict[str, Elements]:
    """Return the values of a `state_dict` by their names in a network here."""
    found: dict[str, Elements] = {}
    given = {name: _elements(value) for name, value in states.items()}
    used: set[str] = set()
    for path, layer in net.named_layers():
        moves = next((each for kind, each in _MOVES.items() if isinstance(layer, kind)), None)
        if isinstance(layer, LSTM | RNN | CudnnRNN):
            moves = _recurrent(layer)
        prefix = f"{path}." if path else ""
        for name, move in (moves or {}).items():
            if prefix + name in given and prefix + name not in used:
                used.add(prefix + name)
                found |= {prefix + own: value for own, value in move(given[prefix + name])}
        if isinstance(layer, RNN):  # its one bias is the sum of PyTorch's two
            for name, value in given.items():
                theirs = name.removeprefix(prefix)
                if name.startswith(f"{prefix}bias_hh") and theirs.replace("_hh", "_ih") in (moves or {}):
                    used.add(name)
                    ((own, first),) = (moves or {})[theirs.replace("_hh", "_ih")](given[name.replace("_hh", "_ih")])
                    found[prefix + own] = first + value
    unknown = sorted(set(given) - used)
    missing = sorted(set(net.get_states()) - set(found))
    if unknown or missing:
        here = f"nothing here takes {', '.join(map(repr, unknown))}" if unknown else ""
        there = f"nothing there is {', '.join(map(repr, missing))}" if missing else ""
        raise ArgumentValueError(
            f"torch_states: {'; '.join(filter(None, (here, there)))}: give layers the names of the module's attributes, or "
            "rename the keys"
        )
    return found


def _elements(value: Any) -> Elements:
    if isinstance(value, NDArray):
        return value.numpy()
    given: Any = value.detach().cpu() if hasattr(value, "detach") else value
    found: Elements = np.asarray(given)
    return found
