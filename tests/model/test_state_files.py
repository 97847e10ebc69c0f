"""State files: what is taken up again, and files of another model, cut short, or from SINGA."""

from __future__ import annotations

import io
import json
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


def test_a_file_of_singa_says_how_to_take_it_over(tmp_path: Path) -> None:
    net, _, _ = make()
    arrays = {name: value.numpy() + 1 for name, value in net.get_states().items()}
    held = io.BytesIO()
    np.savez(held, **arrays, epoch=np.ones(1))
    kinds = {name: {"state_type": 0, "shape": array.shape, "dtype": 0} for name, array in arrays.items()}
    with zipfile.ZipFile(tmp_path / "singa", "w") as archive:
        archive.writestr("tensor_dict.npz", held.getvalue())
        archive.writestr("states_attr.json", json.dumps(kinds | {"epoch": {"state_type": 1}}))
    with pytest.raises(StateFileError, match=r"saved by SINGA.*singa_states"):
        net.load_states(tmp_path / "singa")
    net.set_states(model.singa_states(tmp_path / "singa"))
    np.testing.assert_array_equal(net.get_states()["norm.running_var"].numpy(), arrays["norm.running_var"])
    net.save_states(tmp_path / "net")
    with pytest.raises(StateFileError, match="no state file of SINGA"):
        model.singa_states(tmp_path / "net")


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
