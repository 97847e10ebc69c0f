"""State files: arrays in an npz, their descriptions in a JSON, both in a zip. They are SINGA's, which reads them, and more.

SINGA looks at arrays of two kinds, the model's and auxiliary ones. Those of a third kind, which optimizers keep, it passes over, and
likewise the one description without an array: it has all other values.
"""

from __future__ import annotations

import errno
import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._ops.formats import replacing
from weft.errors import ArgumentTypeError, ArgumentValueError, StateFileError

if TYPE_CHECKING:
    import numpy.typing as npt

_ARRAYS, _HEAD = "tensor_dict.npz", "states_attr.json"
_FORMAT, _VERSION = "weft model states", 2
#: Kinds of arrays by SINGA's numbers; the last one is ours.
_MODEL, _AUX, _OTHER = 0, 1, 2
#: SINGA's numbers of dtypes.
_DTYPES = {"float32": 0, "float16": 1, "int32": 2, "int8": 3, "float64": 4, "uint8": 5}
#: The errors of reading a zip or an npz that is cut short, or was changed.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, OSError, NotImplementedError)

#: Suffixes of formats that a state file has not, and the functions that write and read them.
_OTHERS = {
    **dict.fromkeys(
        (".safetensors", ".npz"), ("weft.save(path, **net.get_states())", "net.set_states(weft.load(path))")
    ),
    **dict.fromkeys(
        (".pt", ".pth", ".bin", ".ckpt"),
        ("torch, from net.get_states()", "net.set_states(weft.model.torch_states(net, torch.load(path)))"),
    ),
}

Arrays = dict[str, "npt.NDArray[Any]"]


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Raise ArgumentValueError for a file with the suffix of another format."""
    other = _OTHERS.get(Path(path).suffix)
    if other is not None:
        raise ArgumentValueError(
            f"save_states writes a zip, and {path} has the suffix of another format: name it .zip; a {Path(path).suffix} file is "
            f"written by {other[0]}, without the optimizer's state"
        )


def write(path: str | os.PathLike[str], groups: dict[str, Arrays], plain: dict[str, dict[str, Any]]) -> None:
    """Write groups of arrays, and groups of JSON's values, to a file, which appears when it is whole.

    Raises
    ------
    ArgumentTypeError
        If JSON does not hold a value.
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    head: dict[str, Any] = {}
    for group, named in groups.items():
        for name, array in named.items():
            key = name if group in {"model", "aux"} and name not in arrays else f"{group}: {name}"
            kind = {"model": _MODEL, "aux": _AUX}.get(group, _OTHER)
            arrays[key] = array
            head[key] = {
                "state_type": kind,
                "shape": list(array.shape),
                "dtype": _DTYPES.get(array.dtype.name),
                "group": group,
                "name": name,
            }
    head[_FORMAT] = {"version": _VERSION, "plain": plain}
    try:
        text = json.dumps(head, indent=1)
    except TypeError as error:
        raise ArgumentTypeError(
            f"a state file holds arrays, numbers, strings, lists and dicts of them: {error}"
        ) from error
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to save states in", str(target.parent))
    with replacing(target) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_HEAD, text)
        archive.writestr(_ARRAYS, _npz(arrays))


def _npz(arrays: Arrays) -> bytes:
    """Return the bytes that `numpy.savez` would write, also for an array of the name "file", which it does not take."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
    return held.getvalue()


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Arrays], dict[str, dict[str, Any]]]:
    """Return the groups of a file, which `write` has written, or SINGA.

    Raises
    ------
    StateFileError
        If it is no such file, is cut short, or comes from elsewhere.
    FileNotFoundError
        If there is none.
    """
    with Path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                attributes = json.loads(archive.read(_HEAD))
                own = attributes.pop(_FORMAT, {"version": _VERSION, "plain": {"aux": {}, "optimizers": {}}})
                if own["version"] == _VERSION:
                    return _groups(archive, attributes), own["plain"]
        except _BROKEN as error:
            other = _OTHERS.get(Path(path).suffix)
            hint = "" if other is None else f". A {Path(path).suffix} file is read by {other[1]}"
            raise StateFileError(
                f"{path} is no state file of a model, or not the whole of one: {error}{hint}"
            ) from error
    raise StateFileError(f"{path} is of another version, {_FORMAT} {own['version']}")


def _groups(archive: zipfile.ZipFile, attributes: dict[str, dict[str, Any]]) -> dict[str, Arrays]:
    groups: dict[str, Arrays] = {}
    with np.load(io.BytesIO(archive.read(_ARRAYS)), allow_pickle=False) as loaded:
        for key in loaded.files:
            found = attributes[key]
            group = found.get("group", "model" if found["state_type"] == _MODEL else "aux")
            groups.setdefault(group, {})[found.get("name", key)] = loaded[key]
    return groups
