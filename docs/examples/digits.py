"""Handwritten digits, learnt on two devices by one loop that is written serially.

The loop is there twice: with ops pushed by hand in ``two_devices/training.py``, and as array
arithmetic, which pushes by itself, in ``two_devices/arithmetic.py``. This script runs both under several
policies, beside plain NumPy and, where it is installed, torch. It shows that all policies give the same
weights, bit for bit, and that all versions learn alike, and draws who ran what when, with `weft.trace`:

    python docs/examples/digits.py

The devices are two GPUs where there are two, one GPU as two logical devices where there is one, and else the
CPU: ``two_devices/devices.py`` finds out, and the script says which. On GPUs the array arithmetic is run; ops
that are pushed by hand call NumPy's functions and stay on the CPU.

Needs scikit-learn (which brings the images), matplotlib, rich and threadpoolctl.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TypeAlias

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import weft
from two_devices import arithmetic, program as programs
from two_devices.devices import Devices, find_devices
from two_devices.network import accuracy
from two_devices.training import Data, Outcome, Plan, train

ENGINES: dict[str, Callable[[], weft.Engine]] = {
    "serial": lambda: weft.Engine(policy="serial"),
    "work_stealing": lambda: weft.Engine(policy="work_stealing", workers=2),
    "per_device": lambda: weft.Engine(policy="per_device", workers=1),
}
#: Trains and returns what came out, with a function to call after each epoch.
Training: TypeAlias = Callable[[Data, Plan, Callable[[], object]], Outcome]
NUMPY = "NumPy"
# In front of a policy: the version in array arithmetic.
NDARRAY = "NDArray, "
# Sums are rounded in another order where a batch is not cut in two.
RELATIVE, ABSOLUTE = 1e-3, 1e-5


def on_engine(train: Callable[[weft.Engine, Data, Plan, Callable[[], object]], Outcome], policy: str) -> Training:
    """Return a training on an engine of its own, made when it starts and closed at its end."""

    def run(data: Data, plan: Plan, on_epoch: Callable[[], object]) -> Outcome:
        with ENGINES[policy]() as engine:
            return train(engine, data, plan, on_epoch)

    return run


def trainings(devices: Devices) -> dict[str, Training]:
    """Return all that there is to compare: a policy's name alone stands for ops pushed by hand."""
    versions = {} if devices.on_gpu else {policy: on_engine(train, policy) for policy in ENGINES}
    versions[NUMPY] = arithmetic.train_numpy
    if find_spec("torch"):
        versions["torch, 2 threads"] = partial(arithmetic.train_torch, 2)
    in_arrays = partial(arithmetic.train, devices=devices.pair)
    versions |= {NDARRAY + policy: on_engine(in_arrays, policy) for policy in ENGINES}
    return versions


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


def run_all(data: Data, plan: Plan, repeats: int, devices: Devices, console: Console) -> dict[str, list[Outcome]]:
    """Train with each version in turn, `repeats` times, and return what came out."""
    versions = trainings(devices)
    if devices.on_gpu:  # what is compiled at its first use is there when it is timed
        versions[f"{NDARRAY}serial"](data, replace(plan, epochs=1), lambda: None)
    outcomes: dict[str, list[Outcome]] = {version: [] for version in versions}
    columns = (TextColumn("{task.description:22}"), BarColumn(None), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, refresh_per_second=4) as progress:
        bar = progress.add_task("", total=repeats * len(versions) * plan.epochs)
        for _ in range(repeats):
            for version, training in versions.items():
                progress.update(bar, description=version)
                outcomes[version].append(training(data, plan, partial(progress.advance, bar)))
        progress.update(bar, description="done")
    return outcomes


def summary(outcomes: dict[str, list[Outcome]]) -> Table:
    """Return a table of the policies' wall times, and of serial's divided by them."""
    table = Table("policy", "best", "speed-up", "median", "speed-up", box=SIMPLE)
    seconds = {policy: [run.seconds for run in outcomes[policy]] for policy in ENGINES}
    serial = seconds["serial"]
    for policy, own in seconds.items():
        table.add_row(
            policy,
            f"{min(own):.2f} s",
            f"{min(serial) / min(own):.2f}",
            f"{median(own):.2f} s",
            f"{median(serial) / median(own):.2f}",
        )
    return table


def comparison(outcomes: dict[str, list[Outcome]], held_out: Data) -> Table:
    """Return a table of all versions: wall times, NumPy's divided by them, and what was learnt."""
    table = Table("version", "best", "speed-up", "median", "speed-up", "accuracy", box=SIMPLE)
    seconds = {version: [run.seconds for run in runs] for version, runs in outcomes.items()}
    numpy = seconds[NUMPY]
    for version, own in seconds.items():
        table.add_row(
            f"by hand, {version}" if version in ENGINES else version,
            f"{min(own):.2f} s",
            f"{min(numpy) / min(own):.2f}",
            f"{median(own):.2f} s",
            f"{median(numpy) / median(own):.2f}",
            f"{accuracy(*outcomes[version][0].weights, held_out.images, held_out.labels):.3f}",
        )
    return table


def differing(outcomes: dict[str, list[Outcome]], prefix: str = "") -> list[str]:
    """Return the policies that, in any run, gave other weights than the first run."""
    expected = [weights.tobytes() for weights in outcomes[prefix + "serial"][0].weights]
    return [
        prefix + policy
        for policy in ENGINES
        if any([weights.tobytes() for weights in run.weights] != expected for run in outcomes[prefix + policy])
    ]


def straying(outcomes: dict[str, list[Outcome]]) -> list[str]:
    """Return the versions whose weights are not those of NumPy, but for rounding."""
    expected = outcomes[NUMPY][0].weights
    return [
        version
        for version, runs in outcomes.items()
        if not all(
            np.allclose(own, numpy, RELATIVE, ABSOLUTE) for own, numpy in zip(runs[0].weights, expected, strict=True)
        )
    ]


def draw(data: Data, plan: Plan, paths: list[Path], devices: Devices, console: Console) -> None:
    """Train for one more epoch, draw who ran what when, and print how much of it ran side by side."""
    training = partial(arithmetic.train, devices=devices.pair) if devices.on_gpu else train
    with ENGINES["per_device"]() as engine, weft.trace(engine=engine) as trace:
        training(engine, data, replace(plan, epochs=1), lambda: None)
    for path in paths:
        trace.timeline(path)
    summary = trace.summary()
    console.print(
        f"ops side by side    {summary.parallelism:.2f} on average, {summary.possible_parallelism:.2f} possible"
    )
    console.print(f"copies              {summary.overlap_fraction:.0%} of the time beside computation")
    console.print(f"who ran what when   {', '.join(map(str, paths))}")


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
    parser.add_argument("--repeats", type=count, default=5, help="timed runs of each version")
    parser.add_argument(
        "--timeline",
        type=Path,
        nargs="+",
        default=[Path("demo-timeline.png")],
        help="the pictures: .png, .svg or .html",
    )
    parser.add_argument("--quick", action="store_true", help="5 epochs, one run of each version")
    return parser.parse_args()


def main() -> int:
    """Run the demo; return 0, 1 if policies or versions disagree on the weights, 2 if it cannot run."""
    options = arguments()
    if options.quick:
        options.epochs, options.repeats = 5, 1
    plan = Plan(options.epochs, options.hidden, options.batch)
    console = Console()
    data, held_out = load_data()
    if options.batch % 2 or options.batch > len(data.images):
        console.print(f"[red]--batch must be even and at most {len(data.images)}, not {options.batch}")
        return 2

    devices = find_devices()
    console.print(f"devices             {devices.said}", soft_wrap=True)
    with threadpool_limits(limits=1, user_api="blas"):
        outcomes = run_all(data, plan, options.repeats, devices, console)
    agree = devices.on_gpu or tell_by_hand(outcomes, held_out, console)
    if agree:
        draw(data, plan, options.timeline, devices, console)
    if not (agree and tell_arrays(outcomes, held_out, console)):
        return 1
    with threadpool_limits(limits=1, user_api="blas"):
        return 0 if tell_program(data, replace(plan, epochs=min(plan.epochs, 5)), console) else 1


def tell_program(data: Data, plan: Plan, console: Console) -> bool:
    """Train on one device by eager steps and by a program, print what came of it, and return whether the weights agree."""
    found = programs.compare(data, plan)
    program, saved = found.program, 1 - found.program.nbytes / found.program.eager_nbytes
    console.print("\nThe training step on one device, as a program")
    console.print(f"ops in a replay     {program.ops}")
    console.print(
        f"arena               {program.nbytes / 1e6:.1f} MB, {program.eager_nbytes / 1e6:.1f} MB for all results "
        f"({saved:.0%} saved)"
    )
    console.print(
        f"time for a step     {1e3 * found.eager:.2f} ms eager, {1e3 * found.replayed:.2f} ms replayed (medians)"
    )
    if not found.same:
        console.print("[red]final weights       differ between eager steps and replays")
        return False
    console.print("final weights       the same, eager and replayed, bit for bit")
    return True


def tell_by_hand(outcomes: dict[str, list[Outcome]], held_out: Data, console: Console) -> bool:
    """Print what came of the ops pushed by hand, and return whether all policies gave the same weights."""
    console.print(summary(outcomes))
    console.print(f"ops in each run     {outcomes['serial'][0].ops:,}")
    score = accuracy(*outcomes["serial"][0].weights, held_out.images, held_out.labels)
    console.print(f"held-out accuracy   {score:.3f}")
    if policies := differing(outcomes):
        console.print(f"[red]final weights       differ from those of serial: {', '.join(policies)}")
        return False
    console.print("final weights       the same in all runs, bit for bit")
    return True


def tell_arrays(outcomes: dict[str, list[Outcome]], held_out: Data, console: Console) -> bool:
    """Print what came of the array arithmetic, beside all other versions, and return whether all agree."""
    console.print("\nThe same network in array arithmetic")
    console.print(comparison(outcomes, held_out))
    console.print(f"ops in each run     {outcomes[f'{NDARRAY}serial'][0].ops:,}")
    if versions := differing(outcomes, NDARRAY):
        console.print(f"[red]final weights       differ from those of {NDARRAY}serial: {', '.join(versions)}")
        return False
    if versions := straying(outcomes):
        console.print(f"[red]final weights       differ from those of {NUMPY}: {', '.join(versions)}")
        return False
    console.print("NDArray's weights   the same in all runs, bit for bit")
    console.print("other weights       the same, but for rounding")
    return True


if __name__ == "__main__":
    sys.exit(main())
