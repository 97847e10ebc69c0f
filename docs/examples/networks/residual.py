"""ResNet-18 (He and others, "Deep Residual Learning for Image Recognition", 2015), for small images of one channel."""

import weft
from weft import autograd, layer, model


class Block(layer.Layer):
    """Two convolutions of 3 x 3 beside a shortcut."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = layer.Conv2d(channels, 3, stride=stride, padding=1, bias=False)
        self.norm1 = layer.BatchNorm2d(momentum=0.1)
        self.conv2 = layer.Conv2d(channels, 3, padding=1, bias=False)
        self.norm2 = layer.BatchNorm2d(momentum=0.1)
        self.shortcut = layer.Conv2d(channels, 1, stride=stride, bias=False) if stride > 1 else None
        self.norm = layer.BatchNorm2d(momentum=0.1)

    def forward(self, x: weft.NDArray) -> weft.NDArray:
        """Return the sum of both ways."""
        y: weft.NDArray = autograd.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return autograd.relu(y + (x if self.shortcut is None else self.norm(self.shortcut(x))))


class ResNet18(model.Model):
    """Eight blocks, the channels of which double as the images get smaller."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = layer.Conv2d(64, 3, padding=1, bias=False)
        self.norm = layer.BatchNorm2d(momentum=0.1)
        self.blocks = [Block(64 << at // 2, 2 if at % 2 == 0 < at else 1) for at in range(8)]
        self.linear = layer.Linear(10)
        self.loss = layer.SoftMaxCrossEntropy()

    def forward(self, x: weft.NDArray) -> weft.NDArray:
        """Return logits for images (N, 1, 28, 28)."""
        y: weft.NDArray = autograd.relu(self.norm(self.conv(x)))
        for block in self.blocks:
            y = block(y)
        out: weft.NDArray = self.linear(autograd.flatten(autograd.globalaveragepool(y)))
        return out

    def train_one_batch(self, x: weft.NDArray, y: weft.NDArray) -> tuple[weft.NDArray, weft.NDArray]:
        """Return logits and loss, and update the weights."""
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss
