"""Heat that spreads over a plate: a stencil on slices, as NumPy, as arrays, and as a program.

Each step writes the inner points from their four neighbours, in place of the step before last. The program replays
two steps by one call.

    python docs/examples/heat.py --timeline heat.svg
"""

import sys
from typing import TypeAlias

import numpy as np

import weft
from comparison import best_of, command_line, compare

#: An array of NumPy or weft.
Values: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float32]] | weft.NDArray"
PAIRS = 50


def spread(old: Values, new: Values) -> None:
    """Write into `new`, (n, n), the next step after `old`, but for the edges."""
    new[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])


def two_steps(one: Values, other: Values) -> None:
    """Do two steps, from `one` to `other` and back."""
    spread(one, other)
    spread(other, one)


def plate(size: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    """Return a cold plate whose upper edge is hot."""
    heat = np.zeros((size, size), np.float32)
    heat[0] = 100
    return heat


def main() -> int:
    """Run the three versions; return 1 if they differ."""
    options = command_line(__doc__, 512, "points along an edge").parse_args()
    start = plate(options.size)
    program = weft.program(two_steps)

    def in_numpy() -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
        one, other = start.copy(), start.copy()
        for _ in range(PAIRS):
            two_steps(one, other)
        return one

    def in_weft() -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
        one, other = weft.asarray(start), weft.asarray(start)
        for _ in range(PAIRS):
            two_steps(one, other)
        return one.numpy()

    def in_program() -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
        one, other = weft.asarray(start), weft.asarray(start)
        for _ in range(PAIRS):
            program(one, other)
        return one.numpy()

    expected, found = compare(in_numpy, in_weft, options)
    seconds, replayed = best_of(in_program, options.repeats)
    print(f"{'as a program':18}{1e3 * seconds:8.1f} ms")
    (recorded,) = program.programs
    print(f"{'ops in a replay':18}{recorded.ops:8}")
    print(f"{'arena':18}{recorded.nbytes / 1e6:8.2f} MB, {recorded.eager_nbytes / 1e6:.2f} MB for all results")
    if expected.tobytes() == found.tobytes() == replayed.tobytes():
        print("the same heat, bit for bit")
        return 0
    print("the plates differ")
    return 1


if __name__ == "__main__":
    sys.exit(main())
