"""A long short-term memory that learns to continue a text, letter by letter.

The text is the description of a data set, which scikit-learn ships. The network is trained eagerly, as a graph, and as a
graph op by op; then it writes on.

    python docs/examples/text.py --timeline text.svg
"""

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer

import weft
from comparison import command_line
from networks.race import Contest, race, same_weights
from weft import layer, model, opt, tensor

LENGTH, BATCH, HIDDEN = 16, 16, 64


class Letters(model.Model):
    """Letters as vectors, a long short-term memory over them, and the chances of the next letter."""

    def __init__(self, alphabet: int) -> None:
        super().__init__()
        self.embedding = layer.Embedding(alphabet, 16)
        self.memory = layer.LSTM(16, HIDDEN, batch_first=True)
        self.linear = layer.Linear(alphabet)
        self.loss = layer.SoftMaxCrossEntropy()

    def forward(self, x: weft.NDArray) -> weft.NDArray:
        """Return logits of the letters that follow, (N * T, alphabet), for letters (N, T)."""
        start = weft.zeros((x.shape[0], HIDDEN), "float32")
        states, _, _ = self.memory(self.embedding(x), (start, start))
        out: weft.NDArray = self.linear(states.reshape(-1, HIDDEN))
        return out

    def train_one_batch(self, x: weft.NDArray, y: weft.NDArray) -> tuple[weft.NDArray, weft.NDArray]:
        """Return logits and loss, and update the weights."""
        out = self.forward(x)
        loss = self.loss(out, y.reshape(-1))
        self.optimizer(loss)
        return out, loss


def written(net: model.Model, letters: str, start: str, count: int) -> str:
    """Return a text continued by the likeliest letters."""
    net.eval()
    x = tensor.Tensor((1, LENGTH), dtype=tensor.int32)
    text = start.rjust(LENGTH)
    for _ in range(count):
        x.copy_from_numpy(np.array([letters.index(letter) for letter in text[-LENGTH:]], np.int32))
        text += letters[int(tensor.to_numpy(net(x))[-1].argmax())]
    return text.lstrip()


def main() -> int:
    """Train and write; return 1 if the weights differ."""
    options = command_line(__doc__, 12, "times through the text").parse_args()
    text = " ".join(load_breast_cancer().DESCR.lower().split())[:1200]
    letters = "".join(sorted(set(text)))
    codes = np.array([letters.index(letter) for letter in text], np.int32)
    starts = np.arange(0, len(codes) - LENGTH - 1, 3)
    x = np.stack([codes[start : start + LENGTH] for start in starts])
    y = np.stack([codes[start + 1 : start + LENGTH + 1] for start in starts])
    contest = Contest("LSTM", lambda: Letters(len(letters)), lambda: opt.Adam(0.01), x, y, BATCH, options.size)
    outcomes = race(contest, options.repeats)
    net = outcomes[1].net
    same = same_weights(outcomes)
    print(f"it writes: {written(net, letters, 'breast cancer ', 40)!r}")
    for path in options.timeline:
        net.programs[0].timeline(path)  # which trains it further, on a blank text
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
