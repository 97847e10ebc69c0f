"""Two photographs, classified by a network that comes from MXNet's files.

The network is written as MXNet writes networks, with random weights; `weft.mxnet` reads the files, and an executor
computes them. Beside it stands the same network in plain NumPy, layer by layer. The timeline shows the layers:

    python docs/examples/classify.py --timeline layers.svg

The photographs come with scikit-learn.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import sklearn.datasets
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image

import weft
import weft.mxnet
from comparison import command_line, compare

Array = NDArray[np.float32]

PHOTOGRAPHS = [Path(sklearn.datasets.__file__).parent / "images" / name for name in ("china.jpg", "flower.jpg")]
#: Filters and the length of the kernel of each convolution; behind each come ReLU and pooling by two.
LAYERS = ((16, 5), (32, 3), (64, 3))
CLASSES = 10


def photographs(size: int) -> Array:
    """Return the photographs as (photograph, colour, row, column), between -1 and 1."""
    found: list[Array] = []
    for path in PHOTOGRAPHS:
        with Image.open(path) as photograph:
            found.append(np.asarray(photograph.resize((size, size)), np.float32).transpose(2, 0, 1) / 127.5 - 1)
    return np.stack(found)


def write_network(prefix: Path) -> None:
    """Write a network with random weights, as MXNet does: ``<prefix>-symbol.json`` and ``<prefix>-0000.params``."""
    net = weft.symbol.Variable("data")
    for number, (filters, kernel) in enumerate(LAYERS):
        pad = (kernel // 2,) * 2
        net = weft.symbol.Convolution(
            net, kernel=(kernel,) * 2, pad=pad, num_filter=filters, no_bias=True, name=f"conv{number}"
        )
        net = weft.symbol.Activation(net, act_type="relu", name=f"relu{number}")
        net = weft.symbol.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name=f"pool{number}")
    net = weft.symbol.Pooling(net, global_pool=True, pool_type="avg", name="pool")
    net = weft.symbol.FullyConnected(net, num_hidden=CLASSES, no_bias=True, name="fc")
    net = weft.symbol.SoftmaxActivation(net, name="softmax")
    shapes = dict(zip(net.list_arguments(), net.infer_shape(data=(1, 3, 64, 64))[0], strict=True))
    draw = np.random.default_rng(0)
    weights = {
        name: draw.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape).astype(np.float32)
        for name, shape in shapes.items()
        if name != "data"
    }
    weft.mxnet.save_checkpoint(prefix, 0, net, weights, {})


def in_numpy(data: Array, weights: dict[str, Array]) -> Array:
    """Return the probabilities, computed layer by layer."""
    x = data
    for number, (_, kernel) in enumerate(LAYERS):
        pad = kernel // 2
        windows = sliding_window_view(np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)]), (kernel, kernel), (2, 3))
        x = np.tensordot(windows, weights[f"conv{number}_weight"], ([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2)
        x = np.maximum(x, 0)
        height, width = x.shape[2] // 2, x.shape[3] // 2
        x = x[:, :, : 2 * height, : 2 * width].reshape(*x.shape[:2], height, 2, width, 2).max((3, 5))
    powers = np.exp(x.mean((2, 3)) @ weights["fc_weight"].T)
    found: Array = powers / powers.sum(1, keepdims=True)
    return found


def in_weft(executor: weft.symbol.Executor, data: weft.NDArray) -> Array:
    """Return the probabilities, computed by an executor."""
    found: Array = executor.forward(data=data)[0].numpy()
    return found


def planned(net: weft.symbol.Symbol, data: Array) -> int:
    """Return the bytes that the results of all layers take, as they are planned."""
    graph = weft.graph.infer_type(weft.graph.infer_shape(weft.graph.Graph(net), {"data": data.shape}))
    found: int = weft.graph.plan_memory(graph).attrs["storage_allocated_bytes"]
    return found


def main() -> None:
    """Classify the photographs both ways, and compare."""
    options = command_line(__doc__, size=128, unit="pixels across a photograph").parse_args()
    data = photographs(options.size)
    with tempfile.TemporaryDirectory() as folder:
        write_network(Path(folder) / "net")
        net, arguments, states = weft.mxnet.load_checkpoint(Path(folder) / "net", 0)
    given = weft.asarray(data)
    executor = net.bind({**arguments, "data": given}, aux_states=states, grad_req="null")
    weights = {name: array.numpy() for name, array in arguments.items()}
    expected, found = compare(partial(in_numpy, data, weights), partial(in_weft, executor, given), options)
    same = np.allclose(found, expected, rtol=1e-3, atol=1e-5)
    print("probabilities     ", "the same, but for rounding" if same else "DIFFERENT")
    print(f"{'planned memory':18}{planned(net, data) / 2**20:8.1f} MB")
    for path, row in zip(PHOTOGRAPHS, found, strict=True):
        print(f"{path.name:18}class {row.argmax()}, with probability {row.max():.2f}")


if __name__ == "__main__":
    main()
