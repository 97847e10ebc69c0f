"""Weights of `weft.layer.CudnnRNN` as SINGA keeps them: one array, as cuDNN lays them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._singa.layers.recurrent import CudnnRNN
from weft.errors import StateFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from weft._singa.layers.base import Layer

    Arrays = dict[str, npt.NDArray[Any]]


def packed(net: Layer, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """Return a network's arrays with those of each `CudnnRNN` as one, ``W``; biases that are not there are zeros.

    Matrices of all layers and directions come first, row by row, then their biases: for each those of the data, and those of the
    state.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> from weft._singa.models.blobs import packed
    >>> net = layer.CudnnRNN(2, rnn_mode="tanh")
    >>> _ = net(weft.ones((1, 3, 5)))
    >>> {name: array.shape for name, array in packed(net, {k: v.numpy() for k, v in net.get_states().items()}).items()}
    {'W': (18,)}
    """
    found = dict(arrays)
    for path, layer in _recurrent(net):
        parts = layer._parts()
        values = [found.pop(path + name) if path + name in found else np.zeros(shape) for name, shape in parts]
        if parts:
            dtype = next(iter(values)).dtype
            found[f"{path}W"] = np.concatenate([np.ascontiguousarray(each.T).reshape(-1) for each in values]).astype(
                dtype
            )
    return found


def unpacked(net: Layer, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """Return a network's arrays with those that `packed` joins by themselves.

    Raises
    ------
    StateFileError
        If one has not as many elements as the layer, or has biases where the layer has none.
    """
    found = dict(arrays)
    for path, layer in _recurrent(net):
        blob = found.pop(f"{path}W", None)
        if blob is None:
            continue
        parts = layer._parts()
        total = sum(int(np.prod(shape)) for _, shape in parts)
        if blob.shape != (total,):
            raise StateFileError(f"{path}W is of shape {blob.shape}, and {layer!r} has {total} weights")
        at = 0
        for name, shape in parts:
            flat = blob[at : at + int(np.prod(shape))]
            at += flat.size
            if hasattr(layer, name):
                found[path + name] = np.ascontiguousarray(flat.reshape(shape[::-1]).T)
            elif flat.any():
                raise StateFileError(f"{path}W has biases, and {layer!r} was made without")
    return found


def _recurrent(net: Layer) -> Iterator[tuple[str, CudnnRNN]]:
    for path, layer in net.named_layers():
        if isinstance(layer, CudnnRNN):
            yield f"{path}{layer.sep}" if path else "", layer
