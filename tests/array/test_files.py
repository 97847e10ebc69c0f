"""Arrays come back from files as they went in, and no file does harm."""

from __future__ import annotations

import importlib.util
import io
import os
import stat
import struct
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import weft

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]
#: safetensors is an extra; what needs it runs where it is installed, as in CI.
HAS_SAFETENSORS = importlib.util.find_spec("safetensors") is not None
FORMATS = [".npz", ".safetensors"] if HAS_SAFETENSORS else [".npz"]


def inside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def bits_equal(ours: weft.NDArray, expected: np.ndarray[Any, Any]) -> None:
    assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype)
    assert np.asarray(ours).tobytes() == expected.tobytes()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_saved_is_loaded(tmp_path: Path, suffix: str, data: st.DataObject) -> None:
    dtypes = [dtype for dtype in DTYPES if suffix == ".npz" or dtype != "complex128"]
    array = data.draw(
        hnp.arrays(
            st.sampled_from(dtypes).map(np.dtype), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
        )
    )
    order = data.draw(st.sampled_from("CF"))
    x = weft.asarray(array)
    path = tmp_path / f"x{suffix}"
    weft.save(path, x=x, turned=weft.permute_dims(x, range(x.ndim)[::-1]), host=np.asarray(array, order=order))
    found = weft.load(path)
    assert list(found) == ["x", "turned", "host"] or suffix == ".safetensors"
    bits_equal(found["x"], array)
    bits_equal(found["turned"], np.ascontiguousarray(array.T).reshape(array.T.shape))
    bits_equal(found["host"], array)


def test_fortran_order_stays(tmp_path: Path) -> None:
    host = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    weft.save(tmp_path / "x.npz", x=host, y=weft.asarray(np.arange(6).reshape(3, 2)).T)
    found = weft.load(tmp_path / "x.npz")
    assert found["x"].strides == (8, 16)
    assert found["y"].strides == (8, 16)


def test_numpy_reads_what_is_saved_and_the_other_way_round(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    weft.save(tmp_path / "ours.npz", x=weft.asarray(x), **{"layer/path": weft.asarray(1.5)})
    with np.load(tmp_path / "ours.npz", allow_pickle=False) as theirs:
        np.testing.assert_array_equal(theirs["x"], x, strict=True)
        assert theirs["layer/path"] == 1.5
    np.savez_compressed(tmp_path / "theirs.npz", x=x, big_endian=x.astype(">f8"), zeros=np.zeros(1 << 20))
    found = weft.load(tmp_path / "theirs.npz")
    bits_equal(found["x"], x)
    bits_equal(found["big_endian"], x.astype(float))
    bits_equal(found["zeros"], np.zeros(1 << 20))


@pytest.mark.parametrize("suffix", FORMATS)
def test_nothing_and_odd_names(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    weft.save(path)
    assert weft.load(path) == {}
    names = ["path", "file", "self", "allow_pickle", "a.b", "w:0", "\u00fcber", "..dots..", "x.npy"]
    weft.save(str(path), **{name: weft.asarray(i) for i, name in enumerate(names)})
    assert {name: int(np.asarray(x)) for name, x in weft.load(str(path)).items()} == dict(
        map(reversed, enumerate(names))
    )


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a/../../x", "a\\b", "C:/x", "a\0b", "__metadata__"])
def test_a_bad_name_is_not_saved(tmp_path: Path, suffix: str, name: str) -> None:
    with pytest.raises(ValueError, match="cannot save an array under the name"):
        weft.save(tmp_path / f"x{suffix}", **{name: weft.zeros(3)})
    assert inside(tmp_path) == []


def test_arrays_without_a_name_are_refused(tmp_path: Path) -> None:
    place: Any = tmp_path / "a.npz"
    with pytest.raises(TypeError, match=r"1 array without a name.*x=x"):
        weft.save(place, weft.ones(2))  # type: ignore[arg-type] # what is wrong
    assert list(tmp_path.iterdir()) == []


def test_save_waits_and_raises_what_made_an_array_fail(tmp_path: Path) -> None:
    @weft.ops.register_op("test_files_fails", infer=weft.ops.like_first, level=0)
    def fails(out: object, x: object) -> None:  # noqa: ARG001
        raise ArithmeticError("of the op")

    path = tmp_path / "x.npz"
    weft.save(path, x=weft.asarray(1))
    with pytest.raises(ArithmeticError, match="of the op"):
        weft.save(path, x=fails(weft.zeros(3)))
    bits_equal(weft.load(path)["x"], np.asarray(1))
    assert inside(tmp_path) == ["x.npz"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_failed_save_leaves_the_old_file(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"x{suffix}"
    weft.save(path, x=weft.asarray(1))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        weft.save(path, x=weft.asarray(2))
    bits_equal(weft.load(path)["x"], np.asarray(1))
    assert inside(tmp_path) == [path.name]


def test_what_no_array_holds_is_not_saved(tmp_path: Path) -> None:
    for wrong in (np.array([object()]), np.array(["text"]), np.zeros(2, np.longdouble), [{}]):
        with pytest.raises(TypeError):
            weft.save(tmp_path / "x.npz", x=wrong)
    assert inside(tmp_path) == []


@pytest.mark.parametrize("call", [lambda path: weft.save(path, x=weft.zeros(2)), weft.load])
@pytest.mark.parametrize("name", ["x", "x.npy", "x.pickle", ".npz"])
def test_an_unknown_suffix_is_refused(tmp_path: Path, call: Callable[[Path], object], name: str) -> None:
    with pytest.raises(ValueError, match="suffix"):
        call(tmp_path / name)


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
@pytest.mark.parametrize("suffix", FORMATS)
def test_the_mode_is_that_of_any_new_file_or_of_the_old_one(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    weft.save(path, x=weft.zeros(1))
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o640)
    weft.save(path, x=weft.ones(1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    link = tmp_path / f"link{suffix}"
    link.symlink_to(path)
    weft.save(link, x=weft.zeros(2))
    assert link.is_symlink()
    assert weft.load(path)["x"].shape == (2,)


def test_a_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        weft.load(tmp_path / "x.npz")
    with pytest.raises(FileNotFoundError):
        weft.save(tmp_path / "none" / "x.npz", x=weft.zeros(1))


def test_without_safetensors_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match=r"weft\[safetensors\]"):
        weft.save(tmp_path / "x.safetensors", x=weft.zeros(1))
    with pytest.raises(ImportError, match=r"weft\[safetensors\]"):
        weft.load(tmp_path / "x.safetensors")


def test_an_engine_may_be_given(tmp_path: Path) -> None:
    weft.save(tmp_path / "x.npz", x=weft.zeros(1))
    with weft.Engine(workers=1) as engine:
        assert weft.load(tmp_path / "x.npz", engine=engine)["x"].engine is engine


# hostile files


def npy(array: np.ndarray[Any, Any], **changes: Any) -> bytes:
    """Bytes of an .npy member, its header changed."""
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | changes
    return npy_of(repr(header).encode(), array.tobytes())


def npy_of(header: bytes, data: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    width = "<H" if version == (1, 0) else "<I"
    return b"\x93NUMPY" + bytes(version) + struct.pack(width, len(header) + 1) + header + b"\n" + data


def archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}]), allow_pickle=True)
    return buffer.getvalue()


def declaring(data: bytes, *, compressed: int | None = None, size: int | None = None) -> bytes:
    """Change what the directory's first entry declares."""
    at = data.index(b"PK\x01\x02")
    changed = bytearray(data)
    if compressed is not None:
        struct.pack_into("<I", changed, at + 20, compressed)
    if size is not None:
        struct.pack_into("<I", changed, at + 24, size)
    return bytes(changed)


X = np.arange(3.0)
ONE = archive(("x.npy", npy(X)))
HOSTILE = {
    "object dtype": (archive(("x.npy", pickled())), "x.npy.*Python objects"),
    "object field": (archive(("x.npy", npy(X, descr=[("a", "|O")]))), "x.npy.*Python objects"),
    "text": (archive(("x.npy", npy(X, descr="<U2"))), "x.npy.*dtype <U2"),
    "dates": (archive(("x.npy", npy(X, descr="<M8[s]"))), "x.npy.*dtype"),
    "structure": (archive(("x.npy", npy(X, descr=[("a", "<f8")]))), "x.npy.*dtype"),
    "no dtype": (archive(("x.npy", npy(X, descr="nonsense"))), "x.npy"),
    "dtype of the wrong type": (archive(("x.npy", npy(X, descr=7))), "x.npy"),
    "shape larger than the file": (archive(("x.npy", npy(X, shape=(1 << 50,)))), "x.npy.*bytes"),
    "shape that overflows": (archive(("x.npy", npy(X, shape=(1 << 40, 1 << 40)))), "x.npy.*bytes"),
    "shape smaller than the data": (archive(("x.npy", npy(X, shape=(2,)))), "x.npy.*16 bytes, and 24"),
    "empty and absurd": (archive(("x.npy", npy(np.zeros(0), shape=(0, 1 << 62, 1 << 62)))), "x.npy"),
    "too many dimensions": (archive(("x.npy", npy(np.zeros(1), shape=(1,) * 100))), "x.npy"),
    "negative shape": (archive(("x.npy", npy(X, shape=(-3,)))), "x.npy"),
    "negative shape, twice": (archive(("x.npy", npy(X, shape=(-3, -1)))), "x.npy"),
    "shape of bools": (archive(("x.npy", npy(np.zeros(1), shape=(True,)))), "x.npy"),
    "shape of text": (archive(("x.npy", npy(X, shape=("3",)))), "x.npy"),
    "header is code": (archive(("x.npy", npy_of(b"__import__('os').abort()", b""))), "x.npy"),
    "header is deep": (archive(("x.npy", npy_of(b"(" * 9000, b""))), "x.npy"),
    "header is deep minus": (archive(("x.npy", npy_of(b"-" * 9000 + b"1", b""))), "x.npy"),
    "header is long": (archive(("x.npy", npy_of(b" " * 60000, b""))), "x.npy"),
    "header is cut": (archive(("x.npy", npy(X)[:30])), "x.npy"),
    "header lacks a key": (archive(("x.npy", npy_of(b"{'descr': '<f8'}", b""))), "x.npy"),
    "header declares more than there is": (archive(("x.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}")), "x.npy"),
    "no magic": (archive(("x.npy", b"something else")), "x.npy"),
    "empty member": (archive(("x.npy", b"")), "x.npy"),
    "unknown version": (archive(("x.npy", npy_of(b"{}", b"", (9, 0)))), "x.npy.*version"),
    "impossible bool": (archive(("x.npy", npy(np.array([0, 7], np.uint8), descr="|b1"))), "x.npy.*bool"),
    "another kind of member": (archive(("x.npy", npy(X)), ("run.sh", b"#!")), r"run\.sh"),
    "folder": (archive(("x/", b"")), "x/"),
    "twice": (archive(("x.npy", npy(X)), ("y.npy", npy(X))).replace(b"y.npy", b"x.npy"), r"x\.npy.*twice"),
    "up": (archive(("../x.npy", npy(X))), r"\.\./x\.npy"),
    "root": (archive(("/x.npy", npy(X))), r"/x\.npy"),
    "up from inside": (archive(("a/../../x.npy", npy(X))), r"a/\.\./\.\./x\.npy"),
    "backslash": (archive(("..!x.npy", npy(X))).replace(b"..!x", b"..\\x"), "backslash"),
    "drive": (archive(("C:/x.npy", npy(X))), "C:/x"),
    "NUL": (archive(("a!x.npy", npy(X))).replace(b"a!x", b"a\0x"), "NUL"),
    "nameless": (archive((".npy", npy(X))), "empty"),
    "cut": (ONE[:-10], "damaged"),
    "cut early": (ONE[: len(ONE) // 2], "damaged"),
    "empty": (b"", "damaged"),
    "no archive": (b"no archive at all" * 10, "damaged"),
    "a pickle": (b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00]\x94.", "damaged"),
    "changed data": (ONE.replace(X.tobytes(), X[::-1].tobytes()), "x.npy.*CRC"),
    "declares more, stored": (declaring(ONE, size=1 << 30), "x.npy.*stored"),
    "declares more than the file": (declaring(ONE, size=1 << 30, compressed=1 << 30), "x.npy.*the file has"),
    "declares less": (declaring(ONE, size=100, compressed=100), "x.npy"),
    "bomb that lies": (
        declaring(archive(("x.npy", npy(X)), method=zipfile.ZIP_DEFLATED), size=1 << 31),
        "x.npy.*cannot expand",
    ),
    "bomb that understates": (
        declaring(archive(("x.npy", npy(np.zeros(1 << 20))), method=zipfile.ZIP_DEFLATED), size=1000),
        "x.npy",
    ),
    "unknown compression": (archive(("x.npy", npy(X)), method=zipfile.ZIP_BZIP2), "x.npy.*method"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_npz_is_refused_by_name(tmp_path: Path, case: str) -> None:
    data, message = HOSTILE[case]
    path = tmp_path / "hostile.npz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        weft.load(path)


def test_the_unchanged_twin_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(ONE)
    bits_equal(weft.load(tmp_path / "x.npz")["x"], X)


def test_members_that_share_bytes_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("x.npy", npy(X))
        twin = zipfile.ZipInfo("y.npy")
        first = file.infolist()[0]
        for field in ("header_offset", "CRC", "compress_size", "file_size"):
            setattr(twin, field, getattr(first, field))
        file.filelist.append(twin)
        file._didModify = True
    (tmp_path / "x.npz").write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match=r"overlaps"):
        weft.load(tmp_path / "x.npz")


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    data = bytearray(ONE)
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"x\.npy.*encrypted"):
        weft.load(tmp_path / "x.npz")


def test_a_limit_on_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.zeros(1000), b=np.zeros(1000))
    assert set(weft.load(path, max_bytes=20_000)) == {"a", "b"}
    with pytest.raises(ValueError, match=r"b\.npy.*max_bytes=10000"):
        weft.load(path, max_bytes=10_000)


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_limit_counts_the_bytes_of_arrays(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    weft.save(path, a=np.zeros(100), b=np.zeros(100))
    assert set(weft.load(path, max_bytes=1600)) == {"a", "b"}
    with pytest.raises(ValueError, match=r"1600 bytes, more than max_bytes=1599"):
        weft.load(path, max_bytes=1599)
    with pytest.raises(TypeError, match="max_bytes is an integer, not the str '1 GB'"):
        weft.load(path, max_bytes="1 GB")


@pytest.mark.parametrize("suffix", FORMATS)
def test_folders_and_long_names_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    with pytest.raises(ValueError, match="has more than 65531 bytes"):
        weft.save(path, **{"\u00fc" * 32_766: 1.0})
    weft.save(path, **{"\u00fc" * 32_765: 1.0})
    assert len(weft.load(path)) == 1
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError, match="x"):
        weft.load(path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # NumPy's, of headers that Python 2 may have written
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
@pytest.mark.parametrize("suffix", FORMATS)
def test_any_damage_gives_a_value_error_or_the_same_arrays(tmp_path: Path, suffix: str, data: st.DataObject) -> None:
    path = tmp_path / f"x{suffix}"
    arrays = {"x": np.arange(3.0), "flags": np.array([True, False]), "none": np.zeros((0, 2), np.int8)}
    weft.save(path, **arrays)
    whole = path.read_bytes()
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole)
    for place, value in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=4)):
        if place < len(damaged):
            damaged[place] = value
    path.write_bytes(damaged)
    try:
        found = weft.load(path)
    except ValueError:
        return
    for x in found.values():
        np.asarray(x)
    if suffix == ".npz" and len(found) == len(arrays):  # its checksums vouch for the data
        assert sorted(np.asarray(x).tobytes() for x in found.values()) == sorted(x.tobytes() for x in arrays.values())


def tensors(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


SAFETENSORS = {
    "header larger than the file": (struct.pack("<Q", 1 << 60) + b"{}", "damaged"),
    "cut": (tensors(b'{"x":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}', b"\0" * 8), "damaged"),
    "not JSON": (tensors(b"{'x'"), "damaged"),
    "offsets that do not fit": (
        tensors(b'{"x":{"dtype":"F64","shape":[3],"data_offsets":[0,16]}}', b"\0" * 16),
        "damaged",
    ),
    "shape that overflows": (
        tensors(b'{"x":{"dtype":"F64","shape":[4611686018427387904,8],"data_offsets":[0,0]}}'),
        "damaged",
    ),
    "bfloat": (tensors(b'{"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}', b"\0" * 2), "'x'.*BF16"),
    "up": (tensors(b'{"../x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"\0"), r"'\.\./x'"),
    "impossible bool": (tensors(b'{"x":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}', b"\7"), "'x'.*bool"),
    "empty and absurd": (
        tensors(b'{"x":{"dtype":"U8","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}}'),
        "'x'",
    ),
    "empty": (b"", "damaged"),
    "another format": (ONE, "damaged"),
}


@pytest.mark.parametrize("case", SAFETENSORS if HAS_SAFETENSORS else [])
def test_a_hostile_safetensors_file_is_refused(tmp_path: Path, case: str) -> None:
    data, message = SAFETENSORS[case]
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        weft.load(path)


if HAS_SAFETENSORS:

    def test_safetensors_has_no_complex128(tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"'z'.*complex128"):
            weft.save(tmp_path / "x.safetensors", z=weft.zeros(2, dtype="complex128"))
        assert inside(tmp_path) == []

    def test_safetensors_reads_what_is_saved(tmp_path: Path) -> None:
        from safetensors.numpy import load_file, save_file

        x = np.arange(6, dtype=np.int16).reshape(2, 3)
        weft.save(tmp_path / "x.safetensors", x=weft.asarray(x).T)
        np.testing.assert_array_equal(load_file(tmp_path / "x.safetensors")["x"], x.T, strict=True)
        save_file({"x": x}, tmp_path / "y.safetensors")
        bits_equal(weft.load(tmp_path / "y.safetensors")["x"], x)
