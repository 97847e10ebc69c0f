"""A network with two towers: nobody says that they may run at the same time, and they do.

One tower looks at the upper half of a digit, the other at the lower half; what they find is joined. The network is
trained eagerly, as a graph, and as a graph op by op, which is what the towers' overlap is measured against.

    python docs/examples/towers.py --timeline towers.svg
"""

import sys

import numpy as np
from sklearn.datasets import load_digits

import weft
from comparison import command_line
from networks.race import Contest, race, same_weights
from weft import autograd, layer, model, opt

BATCH = 64


class Tower(layer.Layer):
    """Three layers over half an image."""

    def __init__(self, wide: int) -> None:
        super().__init__()
        self.layers = [layer.Linear(wide) for _ in range(3)]

    def forward(self, x: weft.NDArray) -> weft.NDArray:
        """Return what it finds."""
        for dense in self.layers:
            x = autograd.tanh(dense(x))
        return x


class Towers(model.Model):
    """Two towers, and a layer over both."""

    def __init__(self, wide: int = 768) -> None:
        super().__init__()
        self.upper, self.lower = Tower(wide), Tower(wide)
        self.linear = layer.Linear(10)
        self.loss = layer.SoftMaxCrossEntropy()

    def forward(self, x: weft.NDArray) -> weft.NDArray:
        """Return logits for images (N, 64)."""
        halves = [self.upper(x[:, :32]), self.lower(x[:, 32:])]
        out: weft.NDArray = self.linear(weft.concatenate(halves, axis=1))
        return out

    def train_one_batch(self, x: weft.NDArray, y: weft.NDArray) -> tuple[weft.NDArray, weft.NDArray]:
        """Return logits and loss, and update the weights."""
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


def main() -> int:
    """Train all ways; return 1 if the weights differ."""
    options = command_line(__doc__, 2, "times through the digits").parse_args()
    digits = load_digits()
    x, y = digits.data.astype(np.float32) / 16, digits.target.astype(np.int32)
    contest = Contest("towers", Towers, lambda: opt.SGD(0.05, 0.9), x, y, BATCH, options.size)
    outcomes = race(contest, options.repeats)
    program = outcomes[1].net.programs[0]
    print(f"{'beside each other':18}{outcomes[2].step / outcomes[1].step:8.2f} times as fast as op by op")
    same = same_weights(outcomes)
    for path in options.timeline:
        program.timeline(path)  # which trains it further, on blank images
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
