"""A convolutional network that two processes train, each on half of every batch: bit for bit what one process gives.

Gradients travel in buckets, the last layer's first, while backward goes on. Started by itself, the program starts two
ranks of itself; each saves a timeline of its last step.

    mpiexec -n 2 python docs/examples/two_ranks.py
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import weft
from weft import NDArray, autograd, nn, opt

SHAPES = {"conv1": (8, 1, 3, 3), "conv2": (16, 8, 3, 3), "dense1": (256, 64), "dense2": (64, 10)}
#: Bytes of a bucket would be megabytes in earnest; here each of the larger layers has its own.
BUCKET = 1000


def parameters() -> list[NDArray]:
    """Return the network's weights, the same wherever they are drawn."""
    generator = np.random.default_rng(0)
    made = [weft.asarray((generator.standard_normal(shape) * 0.1).astype("f4")) for shape in SHAPES.values()]
    for each in made:
        each.requires_grad = True
    return made


def half(rank: int, step: int, rows: int) -> tuple[NDArray, NDArray]:
    """Return a rank's half of a batch: bars of light on noise, and which of ten places they are in."""
    generator = np.random.default_rng([rank, step])
    labels = generator.integers(0, 10, rows)
    images = generator.standard_normal((rows, 1, 20, 20)).astype("f4")
    for image, label in zip(images, labels, strict=True):
        image[0, 2 * label : 2 * label + 2] += 2
    return weft.asarray(images), weft.asarray(labels.astype("i4"))


def loss_of(weights: list[NDArray], images: NDArray, labels: NDArray) -> NDArray:
    """Return the mean cross entropy of what the network says."""
    conv1, conv2, dense1, dense2 = weights
    x = nn.max_pool(nn.relu(nn.conv(images, conv1, padding=1)), 2)
    x = nn.max_pool(nn.relu(nn.conv(x, conv2)), 2)
    x = nn.relu(weft.reshape(x, (x.shape[0], -1)) @ dense1)
    return nn.cross_entropy(x @ dense2, labels).mean()


def train_on_ranks(comm: weft.distributed.Communicator, steps: int, rows: int) -> list[NDArray]:
    """Train on this rank's halves, gradients averaged over the ranks; save a timeline of the last step."""
    weights = parameters()
    descent = opt.DistOpt(opt.SGD(lr=0.05, momentum=0.9), communicator=comm)
    for step in range(steps - 1):
        descent.backward_and_update(loss_of(weights, *half(comm.rank, step, rows)), threshold=BUCKET)
    weft.wait_all()
    with weft.trace() as trace:
        descent.backward_and_update(loss_of(weights, *half(comm.rank, steps - 1, rows)), threshold=BUCKET)
        weft.wait_all()
    trace.timeline(f"rank{comm.rank}.svg")
    return weights


def train_alone(ranks: int, steps: int, rows: int) -> list[NDArray]:
    """Train on all halves in one process."""
    weights = parameters()
    descent = opt.SGD(lr=0.05, momentum=0.9)
    for step in range(steps):
        halves = [autograd.gradients(loss_of(weights, *half(rank, step, rows))) for rank in range(ranks)]
        for at, weight in enumerate(weights):
            total = halves[0][weight]
            for other in halves[1:]:
                total = total + other[weight]
            descent.apply(f"weight{at}", weight, total / ranks)
        descent.step()
    return weights


def main() -> None:
    """Train both ways and compare; as the only rank, start two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--rows", type=int, default=32, help="of each rank's half of a batch (default: %(default)s)")
    options = parser.parse_args()
    comm = weft.distributed.Communicator()
    if comm.size == 1:
        comm.close()
        start_two()
        return
    weights = train_on_ranks(comm, options.steps, options.rows)
    if comm.rank == 0:
        expected = train_alone(comm.size, options.steps, options.rows)
        same = all((a.numpy() == b.numpy()).all() for a, b in zip(weights, expected, strict=True))
        print(f"ranks             {comm.size}")
        print(f"loss              {loss_of(weights, *half(0, options.steps, options.rows)).item():.3f}")
        print(f"one process       {'the same weights, bit for bit' if same else 'DIFFERENT weights'}")
    comm.barrier()
    comm.wait()


def start_two() -> None:
    """Run this program once more, on two ranks."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        print("ranks             there is no mpiexec: pip install mpich mpi4py")
        return
    done = subprocess.run([mpiexec, "-n", "2", sys.executable, *sys.argv], capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode:
        raise SystemExit(done.stderr)


if __name__ == "__main__":
    main()
