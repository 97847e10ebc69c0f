"""k-means: ten starts on handwritten digits, written as two loops, run side by side.

The rounds of one start follow each other, as each moves the centres that the last one left. The starts have
nothing to do with each other. Nobody says so: `move_centres` declares what it reads and what it mutates.

    python docs/examples/kmeans.py

The digits come with scikit-learn: 1,797 images of 8 by 8 pixels.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import weft
from comparison import command_line, compare

Array = NDArray[np.float64]

CLUSTERS = 10
ROUNDS = 20


class Start(NamedTuple):
    """Centres, (CLUSTERS, pixels), and the sum of squared distances to the nearest one, ()."""

    centres: Array
    inertia: Array


def move_centres(images: weft.Read[Array], centres: weft.Mutate[Array], inertia: weft.Overwrite[Array]) -> None:
    """Move each of the centres to the mean of the images that are nearest to it."""
    scores = images @ centres.T
    scores *= -2
    scores += np.einsum("ij,ij->i", centres, centres)  # squared distances, less each image's own square
    nearest = np.eye(CLUSTERS)[scores.argmin(axis=1)]
    inertia[...] = scores.min(axis=1).sum() + np.vdot(images, images)
    sizes = np.maximum(nearest.sum(axis=0), 1)
    np.divide(nearest.T @ images, sizes[:, None], out=centres)


def keep_better(best: weft.Mutate[Array], centres: weft.Read[Array], inertia: weft.Read[Array]) -> None:
    """Replace `best`, which holds centres and, in its last row, their inertia, by a better start."""
    if inertia < best[-1, 0]:
        best[:-1] = centres
        best[-1] = inertia


def cluster(
    images: Array,
    starts: int,
    move_centres: Callable[[Array, Array, Array], object],
    keep_better: Callable[[Array, Array, Array], object],
) -> Array:
    """Return the best centres of several starts, and, in one more row, their inertia.

    The two functions are the ones above, or tasks made of them; of tasks, the result is still to be waited for.
    """
    best = np.full((CLUSTERS + 1, images.shape[1]), np.inf)
    tries = []
    for seed in range(starts):
        rows = np.random.default_rng(seed).choice(len(images), CLUSTERS, replace=False)
        tries.append(Start(images[rows], np.empty(())))
    for _ in range(ROUNDS):
        for start in tries:
            move_centres(images, start.centres, start.inertia)
    for start in tries:
        keep_better(best, start.centres, start.inertia)
    return best


def cluster_and_wait(images: Array, starts: int) -> Array:
    """Return what `cluster` gives with tasks, when it is there."""
    best = cluster(images, starts, weft.task(move_centres), weft.task(keep_better))
    weft.wait(best)
    return best


def main() -> None:
    """Cluster both ways, and compare."""
    options = command_line(__doc__, size=10, unit="starts").parse_args()
    digits = load_digits()
    images = digits.data
    serially = partial(cluster, images, options.size, move_centres, keep_better)
    with threadpool_limits(limits=1, user_api="blas"):  # or two matrix products at the same time share out four threads
        expected, found = compare(serially, partial(cluster_and_wait, images, options.size), options)

    nearest = ((images[:, None] - found[:-1]) ** 2).sum(axis=2).argmin(axis=1)
    commonest = [np.bincount(digits.target[nearest == k], minlength=10).max() for k in range(CLUSTERS)]
    print(f"{'inertia':18}{found[-1, 0]:8.0f}")
    print(f"{'purity':18}{sum(commonest) / len(images):8.2f}")
    print("centres           ", "bit for bit the same" if np.array_equal(found, expected) else "DIFFERENT")


if __name__ == "__main__":
    main()
