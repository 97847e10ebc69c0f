"""State files: arrays in an npz, their descriptions in a JSON, both in a zip."""

from __future__ import annotations

import errno
import io
import json
import os
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.errors import ArgumentTypeError, ArgumentValueError, StateFileError

if TYPE_CHECKING:
    import numpy.typing as npt

_ARRAYS, _HEAD = "tensors.npz", "states.json"
_SINGA = {"tensor_dict.npz", "states_attr.json"}
_FORMAT, _VERSION = "weft model states", 1
#: What reading a zip or an npz that is cut short, or was changed, raises.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, OSError, NotImplementedError)

#: Suffixes of formats that a state file has not, and what writes and reads them.
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
    """Raise ArgumentValueError for a file whose suffix is that of another format."""
    other = _OTHERS.get(Path(path).suffix)
    if other is not None:
        raise ArgumentValueError(
            f"save_states writes a zip, and {path} has the suffix of another format: name it .zip; a {Path(path).suffix} file is "
            f"written by {other[0]}, without the optimizer's state"
        )


def write(path: str | os.PathLike[str], groups: dict[str, Arrays], plain: dict[str, dict[str, Any]]) -> None:
    """Write groups of arrays, and groups of what JSON holds, to a file, which appears when it is whole.

    Raises
    ------
    ArgumentTypeError
        If JSON does not hold a value.
    """
    keys = [(group, name) for group, arrays in groups.items() for name in arrays]
    try:
        head = json.dumps({"format": _FORMAT, "version": _VERSION, "arrays": keys, "plain": plain}, indent=1)
    except TypeError as error:
        raise ArgumentTypeError(
            f"a state file holds arrays, numbers, strings, lists and dicts of them: {error}"
        ) from error
    # By number in the npz: parameters may have names that no file has.
    arrays = io.BytesIO()
    np.savez(arrays, **{str(at): groups[group][name] for at, (group, name) in enumerate(keys)})  # type: ignore[arg-type] # by name
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to save states in", str(target.parent))
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_HEAD, head)
            archive.writestr(_ARRAYS, arrays.getvalue())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Arrays], dict[str, dict[str, Any]]]:
    """Return what `write` has written.

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
                if set(archive.namelist()) >= _SINGA:
                    wrong = (
                        "was saved by SINGA, without an optimizer's state: take over its arrays by "
                        "net.set_states(weft.model.singa_states(path))"
                    )
                else:
                    head = json.loads(archive.read(_HEAD))
                    if (head["format"], head["version"]) == (_FORMAT, _VERSION):
                        return _groups(archive, head["arrays"]), head["plain"]
                    wrong = f"is of another version, {head['format']} {head['version']}"
        except _BROKEN as error:
            other = _OTHERS.get(Path(path).suffix)
            hint = "" if other is None else f". A {Path(path).suffix} file is read by {other[1]}"
            raise StateFileError(
                f"{path} is no state file of a model, or not the whole of one: {error}{hint}"
            ) from error
    raise StateFileError(f"{path} {wrong}")


def _groups(archive: zipfile.ZipFile, keys: list[tuple[str, str]]) -> dict[str, Arrays]:
    groups: dict[str, Arrays] = {}
    with np.load(io.BytesIO(archive.read(_ARRAYS)), allow_pickle=False) as loaded:
        for at, (group, name) in enumerate(keys):
            groups.setdefault(group, {})[name] = loaded[str(at)]
    return groups


def read_singa(path: str | os.PathLike[str]) -> Arrays:
    """Return the arrays of a model that SINGA saved, by name; StateFileError if it is no such file."""
    with Path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                attributes = json.loads(archive.read("states_attr.json"))
                with np.load(io.BytesIO(archive.read("tensor_dict.npz")), allow_pickle=False) as loaded:
                    return {name: loaded[name] for name in loaded.files if attributes[name]["state_type"] == 0}
        except _BROKEN as error:
            raise StateFileError(f"{path} is no state file of SINGA's: {error}") from error
