"""Files of parameters: of each version, damaged ones, and names that do not match."""

import struct
from pathlib import Path

import numpy as np
import pytest
from mxnet_files import DATA, parameters, params_file, record, symbol_file

import weft
import weft.mxnet
from weft.errors import CheckpointError, CheckpointMissingError

DTYPES = {0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8", 6: "int64", 7: "bool"}


def read(data: bytes, tmp_path: Path) -> dict[str, weft.NDArray]:
    path = tmp_path / "net-0000.params"
    path.write_bytes(data)
    return weft.mxnet.load_params(path)


@pytest.mark.parametrize("kind", ["old", "v1", "v2", "v3"])
@pytest.mark.parametrize("number", DTYPES)
def test_records_of_each_version_and_dtype(kind: str, number: int, tmp_path: Path) -> None:
    array = np.arange(6).reshape(2, 3).astype(DTYPES[number])
    found = read(params_file([record(array, kind, number=number)] * 2, ["arg:a", "aux:b"]), tmp_path)
    assert list(found) == ["arg:a", "aux:b"]
    np.testing.assert_array_equal(found["aux:b"].numpy(), array)
    assert found["aux:b"].dtype == array.dtype


def test_arrays_without_names_and_without_elements(tmp_path: Path) -> None:
    one = np.ones((2, 0), np.float32)
    assert read(params_file([record(one, "v2")], []), tmp_path)["0"].shape == (2, 0)
    none = struct.pack("<Iii", 0xF993FAC9, 0, 0)
    assert read(params_file([none], ["x"]), tmp_path)["x"].shape == (0,)
    assert read(params_file([record(np.float32(3).reshape(()), "v3")], ["x"]), tmp_path)["x"].shape == ()


def test_half_numbers_of_bfloat16(tmp_path: Path) -> None:
    halves = (np.array([1.5, -2.0], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    assert read(params_file([record(halves, "v2", number=12)], ["x"]), tmp_path)["x"].numpy().tolist() == [1.5, -2.0]


def test_what_mxnet_2_writes_is_numpys_format(tmp_path: Path) -> None:
    path = tmp_path / "net-0000.params"
    with path.open("wb") as file:
        np.savez(file, weight=np.eye(2))
    assert weft.mxnet.load_params(path)["weight"].numpy().tolist() == np.eye(2).tolist()
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(CheckpointError, match="damaged"):
        weft.mxnet.load_params(path)


@pytest.mark.parametrize(("kind", "name"), [(1, "row_sparse"), (2, "csr")])
def test_sparse_arrays_are_refused_by_name(kind: int, name: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=name):
        read(params_file([struct.pack("<Ii", 0xF993FAC9, kind) + bytes(60)], ["x"]), tmp_path)


def test_files_that_end_anywhere(tmp_path: Path) -> None:
    whole = params_file([record(np.ones((2, 3), np.float32), kind) for kind in ("old", "v1", "v2")], ["a", "b", "c"])
    assert len(read(whole, tmp_path)) == 3
    for end in range(len(whole)):
        with pytest.raises(CheckpointError):
            read(whole[:end], tmp_path)


def test_files_with_any_byte_changed(tmp_path: Path) -> None:
    whole = bytearray(params_file([record(np.ones((2, 3), np.float32), "v2")], ["a"]))
    for at in range(len(whole)):
        for value in (0, 0x7F, 0xFF):
            changed = whole.copy()
            changed[at] = value
            try:
                read(bytes(changed), tmp_path)  # another number is no damage
            except CheckpointError:
                continue


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no list of arrays"),
        (struct.pack("<3Q", 0x112, 0, 1 << 60), "it says that it has"),
        (params_file([struct.pack("<Iii", 0xF993FAC9, 0, 99) + bytes(800)], ["a"]), "99 axes"),
        (params_file([struct.pack("<Iii2q", 0xF993FAC9, 0, 2, -1, 3) + bytes(80)], ["a"]), "the shape"),
        (params_file([struct.pack("<Iii2q3i", 0xF993FAC9, 0, 2, 1 << 40, 1 << 40, 1, 0, 0)], ["a"]), "too early"),
        (params_file([record(np.ones(2, np.float32), "v2", number=77)], ["a"]), "dtype of number 77"),
        (params_file([record(np.ones(2, np.float32), "v2")] * 2, ["a", "a"]), "two arrays are named a"),
        (params_file([record(np.ones(2, np.float32), "v2")], ["a", "b"]), "1 arrays have 2 names"),
        (params_file([record(np.ones(2, np.float32), "v2")], ["a"]) + b"x", "1 bytes follow"),
    ],
)
def test_damage_is_named(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=message):
        read(data, tmp_path)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return the prefix of a network of which there are the epochs 1 and 12."""
    arguments, states = parameters()
    for epoch in (1, 12):
        weft.mxnet.save_checkpoint(
            tmp_path / "net", epoch, weft.symbol.load_json(symbol_file("1.2")), arguments, states
        )
    return tmp_path / "net"


def test_a_checkpoint_comes_back(saved: Path) -> None:
    arguments, states = parameters()
    net, found, kept = weft.mxnet.load_checkpoint(saved, 12)
    assert sorted(found) == sorted(arguments)
    assert sorted(kept) == sorted(states)
    np.testing.assert_array_equal(found["conv_weight"].numpy(), arguments["conv_weight"])
    assert net.infer_shape(data=DATA)[1] == [(2, 3)]


def test_an_epoch_that_is_missing(saved: Path) -> None:
    with pytest.raises(CheckpointMissingError, match="the epochs 0001, 0012"):
        weft.mxnet.load_checkpoint(saved, 2)
    with pytest.raises(FileNotFoundError, match="other-symbol"):
        weft.mxnet.load_checkpoint(saved.with_name("other"), 1)


def test_names_that_do_not_match_are_listed(saved: Path) -> None:
    arguments, states = parameters()
    arguments["dense_weight"] = arguments.pop("fc_weight")
    file = {f"arg:{name}": array for name, array in arguments.items()} | {
        "aux:bn_moving_mean": states["bn_moving_mean"]
    }
    weft.mxnet.save_params(f"{saved}-0002.params", file)
    with pytest.raises(CheckpointError, match=r"arg:dense_weight.*fc_weight.*bn_moving_var"):
        weft.mxnet.load_checkpoint(saved, 2)
    file["aux:bn_moving_var"] = states["bn_moving_var"]
    weft.mxnet.save_params(f"{saved}-0002.params", file)
    _, found, _ = weft.mxnet.load_checkpoint(saved, 2, allow_extra=True)
    assert "dense_weight" not in found


def test_names_without_a_kind(saved: Path) -> None:
    arguments, states = parameters()
    weft.mxnet.save_params(f"{saved}-0003.params", arguments | states)
    _, found, kept = weft.mxnet.load_checkpoint(saved, 3)
    assert (len(found), len(kept)) == (len(arguments), len(states))


def test_dtypes_that_mxnet_has_not(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="complex64"):
        weft.mxnet.save_params(tmp_path / "x.params", {"x": np.ones(2, np.complex64)})
