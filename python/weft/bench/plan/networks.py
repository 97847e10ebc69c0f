"""Networks as symbols, of the shapes of model zoos: the subjects of comparisons of memory plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import weft
from weft import nn
from weft.symbol import Group, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft.symbol import Symbol


class Zoo:
    """Layers by their usual arguments: parameters are variables of their own, whose shapes follow.

    Parameters
    ----------
    training : bool
        Whether normalisation is by the batch's statistics.

    Examples
    --------
    >>> from weft.bench.plan.networks import Zoo
    >>> from weft.symbol import Variable
    >>> zoo = Zoo(training=False)
    >>> zoo.conv(Variable("x"), 8, 3, padding=1).infer_shape(x=(2, 3, 16, 16))[1]
    [(2, 8, 16, 16)]
    """

    def __init__(self, *, training: bool) -> None:
        self.training = training
        self._count = 0

    def _parameter(self, kind: str, *shape: int | None) -> Any:
        self._count += 1
        return Variable(f"{kind}{self._count}", shape=shape)

    def conv(self, x: Any, filters: int, kernel: int, *, stride: int = 1, padding: int = 0, bias: bool = True) -> Any:
        """Return a convolution."""
        weight = self._parameter("weight", filters, None, kernel, kernel)
        return nn.conv(x, weight, self._parameter("bias", filters) if bias else None, stride=stride, padding=padding)

    def dense(self, x: Any, units: int) -> Any:
        """Return a product with weights, and a bias added."""
        return nn.dense(x, self._parameter("weight", units, None), self._parameter("bias", units))

    def norm(self, x: Any) -> Any:
        """Return a normalisation of channels."""
        gamma, beta = self._parameter("gamma", None), self._parameter("beta", None)
        if self.training:
            return nn.batch_norm_train(x, gamma, beta)[0]
        return nn.batch_norm(x, gamma, beta, self._parameter("mean", None), self._parameter("variance", None))

    def conv_relu(self, x: Any, filters: int, kernel: int, *, stride: int = 1, padding: int = 0) -> Any:
        """Return a convolution and its activation."""
        return nn.relu(self.conv(x, filters, kernel, stride=stride, padding=padding))

    def conv_norm_relu(self, x: Any, filters: int, kernel: int, *, stride: int = 1, padding: int = 0) -> Any:
        """Return a convolution, normalised, and its activation."""
        return nn.relu(self.norm(self.conv(x, filters, kernel, stride=stride, padding=padding)))


def _vgg16(zoo: Zoo, x: Any) -> Any:
    for layers, filters in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(layers):
            x = zoo.conv_relu(x, filters, 3, padding=1)
        x = nn.max_pool(x, 2)
    x = weft.reshape(x, (64, -1))
    for _ in range(2):
        x = nn.relu(zoo.dense(x, 4096))
    return zoo.dense(x, 1000)


def _alexnet(zoo: Zoo, x: Any) -> Any:
    x = nn.max_pool(zoo.conv_relu(x, 96, 11, stride=4), 3, stride=2)
    x = nn.lrn(x, 5, alpha=1e-4, beta=0.75, k=2.0)
    x = nn.max_pool(zoo.conv_relu(x, 256, 5, padding=2), 3, stride=2)
    x = nn.lrn(x, 5, alpha=1e-4, beta=0.75, k=2.0)
    for filters in (384, 384, 256):
        x = zoo.conv_relu(x, filters, 3, padding=1)
    x = weft.reshape(nn.max_pool(x, 3, stride=2), (64, -1))
    for _ in range(2):
        x = nn.relu(zoo.dense(x, 4096))
    return zoo.dense(x, 1000)


def _googlenet(zoo: Zoo, x: Any) -> Any:
    def inception(x: Any, one: int, three: tuple[int, int], five: tuple[int, int], pool: int) -> Any:
        parts = [
            zoo.conv_relu(x, one, 1),
            zoo.conv_relu(zoo.conv_relu(x, three[0], 1), three[1], 3, padding=1),
            zoo.conv_relu(zoo.conv_relu(x, five[0], 1), five[1], 5, padding=2),
            zoo.conv_relu(nn.max_pool(x, 3, stride=1, padding=1), pool, 1),
        ]
        return weft.concat(parts, axis=1)

    x = nn.max_pool(zoo.conv_relu(x, 64, 7, stride=2, padding=3), 3, stride=2)
    x = zoo.conv_relu(zoo.conv_relu(x, 64, 1), 192, 3, padding=1)
    x = nn.max_pool(x, 3, stride=2)
    x = inception(x, 64, (96, 128), (16, 32), 32)
    x = nn.max_pool(inception(x, 128, (128, 192), (32, 96), 64), 3, stride=2)
    x = inception(x, 192, (96, 208), (16, 48), 64)
    x = inception(x, 160, (112, 224), (24, 64), 64)
    x = inception(x, 128, (128, 256), (24, 64), 64)
    x = inception(x, 112, (144, 288), (32, 64), 64)
    x = nn.max_pool(inception(x, 256, (160, 320), (32, 128), 128), 3, stride=2)
    x = inception(x, 256, (160, 320), (32, 128), 128)
    x = inception(x, 384, (192, 384), (48, 128), 128)
    return zoo.dense(weft.mean(x, axis=(2, 3)), 1000)


def _inception_bn(zoo: Zoo, x: Any) -> Any:
    def kept(x: Any, one: int, three: tuple[int, int], double: tuple[int, int], pool: Any, last: int) -> Any:
        deep = zoo.conv_norm_relu(zoo.conv_norm_relu(x, double[0], 1), double[1], 3, padding=1)
        parts = [
            zoo.conv_norm_relu(x, one, 1),
            zoo.conv_norm_relu(zoo.conv_norm_relu(x, three[0], 1), three[1], 3, padding=1),
            zoo.conv_norm_relu(deep, double[1], 3, padding=1),
            zoo.conv_norm_relu(pool(x, 3, stride=1, padding=1), last, 1),
        ]
        return weft.concat(parts, axis=1)

    def halved(x: Any, three: tuple[int, int], double: tuple[int, int]) -> Any:
        deep = zoo.conv_norm_relu(zoo.conv_norm_relu(x, double[0], 1), double[1], 3, padding=1)
        parts = [
            zoo.conv_norm_relu(zoo.conv_norm_relu(x, three[0], 1), three[1], 3, stride=2, padding=1),
            zoo.conv_norm_relu(deep, double[1], 3, stride=2, padding=1),
            nn.max_pool(x, 3, stride=2, padding=1),
        ]
        return weft.concat(parts, axis=1)

    x = nn.max_pool(zoo.conv_norm_relu(x, 64, 7, stride=2, padding=3), 3, stride=2)
    x = zoo.conv_norm_relu(zoo.conv_norm_relu(x, 64, 1), 192, 3, padding=1)
    x = nn.max_pool(x, 3, stride=2)
    x = kept(x, 64, (64, 64), (64, 96), nn.avg_pool, 32)
    x = halved(kept(x, 64, (64, 96), (64, 96), nn.avg_pool, 64), (128, 160), (64, 96))
    x = kept(x, 224, (64, 96), (96, 128), nn.avg_pool, 128)
    x = kept(x, 192, (96, 128), (96, 128), nn.avg_pool, 128)
    x = kept(x, 160, (128, 160), (128, 160), nn.avg_pool, 128)
    x = halved(kept(x, 96, (128, 192), (160, 192), nn.avg_pool, 128), (128, 192), (192, 256))
    x = kept(x, 352, (192, 320), (160, 224), nn.avg_pool, 128)
    x = kept(x, 352, (192, 320), (192, 224), nn.max_pool, 128)
    return zoo.dense(weft.mean(x, axis=(2, 3)), 1000)


def _resnet50(zoo: Zoo, x: Any) -> Any:
    def unit(x: Any, filters: int, stride: int, *, same: bool) -> Any:
        first = nn.relu(zoo.norm(x))
        inner = nn.relu(zoo.norm(zoo.conv(first, filters // 4, 1, bias=False)))
        inner = nn.relu(zoo.norm(zoo.conv(inner, filters // 4, 3, stride=stride, padding=1, bias=False)))
        return zoo.conv(inner, filters, 1, bias=False) + (
            x if same else zoo.conv(first, filters, 1, stride=stride, bias=False)
        )

    x = zoo.conv_norm_relu(zoo.norm(x), 64, 7, stride=2, padding=3)
    x = nn.max_pool(x, 3, stride=2, padding=1)
    for stage, (units, filters) in enumerate(((3, 256), (4, 512), (6, 1024), (3, 2048))):
        for at in range(units):
            x = unit(x, filters, 2 if stage and not at else 1, same=at > 0)
    return zoo.dense(weft.mean(nn.relu(zoo.norm(x)), axis=(2, 3)), 1000)


def _mlp(zoo: Zoo, x: Any) -> Any:
    for _ in range(100):
        x = weft.tanh(zoo.dense(x, 1024))
    return x


def _lstm(zoo: Zoo, x: Any) -> Any:
    names = ("w_x", "w_h", "b_x", "b_h")
    weights = [
        Variable(name, shape=shape)
        for name, shape in zip(names, ((2048, 512), (2048, 512), (2048,), (2048,)), strict=True)
    ]
    h: Any = Variable("h", shape=(64, 512))
    c: Any = Variable("c", shape=(64, 512))
    for at in range(100):
        data = Variable(f"data{at}", shape=(64, 512)) if at else x
        gates: Any = nn.dense(data, weights[0], weights[2]) + nn.dense(h, weights[1], weights[3])
        first, forget, new, out = (weft.symbol.narrow(gates, axis=1, start=512 * part, length=512) for part in range(4))
        c = nn.sigmoid(forget) * c + nn.sigmoid(first) * weft.tanh(new)
        h = nn.sigmoid(out) * weft.tanh(c)
    return zoo.dense(h, 512)


@dataclass(frozen=True)
class Network:
    """A network, the shape of its data, and what MXNet 1.9.1 plans for it, in MB: inference and training, by default.

    Parameters
    ----------
    name : str
        Its name.
    data : tuple of int
        The shape of its data.
    build : callable
        ``build(zoo, data)`` composes its result.
    inference, training : int
        MXNet's plans.
    """

    name: str
    data: tuple[int, ...]
    build: Callable[[Zoo, Any], Any]
    inference: int
    training: int

    def forwards(self, *, training: bool) -> tuple[Symbol, list[str]]:
        """Return its result, or for training its loss; and the names of its parameters.

        Examples
        --------
        >>> from weft.bench.plan.networks import NETWORKS
        >>> mlp = next(each for each in NETWORKS if each.name == "MLP-100")
        >>> len(mlp.forwards(training=False)[1])
        200
        """
        zoo = Zoo(training=training)
        data = Variable("data", shape=self.data)
        result: Any = self.build(zoo, data)
        if training:
            result = nn.cross_entropy(result, Variable("label", shape=(self.data[0],), dtype="int32"))
        names: Sequence[str] = result.list_arguments()
        return result, [name for name in names if not name.startswith(("data", "label")) and name not in {"h", "c"}]

    def trained(self) -> tuple[Symbol, Symbol, list[str]]:
        """Return forwards; forwards and backwards together; and the names of the gradients among the results."""
        loss, names = self.forwards(training=True)
        grads = loss.gradient(names)
        return loss, Group([loss, grads]), grads.list_outputs()


#: The networks, with what MXNet plans.
NETWORKS = (
    Network("Inception-BN", (32, 3, 224, 224), _inception_bn, 244, 1398),
    Network("VGG-16", (64, 3, 224, 224), _vgg16, 1820, 4855),
    Network("GoogLeNet", (64, 3, 224, 224), _googlenet, 398, 1866),
    Network("ResNet-50", (32, 3, 224, 224), _resnet50, 300, 2640),
    Network("AlexNet", (64, 3, 224, 224), _alexnet, 208, 495),
    Network("MLP-100", (1024, 1024), _mlp, 8, 408),
    Network("LSTM-100", (64, 512), _lstm, 50, 239),
)
