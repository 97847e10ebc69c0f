"""Arrays in files: ``.npz`` as NumPy writes it, never with pickles, and ``.safetensors``.

A file is written beside its place and moved there when it is complete. A file to read is taken for hostile: its
declared sizes are checked against the file before any allocation. Either every array comes back, or an error that names
the member.
"""

from __future__ import annotations

import errno
import math
import os
import re
import secrets
import shutil
import stat
import struct
import tokenize
import zipfile
import zlib
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.devices import place as put
from weft._call.operands import host_array
from weft._core import NDArray, wrap
from weft._engine.default import get_engine
from weft._engine.labels import cpu
from weft._registry.avals import SUPPORTED
from weft._registry.shapes import as_index
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    import numpy.typing as npt

    from weft._core import Engine

#: Errors of zipfile, zlib and NumPy for a damaged or hostile archive.
_DAMAGE = (
    ValueError,
    TypeError,
    OverflowError,
    EOFError,
    KeyError,
    IndexError,
    NotImplementedError,
    RuntimeError,  # zipfile: a member has a password
    RecursionError,
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
#: Deflate cannot make more than this many bytes from one.
_DEFLATE_RATIO = 1032
#: Without `max_bytes`: bytes that any file's arrays may have, and further bytes for each byte of the file.
_FREE_BYTES, _FREE_RATIO = 1 << 30, 32
_LOCAL_HEADER = 30  # bytes of a member's own header in a zip archive, without its name
_ENCRYPTED = 0x1
_LONGEST_NAME = (1 << 16) - 1 - len(".npy")  # a member's name has as many bytes as two can count
_LONGEST_HEADER = (1 << 16) + 10  # of an array, before its elements, in the first version of the format
_SAFETENSORS_DTYPES = frozenset(
    ["BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F16", "F32", "F64", "C64"]
)


def write(path: str | os.PathLike[str], arrays: Mapping[str, NDArray | npt.ArrayLike]) -> None:
    """Write arrays to a file, as `weft.save`."""
    place = Path(os.path.realpath(path))
    kind = _format(place)
    for name in arrays:
        if reason := _bad_name(name):
            raise ArgumentValueError(f"cannot save an array under the name {name!r}: it {reason}")
    ready: dict[str, npt.NDArray[Any]] = {}
    for name, array in arrays.items():
        if isinstance(array, NDArray):
            shown = array._now
            shown.wait_to_read()
            ready[name] = shown._storage()
        else:
            ready[name] = host_array(array, copy=None)
    with replacing(place) as draft:
        if kind == ".npz":
            _write_npz(draft, ready)
        else:
            _write_safetensors(draft, ready)


def read(path: str | os.PathLike[str], *, max_bytes: int | None, engine: Engine | None) -> dict[str, NDArray]:
    """Read all arrays of a file, as `weft.load`."""
    place = Path(path)
    kind = _format(place)
    if place.is_dir():  # which is mapped to memory, for one of the formats, with an error of its own
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(place))
    size = place.stat().st_size
    limit = max(_FREE_BYTES, _FREE_RATIO * size) if max_bytes is None else as_index(max_bytes, "max_bytes")
    found = _read_npz(place, size, limit) if kind == ".npz" else _read_safetensors(place, limit)
    owner = get_engine() if engine is None else engine
    return {name: put(wrap(array, owner, own=True), cpu()) for name, array in found.items()}


def _format(path: Path) -> str:
    kind = path.suffix.lower()
    if kind not in {".npz", ".safetensors"}:
        raise ArgumentValueError(f"{path.name!r}: the suffix must be .npz or .safetensors")
    if kind == ".safetensors":
        _safetensors("safetensors")
    return kind


def _bad_name(name: str) -> str | None:
    """Why no array may have this name: a reader that unpacks the file must not leave its folder."""
    if not name or name == "__metadata__":
        return "is reserved" if name else "is empty"
    if len(name.encode(errors="replace")) > _LONGEST_NAME:
        return f"has more than {_LONGEST_NAME} bytes"
    if "\0" in name or "\\" in name:
        return "has a NUL or a backslash"
    if name.startswith("/") or ".." in name.split("/") or re.match("[A-Za-z]:/", name):
        return "leads out of the file's folder"
    return None


@contextmanager
def replacing(place: Path) -> Generator[Path]:
    """Give the path of a draft, which takes its place if the block succeeds and vanishes if it does not.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from weft._ops.formats import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = pathlib.Path(folder, "x")
    ...     with replacing(place) as draft:
    ...         written = draft.write_text("whole")
    ...     place.read_text()
    'whole'
    """
    draft = place.with_name(f".{place.name[:64]}.{secrets.token_hex(8)}")
    # Not tempfile: its files are private to the user, and the umask decides a new file's mode.
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:  # the caller knows of no draft
        error.filename = os.fspath(place)
        raise
    try:
        if place.exists():
            shutil.copymode(place, draft)
        mode = stat.S_IMODE(draft.stat().st_mode)
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.chmod(mode)  # the package safetensors puts a private file of its own in the draft's place
        draft.replace(place)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def _write_npz(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


@contextmanager
def _damage(what: str, *more: type[Exception]) -> Generator[None]:
    """Raise ValueError in place of the errors that readers of a damaged file raise."""
    try:
        yield
    except Exception as error:
        sought = isinstance(error, OSError) and error.errno == errno.EINVAL  # zipfile, at an offset from the file
        if sought or isinstance(error, (*_DAMAGE, *more)):
            raise ArgumentValueError(f"{what}: {error}") from error
        raise


def _read_npz(path: Path, size: int, limit: int) -> dict[str, npt.NDArray[Any]]:
    with _damage(f"{path.name}: not an .npz file, or a damaged one"):
        archive = zipfile.ZipFile(path)
    with archive:
        members = archive.infolist()
        _check_members(path, members, archive.start_dir, min(size, archive.start_dir), limit)
        found: dict[str, npt.NDArray[Any]] = {}
        total = 0
        for info in members:
            with _damage(f"{path.name}: member {info.filename!r}"), archive.open(info) as member:
                array = found[info.filename.removesuffix(".npy")] = _read_npy(member, info.file_size, total, limit)
                total += array.nbytes
    return found


def _check_members(path: Path, members: list[zipfile.ZipInfo], end: int, size: int, limit: int) -> None:
    """Refuse an archive by its directory, before any member is read."""
    seen: set[str] = set()
    total = 0
    for info in members:
        name = info.orig_filename
        reason = _bad_name(name.removesuffix(".npy")) if name.endswith(".npy") else "does not end in .npy"
        if reason is None and name in seen:
            reason = "is there twice"
        seen.add(name)
        total += max(info.file_size - _LONGEST_HEADER, 0)  # at least
        if reason is None:
            reason = _bad_size(info, size) if 0 <= info.header_offset <= end else "starts outside of the file"
        if reason is None and total > limit:
            reason = _too_many(total, limit)
        if reason is not None:
            raise ArgumentValueError(f"{path.name}: member {name!r} {reason}")
    # Members that share bytes let a small archive declare a huge content at an honest ratio.
    ordered = sorted(members, key=lambda info: info.header_offset)
    for info, following in zip(ordered, [*(after.header_offset for after in ordered[1:]), end], strict=False):
        if info.header_offset + _LOCAL_HEADER + len(info.orig_filename) + info.compress_size > following:
            raise ArgumentValueError(f"{path.name}: member {info.orig_filename!r} overlaps what follows it")


def _too_many(total: int, limit: int) -> str:
    return f"brings the arrays to {total} bytes, more than max_bytes={limit}"


def _bad_size(info: zipfile.ZipInfo, size: int) -> str | None:
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        return f"is compressed by an unknown method, {info.compress_type}"
    if info.compress_size > size:
        return f"declares {info.compress_size} bytes, and the file has {size}"
    if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
        return f"declares {info.file_size} bytes, and {info.compress_size} are stored"
    if info.file_size > _DEFLATE_RATIO * (info.compress_size + 1):
        return f"declares {info.file_size} bytes, which {info.compress_size} cannot expand to"
    return None


def _read_npy(file: Any, declared: int, before: int, limit: int) -> npt.NDArray[Any]:
    """Read an array of a member of the declared bytes, after arrays of `before` bytes; any of `_DAMAGE` if it is not one."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise ArgumentValueError(f"version {version} of the .npy format is for dtypes that arrays cannot have")
    native = _supported(dtype)
    if any(type(length) is not int or length < 0 for length in shape):
        raise ArgumentValueError(f"the shape is {shape}")
    count, there = math.prod(shape), declared - file.tell()
    if count * dtype.itemsize != there:
        raise ArgumentValueError(f"{dtype} {shape} takes {count * dtype.itemsize} bytes, and {there} are there")
    if before + there > limit:
        raise ArgumentValueError(_too_many(before + there, limit))
    np.broadcast_to(np.empty(()), shape)  # a shape with a 0 fits any number of bytes: NumPy checks it
    file.seek(0)
    found: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    if file.read(1):  # at the end zipfile compares the checksum, too
        raise ArgumentValueError("there is more than was declared")
    return _sound(found).astype(native, copy=False)


def _sound(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `array` if its bools are 0 or 1, as NumPy and compilers assume."""
    if array.dtype == np.bool_ and array.size and int(array.view(np.uint8).max()) > 1:
        raise ArgumentValueError("a bool that is neither 0 nor 1")
    return array


def _supported(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """`dtype` in this machine's byte order; ValueError if no array has it."""
    if dtype.hasobject:
        raise ArgumentValueError(f"dtype {dtype} holds Python objects, which are never unpickled")
    native = SUPPORTED.get(dtype.newbyteorder("=")) if dtype.kind in "biufc" else None
    if native is None:
        raise ArgumentValueError(f"no array has the dtype {dtype}")
    return native


def _safetensors(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            "files named *.safetensors need the package safetensors: install weft[safetensors]"
        ) from error


def _write_safetensors(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    writer = _safetensors("safetensors.numpy")
    for name, array in arrays.items():
        if array.dtype == np.complex128:
            raise ArgumentValueError(f"cannot save {name!r}: .safetensors has no complex128, .npz has")
    try:
        writer.save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, os.fspath(path))
    except _safetensors("safetensors").SafetensorError as error:
        raise ArgumentValueError(f"cannot write .safetensors: {error}") from error


def _read_safetensors(path: Path, limit: int) -> dict[str, npt.NDArray[Any]]:
    package = _safetensors("safetensors")
    found: dict[str, npt.NDArray[Any]] = {}
    total = 0
    with _damage(f"{path.name}: not a .safetensors file, or a damaged one", package.SafetensorError):
        file = package.safe_open(os.fspath(path), framework="numpy")
    with file:
        for name in file.keys():  # noqa: SIM118 - it has no other iterator
            with _damage(f"{path.name}: member {name!r}", package.SafetensorError):
                if reason := _bad_name(name):
                    raise ArgumentValueError(reason)
                kind = file.get_slice(name).get_dtype()
                if kind not in _SAFETENSORS_DTYPES:
                    raise ArgumentValueError(f"no array has the dtype {kind}")
                found[name] = array = _sound(file.get_tensor(name))
                total += array.nbytes
                if total > limit:
                    raise ArgumentValueError(_too_many(total, limit))
    return found
