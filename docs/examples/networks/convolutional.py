"""The network of SINGA's documentation: two convolutions with pooling, two layers of weights."""

import weft
from weft import layer, model


class CNN(model.Model):
    """Convolutions of 20 and 50 kernels of 5 x 5, pooling after each, 500 hidden units, 10 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = layer.Conv2d(1, 20, 5, padding=0, activation="RELU")
        self.conv2 = layer.Conv2d(20, 50, 5, padding=0, activation="RELU")
        self.pool1 = layer.MaxPool2d(2, 2, padding=0)
        self.pool2 = layer.MaxPool2d(2, 2, padding=0)
        self.flatten = layer.Flatten()
        self.linear1 = layer.Linear(500)
        self.relu = layer.ReLU()
        self.linear2 = layer.Linear(10)
        self.loss = layer.SoftMaxCrossEntropy()

    def forward(self, x: weft.NDArray) -> weft.NDArray:
        """Return logits for images (N, 1, 28, 28)."""
        y: weft.NDArray = self.pool1(self.conv1(x))
        y = self.pool2(self.conv2(y))
        y = self.relu(self.linear1(self.flatten(y)))
        out: weft.NDArray = self.linear2(y)
        return out

    def train_one_batch(self, x: weft.NDArray, y: weft.NDArray) -> tuple[weft.NDArray, weft.NDArray]:
        """Return logits and loss, and update the weights."""
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss
