"""State files: what is taken up again, and files of another model, cut short, or from SINGA."""

from __future__ import annotations

import io
import json
import stat
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import layer, model, opt, tensor
from weft.errors import ArgumentTypeError, StateFileError

if TYPE_CHECKING:
    from pathlib import Path


class Net(model.Model):
    def __init__(self, wide: int = 3, *, deep: bool = False) -> None:
        super().__init__()
        self.dense1 = layer.Linear(wide)
        self.dense10 = layer.Linear(2) if deep else layer.ReLU()
        self.norm = layer.BatchNorm2d()
        self.loss = layer.MeanSquareError()

    def forward(self, x: Any) -> Any:
        return self.dense10(self.norm(self.dense1(x)))

    def train_one_batch(self, x: Any, y: Any) -> Any:
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


X, Y = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2), np.ones((4, 3), np.float32)


def make(optimizer: Any = None, **options: Any) -> tuple[Net, weft.NDArray, weft.NDArray]:
    weft.device.get_default_device().SetRandSeed(1)
    net = Net(**options)
    if optimizer is not None:
        net.set_optimizer(optimizer)
    x, y = tensor.from_numpy(X), tensor.from_numpy(Y)
    net.compile([x], is_train=True, use_graph=True)
    return net, x, y


@pytest.mark.parametrize("optimizer", [lambda: opt.SGD(0.1, momentum=0.9), lambda: opt.Adam(0.1)], ids=["SGD", "Adam"])
def test_training_goes_on_where_it_was_saved(tmp_path: Path, optimizer: Any) -> None:
    net, x, y = make(optimizer())
    for _ in range(3):
        net(x, y)
    net.save_states(tmp_path / "net", {"epoch": 3, "best": tensor.ones((2,)), "rates": [0.1, 0.2]})
    for _ in range(3):
        net(x, y)
    other, x, y = make(optimizer())
    aux = other.load_states(tmp_path / "net")
    assert (aux["epoch"], aux["rates"], aux["best"].tolist()) == (3, [0.1, 0.2], [1.0, 1.0])
    for _ in range(3):
        other(x, y)
    assert other.optimizer.step_counter.item() == 6
    for name, value in net.get_states().items():
        np.testing.assert_array_equal(value.numpy(), other.get_states()[name].numpy(), name)
    assert [path.name for path in tmp_path.iterdir()] == ["net"]
    net.save_states(tmp_path / "net")  # in place of the other
    assert other.load_states(tmp_path / "net") == {}


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
def test_the_mode_of_a_file_is_that_of_any_new_file_or_of_the_old_one(tmp_path: Path) -> None:
    net, _, _ = make()
    (tmp_path / "plain").touch()
    path, link = tmp_path / "net", tmp_path / "link"
    net.save_states(path)
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o640)
    link.symlink_to(path)
    net.save_states(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_file_loads_without_an_optimizer(tmp_path: Path) -> None:
    net, x, y = make(opt.SGD(0.1, momentum=0.9))
    net(x, y)
    net.save_states(tmp_path / "net")
    other, _, _ = make()
    other.load_states(tmp_path / "net")
    np.testing.assert_array_equal(other.get_params()["dense1.W"].numpy(), net.get_params()["dense1.W"].numpy())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"deep": True}, "it lacks 'dense10.W', 'dense10.b'"),
        ({"wide": 5}, r"'dense1.W' there is of shape \(2, 3\) and dtype float32, and here of \(2, 5\)"),
    ],
    ids=["names", "shapes"],
)
def test_a_file_of_another_model(tmp_path: Path, options: Any, said: str) -> None:
    net, _, _ = make(opt.SGD())
    net.save_states(tmp_path / "net")
    other, _, _ = make(opt.SGD(), **options)
    before = {name: value.numpy() for name, value in other.get_states().items()}
    with pytest.raises(StateFileError, match=f"another model than Net: .*{said}"):
        other.load_states(tmp_path / "net")
    for name, value in other.get_states().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    other.save_states(tmp_path / "other")
    other.load_states(tmp_path / "other")


def test_a_file_of_another_optimizer(tmp_path: Path) -> None:
    net, x, y = make(opt.Adam())
    net(x, y)
    net.save_states(tmp_path / "net")
    other, _, _ = make(opt.AdaGrad())
    with pytest.raises(StateFileError, match="another optimizer: AdaGrad keeps"):
        other.load_states(tmp_path / "net")


@pytest.mark.parametrize("length", [0, 10, 0.5, -1])
def test_a_file_that_is_cut_short(tmp_path: Path, length: float) -> None:
    net, _, _ = make()
    net.save_states(tmp_path / "net")
    whole = (tmp_path / "net").read_bytes()
    (tmp_path / "net").write_bytes(whole[: int(length * len(whole)) if isinstance(length, float) else length])
    with pytest.raises(StateFileError, match="no state file of a model, or not the whole of one"):
        net.load_states(tmp_path / "net")
    (tmp_path / "net").write_bytes(whole)
    net.load_states(tmp_path / "net")
    with pytest.raises(FileNotFoundError):
        net.load_states(tmp_path / "none")


def singas(path: Path, states: dict[str, Any], aux: dict[str, Any]) -> None:
    """Write a file as SINGA does."""
    held = io.BytesIO()
    np.savez(held, **states, **aux)
    kinds = {name: {"state_type": 0, "shape": array.shape, "dtype": 0} for name, array in states.items()}
    kinds |= {name: {"state_type": 1, "shape": array.shape, "dtype": 0} for name, array in aux.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tensor_dict.npz", held.getvalue())
        archive.writestr("states_attr.json", json.dumps(kinds))


def read_by_singa(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a model's states and auxiliary ones as SINGA finds them: in two members, by the kind of each array."""
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["states_attr.json", "tensor_dict.npz"]
        attributes = json.loads(archive.read("states_attr.json"))
        tensors = np.load(io.BytesIO(archive.read("tensor_dict.npz")))
        return tuple(  # type: ignore[return-value] # of two
            {name: tensors[name] for name in tensors.files if attributes[name]["state_type"] == kind} for kind in (0, 1)
        )


def test_a_file_of_singa_is_loaded(tmp_path: Path) -> None:
    net, x, y = make(opt.SGD(0.1, momentum=0.9))
    net(x, y)
    kept = net.optimizer.get_states()["moments"]["dense1.W"].numpy()
    arrays = {name: value.numpy() + 1 for name, value in net.get_states().items()}
    singas(tmp_path / "singa", arrays, {"epoch": np.array([7], np.float32)})
    aux = net.load_states(tmp_path / "singa")
    assert {name: value.tolist() for name, value in aux.items()} == {"epoch": [7.0]}
    for name, value in net.get_states().items():
        np.testing.assert_array_equal(value.numpy(), arrays[name], name)
    np.testing.assert_array_equal(net.optimizer.get_states()["moments"]["dense1.W"].numpy(), kept)
    found = model.singa_states(tmp_path / "singa")
    assert sorted(found) == sorted(arrays)
    net.set_states(found)
    singas(tmp_path / "other", {"conv.W": arrays["dense1.W"]}, {})
    with pytest.raises(StateFileError, match=r"another model than Net: it lacks .* and it has 'conv.W'"):
        net.load_states(tmp_path / "other")
    singas(tmp_path / "singa", {}, {})
    with zipfile.ZipFile(tmp_path / "singa", "w") as archive:
        archive.writestr("tensor_dict.npz", b"")
    with pytest.raises(StateFileError, match="no state file"):
        net.load_states(tmp_path / "singa")


def test_singa_reads_what_is_saved(tmp_path: Path) -> None:
    net, x, y = make(opt.Adam(0.1))
    net(x, y)
    given = {"epoch": tensor.ones((1,)), "file": tensor.zeros((2,)), "dense1.W": tensor.ones((3,)), "note": "best"}
    net.save_states(tmp_path / "net", given)
    states, aux = read_by_singa(tmp_path / "net")
    assert sorted(states) == sorted(net.get_states())
    for name, value in net.get_states().items():
        np.testing.assert_array_equal(value.numpy(), states[name])
    assert {"epoch", "file"} <= set(aux)
    other, _, _ = make(opt.Adam(0.1))
    found = other.load_states(tmp_path / "net")
    assert {name: value if name == "note" else value.tolist() for name, value in found.items()} == {
        "epoch": [1.0],
        "file": [0.0, 0.0],
        "dense1.W": [1.0] * 3,
        "note": "best",
    }
    assert other.optimizer.step_counter.item() == 1


@pytest.mark.parametrize(("mode", "gates"), [("lstm", 4), ("gru", 3), ("tanh", 1)])
def test_weights_of_cudnn_are_one_array_in_files(tmp_path: Path, mode: str, gates: int) -> None:
    class Sequences(model.Model):
        def __init__(self, *, bias: bool = True) -> None:
            super().__init__()
            self.lstm = layer.CudnnRNN(3, num_layers=2, bidirectional=True, rnn_mode=mode, bias=bias)

        def forward(self, x: Any) -> Any:
            return self.lstm(x)

    x = tensor.from_numpy(np.random.default_rng(2).normal(size=(2, 4, 5)).astype("f4"))
    net, other, bare = Sequences(), Sequences(), Sequences(bias=False)
    for each in (net, other, bare):
        each.compile([x], is_train=False)
    # As cuDNN has them: all matrices, gate by gate and row by row, for each layer and direction; then all biases.
    own = {name: value.numpy() for name, value in net.get_states().items()}
    places = [f"{layer}{way}" for layer in ("", "_l1") for way in ("", "_reverse")]
    pieces = []
    for place in places:
        for kind in ("W_x", "W_h"):
            pieces += [own[f"lstm.{kind}{place}"][:, 3 * g : 3 * g + 3].T.ravel() for g in range(gates)]
    for place in places:
        pieces += [own[f"lstm.{kind}{place}"] for kind in ("B_x", "B_h")]
    net.save_states(tmp_path / "net")
    states, _ = read_by_singa(tmp_path / "net")
    assert list(states) == ["lstm.W"]
    np.testing.assert_array_equal(states["lstm.W"], np.concatenate(pieces))
    singas(tmp_path / "singa", states, {})
    other.load_states(tmp_path / "singa")
    np.testing.assert_array_equal(other(x).numpy(), net(x).numpy())
    with pytest.raises(StateFileError, match="has biases, and"):
        bare.load_states(tmp_path / "singa")
    bare.save_states(tmp_path / "bare")
    bare.load_states(tmp_path / "bare")
    singas(tmp_path / "short", {"lstm.W": states["lstm.W"][1:]}, {})
    with pytest.raises(StateFileError, match=r"lstm.W is of shape .*, and .* weights"):
        net.load_states(tmp_path / "short")


def test_names_are_exact_and_nothing_changes_where_one_does_not_fit() -> None:
    net, _, _ = make(deep=True)
    states = {name: value.numpy() for name, value in net.get_states().items()}
    assert list(net.get_params()) == ["dense1.W", "dense1.b", "dense10.W", "dense10.b", "norm.scale", "norm.bias"]
    net.set_params({"dense1.b": np.full(3, 7.0, np.float32)})
    np.testing.assert_array_equal(net.get_params()["dense10.b"].numpy(), states["dense10.b"])
    assert net.get_params()["dense1.b"].tolist() == [7.0] * 3
    with pytest.raises(ValueError, match=r"no 'dense1': it has 'dense1\.W'"):
        net.set_states({"dense1.b": states["dense1.b"], "dense1": states["dense1.b"]})
    with pytest.raises(ValueError, match=r"'dense1.b' has the shape \(3,\), and was given \(2,\)"):
        net.set_params({"dense10.b": states["dense10.b"], "dense1.b": states["dense10.b"]})
    assert net.get_params()["dense1.b"].tolist() == [7.0] * 3


def test_what_a_file_does_not_hold(tmp_path: Path) -> None:
    net, _, _ = make()
    with pytest.raises(ArgumentTypeError, match="arrays, numbers, strings"):
        net.save_states(tmp_path / "net", {"what": object()})
    assert not list(tmp_path.iterdir())
