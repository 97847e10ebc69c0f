"""A deep perceptron: 24 layers of 512 units."""

import weft
from weft import autograd, layer, model


class Perceptron(model.Model):
    """Layers of weights with tanh between them; the loss is the mean of the squares of what comes out."""

    def __init__(self, depth: int = 24, wide: int = 512) -> None:
        super().__init__()
        self.layers = [layer.Linear(wide) for _ in range(depth)]
        self.loss = layer.MeanSquareError()

    def forward(self, x: weft.NDArray) -> weft.NDArray:
        """Return the last layer's units for rows (N, wide)."""
        for dense in self.layers:
            x = autograd.tanh(dense(x))
        return x

    def train_one_batch(self, x: weft.NDArray, y: weft.NDArray) -> tuple[weft.NDArray, weft.NDArray]:
        """Return results and loss, and update the weights."""
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss
