"""Handwritten digits, learnt by the network of SINGA's documentation: eagerly, as a graph, as a graph op by op.

All three give the same weights, bit for bit; the graph needs less memory. The table has the columns of SINGA's own; the
reduction compares with the sum of a step's results, and the speed-up with the eager run:

    python docs/examples/cnn.py
    mpiexec -n 2 python docs/examples/cnn.py --ranks

The digits are scikit-learn's, scaled to 28 x 28. ``--all`` adds ResNet-18 and a perceptron of 24 layers; with ``--ranks`` each
process computes its share of each batch. The networks are in ``networks``; needs scikit-learn, matplotlib and rich.
"""

import argparse
import sys
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import weft
from networks.convolutional import CNN
from networks.perceptron import Perceptron
from networks.race import WAYS, Contest, Floats, Labels, Outcome, accuracy, rows, run, same_weights
from networks.ranks import Ranks
from networks.residual import ResNet18
from weft import opt

COLUMNS = ("network", "method", "memory, MB", "reduction", "ms/step", "samples/s", "speed-up")


def load(seed: int = 0) -> tuple[Floats, Floats, Labels, Labels]:
    """Return images to learn from and images held out, (N, 1, 28, 28), and the classes of both."""
    digits = load_digits()
    images = np.clip(zoom(digits.images, (1, 3.5, 3.5), order=1), 0, 16).astype(np.float32)[:, None] / 16
    found = train_test_split(images, digits.target.astype(np.int32), test_size=0.25, random_state=seed)
    return found[0], found[1], found[2], found[3]


def contests(x: Floats, y: Labels, options: argparse.Namespace) -> list[Contest]:
    """Return what is to be trained."""
    few = 3 if options.quick else 12
    found = [Contest("CNN", CNN, lambda: opt.SGD(0.005, 0.9, weight_decay=1e-5), x, y, 32, options.epochs)]
    if options.all:
        rng = np.random.default_rng(1)
        wide = rng.normal(size=(256 * few, 512)).astype(np.float32)
        found += [
            Contest("ResNet-18", ResNet18, lambda: opt.SGD(0.005, 0.9), x[: 16 * few], y[: 16 * few], 16, 1),
            Contest("24 x 512", Perceptron, lambda: opt.SGD(0.05), wide, np.tanh(wide[:, ::-1]).copy(), 256, 1),
        ]
    return found


def show(table: list[tuple[str, ...]]) -> None:
    """Print the figures."""
    shown = Table(*COLUMNS, box=SIMPLE, padding=(0, 0, 0, 1))
    for column in shown.columns[2:]:
        column.justify = "right"
    for row in table:
        shown.add_row(*row)
    Console().print(shown)


def draw_losses(outcomes: list[Outcome], path: Path) -> None:
    """Draw the loss of each epoch, one line for each way: they lie on each other."""
    figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
    for outcome, style in zip(outcomes, ("-", "--", ":"), strict=True):
        axes.plot(range(1, len(outcome.losses) + 1), outcome.losses, style, label=outcome.way)
    axes.set(xlabel="epoch", ylabel="loss", yscale="log")
    axes.legend()
    figure.savefig(path)
    plt.close(figure)


def advance(progress: Progress, tasks: Mapping[str, TaskID], way: str) -> None:
    """Show that one way has come a step further."""
    progress.advance(tasks[way])


def main() -> int:
    """Train, compare, draw; return 1 if the ways do not agree, or the network has not learnt."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="ResNet-18 and a perceptron of 24 layers, too")
    parser.add_argument("--ranks", action="store_true", help="share the work with the other processes of mpiexec")
    parser.add_argument("--epochs", type=int, default=12, help="how often the CNN sees all digits")
    parser.add_argument("--quick", action="store_true", help="two epochs, a few digits: whether it runs")
    parser.add_argument(
        "--timeline", type=Path, nargs="+", default=[Path("demo-timeline.png")], help="draw a step: .png, .svg or .html"
    )
    parser.add_argument("--losses", type=Path, default=Path("demo-losses.png"), help="the loss of each epoch")
    options = parser.parse_args()
    train_x, test_x, train_y, test_y = load()
    if options.quick:
        options.epochs, train_x, train_y = 2, train_x[:256], train_y[:256]
    ranks = Ranks(weft.distributed.Communicator() if options.ranks else None)
    todo = [ranks.share(contest) for contest in contests(train_x, train_y, options)]
    table: list[tuple[str, ...]] = []
    failed = False
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    quiet = ranks.rank > 0  # one of them speaks for all
    with (
        redirect_stdout(StringIO()) if quiet else nullcontext(),
        Progress(*columns, transient=True, console=Console(stderr=True), disable=quiet) as progress,
    ):
        for contest in todo:
            tasks = {way: progress.add_task(f"{contest.name}, {way}", total=contest.steps) for way, *_ in WAYS}
            outcomes = run(contest, partial(advance, progress, tasks))
            table += rows(contest, outcomes)
            same = same_weights(outcomes)
            failed |= not same
            print(f"{contest.name}: weights {'the same in all runs, bit for bit' if same else 'DIFFER'}", flush=True)
            if contest is todo[0]:
                right = accuracy(outcomes[0].net, test_x, test_y)
                failed |= right < 0.97 and not options.quick
                print(f"CNN: accuracy {right:.3f} on {len(test_x)} digits held out")
                program = outcomes[1].net.programs[0]
                for path in options.timeline:  # it replays the step, which all of them have a part in
                    program.timeline(path.with_stem(f"{path.stem}-rank{ranks.rank}") if quiet else path)
                if not quiet:
                    draw_losses(outcomes, options.losses)
    weft.wait_all()
    if not quiet:
        show(table)
        print(f"a step, drawn: {', '.join(map(str, options.timeline))}; losses: {options.losses}")
    ranks.leave()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
