"""An image pipeline: photographs decoded, blurred at several scales, and their edges put on one sheet.

The functions are plain NumPy and SciPy; their annotations say what each one reads and fills. `contact_sheet`
calls them in the order in which one thinks. As tasks, one photograph is decoded while the other is blurred,
and all scales are blurred side by side.

    python docs/examples/photographs.py --sheet sheet.png

The photographs come with scikit-learn.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sklearn.datasets
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter, sobel

import weft
from comparison import command_line, compare

Array = NDArray[np.float32]

PHOTOGRAPHS = [Path(sklearn.datasets.__file__).parent / "images" / name for name in ("china.jpg", "flower.jpg")]
SCALES = (1, 2, 4, 8)


def decode(path: Path, colours: weft.Overwrite[Array]) -> None:
    """Decode a JPEG file to the size of `colours`, (height, width, 3)."""
    height, width, _ = colours.shape
    with Image.open(path) as photograph:
        colours[...] = np.asarray(photograph.resize((width, height)))


def to_grey(colours: weft.Read[Array], grey: weft.Overwrite[Array]) -> None:
    """Write the brightness, as ITU-R BT.601 weighs the colours, to `grey`, (height, width)."""
    np.matmul(colours, np.array([0.299, 0.587, 0.114], np.float32), out=grey)


def find_edges(grey: weft.Read[Array], scale: float, edges: weft.Overwrite[Array]) -> None:
    """Write how steep the brightness is at a scale, in pixels, to `edges`: 0 to 255, (height, width)."""
    smooth = gaussian_filter(grey, scale)
    np.hypot(sobel(smooth, axis=0), sobel(smooth, axis=1), out=edges)
    np.multiply(edges, 255 / edges.max(), out=edges)


def place(picture: weft.Read[Array], sheet: weft.Mutate[Array], row: int, column: int) -> None:
    """Copy a picture, (height, width), to its place on the sheet."""
    height, width = picture.shape
    sheet[row * height : (row + 1) * height, column * width : (column + 1) * width] = picture


class Steps(NamedTuple):
    """The functions above, or tasks made of them."""

    decode: Callable[..., object]
    to_grey: Callable[..., object]
    find_edges: Callable[..., object]
    place: Callable[..., object]


FUNCTIONS = Steps(decode, to_grey, find_edges, place)
TASKS = Steps(*map(weft.task, FUNCTIONS))


def contact_sheet(steps: Steps, width: int) -> Array:
    """Return a sheet of a row for each photograph: as it is, and its edges at each of the scales."""
    height = width * 2 // 3

    def blank(*shape: int) -> Array:
        return np.zeros(shape, np.float32)

    sheet = blank(len(PHOTOGRAPHS) * height, (1 + len(SCALES)) * width)
    for row, path in enumerate(PHOTOGRAPHS):
        colours, grey = blank(height, width, 3), blank(height, width)
        steps.decode(path, colours)
        steps.to_grey(colours, grey)
        steps.place(grey, sheet, row, 0)
        for column, scale in enumerate(SCALES, 1):
            edges = blank(height, width)
            steps.find_edges(grey, scale, edges)
            steps.place(edges, sheet, row, column)
    return sheet


def contact_sheet_and_wait(width: int) -> Array:
    """Return what `contact_sheet` gives with tasks, when it is there."""
    sheet = contact_sheet(TASKS, width)
    weft.wait(sheet)
    return sheet


def main() -> None:
    """Make the sheet both ways, and compare."""
    parser = command_line(__doc__, size=640, unit="pixels across a photograph")
    parser.add_argument("--sheet", type=Path, help="save the sheet here, at half its size")
    options = parser.parse_args()
    serially = partial(contact_sheet, FUNCTIONS, options.size)
    expected, found = compare(serially, partial(contact_sheet_and_wait, options.size), options)
    print("sheet             ", "bit for bit the same" if np.array_equal(found, expected) else "DIFFERENT")
    if options.sheet:
        Image.fromarray(found.astype(np.uint8)).reduce(2).save(options.sheet)


if __name__ == "__main__":
    main()
