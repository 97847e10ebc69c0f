"""Handwritten digits, learnt on two devices by one loop that is written serially.

The loop is in ``two_devices/training.py``; this script runs it under several policies,
shows that all of them give the same weights, bit for bit, and draws who ran what when:

    python docs/examples/digits.py

Needs scikit-learn (which brings the images), matplotlib, rich and threadpoolctl.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import weft
from two_devices import timeline
from two_devices.network import accuracy
from two_devices.training import Data, Outcome, Plan, train

ENGINES: dict[str, Callable[[], weft.Engine]] = {
    "serial": lambda: weft.Engine(policy="serial"),
    "work_stealing": lambda: weft.Engine(policy="work_stealing", workers=2),
    "per_device": lambda: weft.Engine(policy="per_device", workers=1),
}


def load_data(seed: int = 0) -> tuple[Data, Data]:
    """Return the digits to learn from and, drawn by `seed`, a quarter held out."""
    digits = load_digits()
    seen, held_out, *classes = train_test_split(
        digits.data, digits.target, test_size=0.25, random_state=seed, stratify=digits.target
    )
    parts = []
    for pixels, digit in zip((seen, held_out), classes, strict=True):
        images = np.column_stack([(pixels - seen.mean(axis=0)) / 4, np.ones(len(pixels))])
        parts.append(Data(images.astype(np.float32), np.eye(10, dtype=np.float32)[digit]))
    return parts[0], parts[1]


def run_all(data: Data, plan: Plan, repeats: int, console: Console) -> dict[str, list[Outcome]]:
    """Train under each policy in turn, `repeats` times, and return what came out."""
    outcomes: dict[str, list[Outcome]] = {policy: [] for policy in ENGINES}
    columns = (TextColumn("{task.description:13}"), BarColumn(None), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, refresh_per_second=4) as progress:
        bar = progress.add_task("", total=repeats * len(ENGINES) * plan.epochs)
        for _ in range(repeats):
            for policy, engine_of in ENGINES.items():
                progress.update(bar, description=policy)
                with engine_of() as engine:
                    outcomes[policy].append(train(engine, data, plan, partial(progress.advance, bar)))
        progress.update(bar, description="done")
    return outcomes


def summary(outcomes: dict[str, list[Outcome]]) -> Table:
    """Return a table of the policies' wall times, and of serial's divided by them."""
    table = Table("policy", "threads", "best", "speed-up", "median", "speed-up", box=SIMPLE)
    seconds = {policy: [run.seconds for run in runs] for policy, runs in outcomes.items()}
    serial = seconds["serial"]
    for policy, own in seconds.items():
        table.add_row(
            policy,
            str(len({span.thread for span in outcomes[policy][0].spans})),
            f"{min(own):.2f} s",
            f"{min(serial) / min(own):.2f}",
            f"{median(own):.2f} s",
            f"{median(serial) / median(own):.2f}",
        )
    return table


def differing(outcomes: dict[str, list[Outcome]]) -> list[str]:
    """Return the policies that, in any run, gave other weights than the first run."""
    expected = [weights.tobytes() for weights in outcomes["serial"][0].weights]
    return [
        policy
        for policy, runs in outcomes.items()
        if any([weights.tobytes() for weights in run.weights] != expected for run in runs)
    ]


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""

    def count(text: str) -> int:
        if (value := int(text)) < 1:
            raise argparse.ArgumentTypeError(f"{text} is not at least 1")
        return value

    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--epochs", type=count, default=30, help="passes over the training data")
    parser.add_argument("--hidden", type=count, default=8192, help="hidden units")
    parser.add_argument("--batch", type=count, default=256, help="rows in a batch, half per device")
    parser.add_argument("--repeats", type=count, default=5, help="timed runs of each policy")
    parser.add_argument("--out", type=Path, default="demo-timeline.png", help="the picture")
    parser.add_argument("--quick", action="store_true", help="5 epochs, one run of each policy")
    return parser.parse_args()


def main() -> int:
    """Run the demo; return 0, 1 if the policies disagree on the weights, 2 if it cannot run."""
    options = arguments()
    if options.quick:
        options.epochs, options.repeats = 5, 1
    plan = Plan(options.epochs, options.hidden, options.batch)
    console = Console()
    data, held_out = load_data()
    if options.batch % 2 or options.batch > len(data.images):
        console.print(f"[red]--batch must be even and at most {len(data.images)}, not {options.batch}")
        return 2

    with threadpool_limits(limits=1, user_api="blas"):
        outcomes = run_all(data, plan, options.repeats, console)
        score = accuracy(*outcomes["serial"][0].weights, held_out.images, held_out.labels)

    console.print(summary(outcomes))
    console.print(f"ops in each run     {outcomes['serial'][0].ops:,}")
    console.print(f"held-out accuracy   {score:.3f}")
    if policies := differing(outcomes):
        console.print(f"[red]final weights       differ from those of serial: {', '.join(policies)}")
        return 1
    console.print("final weights       the same in all runs, bit for bit")
    fastest = {policy: min(runs, key=lambda run: run.seconds) for policy, runs in outcomes.items()}
    timeline.save(options.out, {f"{policy}, {run.seconds:.2f} s": run.spans for policy, run in fastest.items()})
    console.print(f"who ran what when   {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
