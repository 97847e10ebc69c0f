"""One library in a process of its own: it computes on request and answers times.

It imports NumPy and that library alone.

Run as ``python host.py LIBRARY THREADS``; each line of its input is ``CASE COUNT``, and each line of its output a list of
milliseconds as JSON, or ``null`` where the library does not do that.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

#: Data, weights, padding.
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "64x1x28^2, 20 of 5^2": ((64, 1, 28, 28), (20, 1, 5, 5), 0),
    "64x20x12^2, 50 of 5^2": ((64, 20, 12, 12), (50, 20, 5, 5), 0),
    "8x64x56^2, 64 of 3^2": ((8, 64, 56, 56), (64, 64, 3, 3), 1),
}
_PARTS = ("forward", "backward")
_STEP = "training step"
#: The timed cases: each convolution forwards, and its two gradients together; a training step of a network of two.
CASES = (*(f"{name}: {part}" for name in CONVOLUTIONS for part in _PARTS), _STEP)


def flops(case: str) -> float:
    """Return how many operations on numbers a convolution takes.

    Examples
    --------
    >>> from weft.bench.kernels.host import flops
    >>> flops("64x1x28^2, 20 of 5^2: forward")
    36864000.0
    """
    name, _, part = case.partition(": ")
    data, weights, padding = CONVOLUTIONS[name]
    counts = [n + 2 * padding - k + 1 for n, k in zip(data[2:], weights[2:], strict=True)]
    once = 2.0 * data[0] * float(np.prod(counts)) * float(np.prod(weights))
    return once if part == "forward" else 2 * once


def _arrays(case: str) -> tuple[Any, Any, Any, int]:
    """Return data, weights, a gradient of results, and the padding."""
    data, weights, padding = CONVOLUTIONS[case.partition(": ")[0]]
    rng = np.random.default_rng(0)
    counts = [n + 2 * padding - k + 1 for n, k in zip(data[2:], weights[2:], strict=True)]
    shapes = (data, weights, (data[0], weights[0], *counts))
    x, w, g = (rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
    return x, w, g, padding


def _parameters() -> tuple[list[Any], Any, Any]:
    """Return the network's parameters, a batch and its labels."""
    rng = np.random.default_rng(0)
    shapes = [(20, 1, 5, 5), (20,), (50, 20, 5, 5), (50,), (500, 800), (500,), (10, 500), (10,)]
    parameters = [rng.standard_normal(shape, dtype=np.float32) * np.float32(0.05) for shape in shapes]
    return parameters, rng.standard_normal((64, 1, 28, 28), dtype=np.float32), rng.integers(0, 10, 64)


_RATE, _MOMENTUM, _DECAY = 0.005, 0.9, 1e-5


def _weft(case: str, threads: int, *, program: bool) -> Callable[[], object] | None:
    import weft  # noqa: PLC0415 - in this process alone
    from weft import nn  # noqa: PLC0415 - as above

    weft.set_engine(weft.Engine(workers=threads))
    if case != _STEP:
        x, w, g, padding = _arrays(case)
        arrays = [weft.asarray(each) for each in (x, w, g)]
        if case.endswith("forward"):
            return lambda: nn.conv(arrays[0], arrays[1], padding=padding).wait_to_read()
        data, weight = weft.ops.get_op("nn.conv_data"), weft.ops.get_op("nn.conv_weight")

        def backward() -> None:
            found: Any = (
                data(arrays[2], arrays[1], size=x.shape[2:], padding=padding),
                weight(arrays[0], arrays[2], kernel=w.shape[2:], padding=padding),
            )
            for each in found:
                each.wait_to_read()

        return backward
    values, batch, classes = _parameters()
    parameters = [weft.asarray(each) for each in values]
    velocities = [weft.zeros(each.shape, dtype="float32") for each in values]
    x, labels = weft.asarray(batch), weft.asarray(classes)

    def loss(given: Any, x: Any, labels: Any) -> Any:
        w1, b1, w2, b2, w3, b3, w4, b4 = given
        y = nn.max_pool(nn.relu(nn.conv(x, w1, b1)), 2)
        y = nn.max_pool(nn.relu(nn.conv(y, w2, b2)), 2)
        y = nn.relu(nn.dense(y, w3, b3, flatten=True))
        return weft.mean(nn.cross_entropy(nn.dense(y, w4, b4), labels))

    both = weft.value_and_grad(loss)

    def step(x: Any, labels: Any) -> Any:
        value, gradients = both(parameters, x, labels)
        for parameter, velocity, gradient in zip(parameters, velocities, gradients, strict=True):
            velocity *= _MOMENTUM  # noqa: PLW2901 - an array, changed in place
            velocity += gradient  # noqa: PLW2901 - as above
            velocity += _DECAY * parameter  # noqa: PLW2901 - as above
            parameter -= _RATE * velocity  # noqa: PLW2901 - as above
        return value

    made: Any = weft.program(step) if program else step

    def run() -> None:
        made(x, labels)
        for each in parameters:
            each.wait_to_read()

    return run


def _torch(case: str, threads: int) -> Callable[[], object] | None:
    from importlib import import_module  # noqa: PLC0415 - in this process alone

    torch: Any = import_module("torch")
    kernels: Any = torch.nn.functional
    torch.set_num_threads(threads)
    if case != _STEP:
        x, w, g, padding = _arrays(case)
        a, b, c = (torch.tensor(each) for each in (x, w, g))
        if case.endswith("forward"):
            return lambda: kernels.conv2d(a, b, padding=padding)
        pair, ones = [padding, padding], [1, 1]
        call: Any = torch.ops.aten.convolution_backward
        return lambda: call(c, a, b, None, ones, pair, ones, False, [0, 0], 1, [True, True, False])
    values, batch, classes = _parameters()
    parameters = [torch.tensor(each, requires_grad=True) for each in values]
    optimizer = torch.optim.SGD(parameters, lr=_RATE, momentum=_MOMENTUM, weight_decay=_DECAY)
    images, labels = torch.tensor(batch), torch.tensor(classes)

    def run() -> None:
        w1, b1, w2, b2, w3, b3, w4, b4 = parameters
        y = kernels.max_pool2d(kernels.relu(kernels.conv2d(images, w1, b1)), 2)
        y = kernels.max_pool2d(kernels.relu(kernels.conv2d(y, w2, b2)), 2)
        y = kernels.relu(kernels.linear(y.flatten(1), w3, b3))
        loss = kernels.cross_entropy(kernels.linear(y, w4, b4), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run


def _onnxruntime(case: str, threads: int) -> Callable[[], object] | None:
    """Forward convolutions alone: it is made for models that are trained."""
    from importlib import import_module  # noqa: PLC0415 - in this process alone

    if not case.endswith("forward"):
        return None
    helper, runtime = (import_module(name) for name in ("onnx.helper", "onnxruntime"))
    (x, w, g, padding), of = _arrays(case), import_module("onnx").TensorProto.FLOAT
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=w.shape[2:], pads=[padding] * 4)
    weights = helper.make_tensor("w", of, w.shape, w.tobytes(), raw=True)
    ends = [[helper.make_tensor_value_info(name, of, each.shape)] for name, each in (("x", x), ("y", g))]
    graph = helper.make_graph([node], "convolution", *ends, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(["y"], {"x": x})


def _make(library: str, case: str, threads: int) -> Callable[[], object] | None:
    if library == "torch":
        return _torch(case, threads)
    if library == "onnxruntime":
        return _onnxruntime(case, threads)
    if library == "weft, program" and case != _STEP:
        return None
    return _weft(case, threads, program=library == "weft, program")


def main(library: str, threads: int) -> None:
    """Answer each line of the input."""
    made: dict[str, Callable[[], object] | None] = {}
    for line in sys.stdin:
        case, count = json.loads(line)
        if case not in made:
            made[case] = run = _make(library, case, threads)
            for _ in range(3 if run is not None else 0):
                run()  # type: ignore[misc] # it is there
        run = made[case]
        times: list[float] | None = None
        if run is not None:
            times = []
            for _ in range(count):
                start = perf_counter()
                run()
                times.append(1e3 * (perf_counter() - start))
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
