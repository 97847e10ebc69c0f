"""Arrays in files: `save` and `load`. The work is in `formats`, imported at the first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    import os
    from typing import Never

    import numpy.typing as npt

    from weft._core import Engine, NDArray

__all__ = ["load", "save"]


def save(path: str | os.PathLike[str], /, *unnamed: Never, **arrays: NDArray | npt.ArrayLike) -> None:
    """Write arrays to a file; waits for them.

    Parameters
    ----------
    path
        The path, with the format's suffix: ``.npz`` or ``.safetensors`` (needs ``weft[safetensors]``).
    **arrays
        The arrays, by name.

    Raises
    ------
    TypeError
        If an array has no name.
    ValueError
        If the suffix is another one, or a name or dtype has no place in such a file.

    Notes
    -----
    The file appears whole or not at all: a `save` that fails leaves the old file. Arrays in Fortran order stay so in
    ``.npz`` and come back in C order from ``.safetensors``, which has no ``complex128``.

    Examples
    --------
    >>> import os, tempfile, weft
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     weft.save(os.path.join(folder, "model.npz"), w=weft.ones((2, 2)), b=weft.zeros(2))
    ...     sorted(weft.load(os.path.join(folder, "model.npz")))
    ['b', 'w']
    """
    if unnamed:
        raise ArgumentTypeError(
            f"save() was given {len(unnamed)} array{'s' * (len(unnamed) > 1)} without a name: write weft.save(path, x=x, y=y)"
        )
    from weft._ops.formats import write  # noqa: PLC0415 - zipfile and its like would slow down `import weft`

    write(path, arrays)


def load(
    path: str | os.PathLike[str], /, *, max_bytes: int | None = None, engine: Engine | None = None
) -> dict[str, NDArray]:
    """Read all arrays of a file.

    Parameters
    ----------
    path
        A file with the suffix ``.npz`` or ``.safetensors`` (needs ``weft[safetensors]``).
    max_bytes
        Bytes that the arrays may have together; by default 1 GiB or 32 times the file's size, whichever is more.
    engine
        The arrays' engine; the default engine if None.

    Returns
    -------
    dict of str to NDArray
        The arrays, by name.

    Raises
    ------
    ValueError
        If the file is damaged, is not of its suffix's format, or holds values that arrays cannot: the message names the
        member.

    Examples
    --------
    >>> import os, tempfile, weft
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     weft.save(os.path.join(folder, "x.npz"), x=weft.asarray([1, 2, 3]))
    ...     weft.load(os.path.join(folder, "x.npz"))["x"]
    NDArray([1, 2, 3])
    """
    from weft._ops.formats import read  # noqa: PLC0415 - as above

    return read(path, max_bytes=max_bytes, engine=engine)
