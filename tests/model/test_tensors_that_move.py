"""Tensors that change where they are, their dtype or their shape in place, as SINGA's do."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import threading
import weakref
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import autograd, layer, model, opt, tensor
from weft.errors import ArgumentTypeError, ArgumentValueError, CaptureError, GradientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

A = np.float32([[1.0, -2.0, 0.5], [4.0, 3.0, 2.0]])
THERE = weft.cpu(1)
#: Seconds for which threads move and compute; a moment by default.
SECONDS = float(os.environ.get("WEFT_MOVES_SECONDS", "0.3"))


def test_a_tensor_goes_to_a_device_and_comes_back() -> None:
    x = tensor.from_numpy(A)
    x.name = "x"
    row, sum_before = x[0], x.sum()
    assert x.to_device(THERE) is x
    assert (x.device, x.name, row.device, x.stores_grad) == (THERE, "x", weft.cpu(0), False)
    x += 1
    x.copy_data(tensor.from_numpy(A + 1))
    assert (x * 2).device == THERE
    np.testing.assert_array_equal(x.numpy(), A + 1)
    np.testing.assert_array_equal(row.numpy(), A[0])  # a view stays
    assert float(sum_before) == A.sum()
    assert x.to_host() is x
    np.testing.assert_array_equal(x.numpy(), A + 1)
    np.testing.assert_array_equal(np.asarray(row), A[0] + 1)  # on the memory that x has again
    np.testing.assert_array_equal(tensor.to_host(x.to_device("cpu:1")).numpy(), A + 1)
    assert x.device == THERE  # of the function's result, a copy
    assert weft.asarray(x, device="cpu:0").device == weft.cpu(0)
    assert x.device == THERE


def test_a_tensor_takes_another_dtype_or_shape() -> None:
    x = tensor.from_numpy(A)
    assert x.to_type("half").dtype == np.float16
    assert x.to_type("int").tolist() == A.astype(np.float16).astype(np.int32).tolist()
    assert x.to_type(tensor.float32) is x
    np.testing.assert_array_equal(x.numpy(), A.astype(np.int32))
    like = weft.zeros((4,), np.int32, device=THERE)
    x.reset_like(like)
    assert (x.shape, x.dtype, x.device) == ((4,), like.dtype, THERE)
    x.set_value(3)
    assert x.tolist() == [3, 3, 3, 3]


def test_memory_is_used_again() -> None:
    x = tensor.from_numpy(A)
    here = x[...]
    for _ in range(3):
        x.to_device(THERE)
        there = x[...]
        x.to_type("half").to_type("float").to_host()
        assert x._shares_buffer(here)
    assert x.to_device(THERE)._shares_buffer(there)
    np.testing.assert_array_equal(there.numpy(), here.numpy())
    gone = weakref.ref(x)
    del x, here, there  # a view keeps what it is a view of
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("by_name", [True, False], ids=["attribute", "item"])
def test_a_program_follows_a_tensor(by_name: bool) -> None:
    class Owner:
        def __init__(self) -> None:
            self.w = tensor.from_numpy(A)
            self.kept = [self.w]
            self.recorded = 0

        def step(self, x: weft.NDArray) -> weft.NDArray:
            self.count()
            w = self.w if by_name else self.kept[0]
            w -= 1
            return x * w

        @staticmethod
        def count() -> None:
            counts.append(1)

    counts: list[int] = []
    owner, x = Owner(), weft.ones((3,))
    step = weft.program(owner.step)
    step(x)
    step(x)
    owner.w.to_device(THERE)
    np.testing.assert_array_equal(step(x).numpy(), A - 3)
    np.testing.assert_array_equal(owner.w.numpy(), A - 3)
    owner.w.to_host()
    np.testing.assert_array_equal(step(x).numpy(), A - 4)
    owner.w.to_device(THERE)
    np.testing.assert_array_equal(step(x).numpy(), A - 5)
    np.testing.assert_array_equal(owner.w.numpy(), A - 5)
    assert len(counts) == 2  # one for each place


def test_a_program_knows_a_moved_argument_that_it_refers_to_itself() -> None:
    x = tensor.from_numpy(A)
    x.to_device(THERE)
    program = weft.program(lambda y: y + x * 10)
    np.testing.assert_array_equal(program(x).numpy(), 11 * A)
    np.testing.assert_array_equal(program(weft.asarray(A, device=THERE)).numpy(), 11 * A)
    np.testing.assert_array_equal(program(weft.zeros(A.shape, np.float32, device=THERE)).numpy(), 10 * A)


def test_a_program_asks_again_for_what_a_tensor_is() -> None:
    x, y, counts = tensor.from_numpy(A), weft.ones((2,)), []

    def of_its_facts(y: weft.NDArray) -> weft.NDArray:
        counts.append(1)
        return y * x.shape[0] + x.dtype.itemsize + (100 if x.device == THERE else 0)

    program = weft.program(of_its_facts)
    assert program(y).tolist() == [6, 6]
    x.reset_like(weft.zeros((5,), np.float64))
    assert program(y).tolist() == [13, 13]
    x.to_device(THERE)
    assert program(y).tolist() == [113, 113]
    x.to_host()
    assert program(y).tolist() == [13, 13]
    assert len(counts) == 3  # one for each


def test_an_operator_follows_a_tensor() -> None:
    x, engine = tensor.from_numpy(A), weft.get_engine()
    add = engine.new_operator(lambda: np.add(np.asarray(x), 1, out=np.asarray(x)), mutate_vars=[x])
    add.push()
    x.wait_to_read()
    x.to_device(THERE)
    add.push()
    np.testing.assert_array_equal(x.numpy(), A + 2)
    x.to_host()
    add.push()
    np.testing.assert_array_equal(x.numpy(), A + 3)


def test_a_parameter_that_moves_stays_one() -> None:
    w = tensor.Tensor(data=A, stores_grad=True)
    before = (w * w).sum()
    w.to_device(THERE)
    after = (w * w * w).sum()
    [(parameter, gradient)] = autograd.backward(after)
    assert parameter is w
    assert gradient.device == THERE
    np.testing.assert_allclose(gradient.numpy(), 3 * A * A)
    [(parameter, gradient)] = autograd.backward(before)  # of the values that it had there
    assert parameter is w
    np.testing.assert_allclose(gradient.numpy(), 2 * A)
    with pytest.raises(GradientError, match="int32"):
        w.to_type("int")
    assert (w.device, w.dtype, w.requires_grad) == (THERE, np.float32, True)


def test_a_gradient_goes_through_a_move() -> None:
    w, x = tensor.Tensor(data=A, stores_grad=True), tensor.zeros(A.shape)
    with autograd.no_grad():
        x[...] = A
    x[...] = w * 3
    x.to_device(THERE)
    [(_, gradient)] = autograd.backward((x * x).sum())
    np.testing.assert_allclose(gradient.numpy(), 18 * A)


class Net(model.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.loss = layer.Linear(2), layer.SoftMaxCrossEntropy()

    def forward(self, x: Any) -> Any:
        return self.dense(x)

    def train_one_batch(self, x: Any, y: Any) -> Any:
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


@pytest.mark.parametrize("use_graph", [False, True], ids=["eager", "graph"])
def test_a_model_that_moves_trains_on(use_graph: bool) -> None:
    found = []
    for moves in (False, True):
        weft.device.get_default_device().SetRandSeed(1)
        net = Net()
        net.set_optimizer(opt.SGD(0.1, momentum=0.9))
        x, y = tensor.from_numpy(A), tensor.from_numpy(np.int32([0, 1]))
        net.compile([x], is_train=True, use_graph=use_graph)
        net(x, y)
        if moves:
            for each in (x, y, *net.get_params().values()):
                each.to_device(THERE)
        out, _ = net(x, y)
        out, _ = net(x, y)
        assert out.device == (THERE if moves else weft.cpu(0))
        found.append(out.numpy())
    np.testing.assert_array_equal(*found)


def test_what_is_recorded_knows_tensors_where_they_are() -> None:
    x = tensor.from_numpy(A)

    @weft.program
    def moves() -> weft.NDArray:
        return x.to_device(THERE) + 1

    with pytest.raises(CaptureError, match="before the call"):
        moves()
    assert x.device == weft.cpu(0)

    @weft.program
    def makes(y: weft.NDArray) -> weft.NDArray:
        made = tensor.zeros((2, 3))
        made.to_device(THERE)
        made += 2
        return made * y.to_device(THERE)

    np.testing.assert_array_equal(makes(x).numpy(), 2 * A)
    np.testing.assert_array_equal(makes(x).numpy(), 2 * A)


def test_wrong_moves_are_refused() -> None:
    x = tensor.from_numpy(A)
    with pytest.raises(ArgumentValueError, match="no stream"):
        x.to_device(THERE, stream=1)
    with pytest.raises(ValueError, match="nowhere"):
        x.to_device("nowhere")
    with pytest.raises(ArgumentTypeError, match="reset_like takes an array, not int"):
        x.reset_like(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        x.to_type("word")
    np.testing.assert_array_equal(x.numpy(), A)


def test_all_ways_in_see_where_a_tensor_is() -> None:
    x = tensor.from_numpy(A)
    home = x[...]
    x.to_type("half")
    x.reset_like(weft.zeros((3, 2), np.float32, device=THERE))
    x.copy_from_numpy(A.reshape(3, 2))
    b = A.reshape(3, 2)
    row = weft.asarray(b[0], device=THERE)
    found = {
        "binary": (x + row, b + b[0]),
        "reflected": (row - x, b[0] - b),
        "number": (2 - x, 2 - b),
        "unary": (-x, -b),
        "power": (x**2, b**2),
        "product": (x @ weft.asarray(A, device=THERE), b @ A),
        "other product": (weft.asarray(A, device=THERE) @ x, A @ b),
        "comparison": (x > 0, b > 0),
        "ufunc": (weft.exp(x), np.exp(b)),
        "sum": (x.sum(axis=0), b.sum(axis=0)),
        "mean": (weft.mean(x), b.mean()),
        "search": (x.argmax(axis=1), b.argmax(axis=1)),
        "cumulative": (weft.cumulative_sum(x, axis=0), b.cumsum(axis=0)),
        "join": (weft.concat([x, x]), np.concatenate([b, b])),
        "roll": (weft.roll(x, 1), np.roll(b, 1)),
        "sort": (weft.sort(x, axis=0), np.sort(b, axis=0)),
        "cast": (x.astype(np.int64), b.astype(np.int64)),
        "part": (x[1:], b[1:]),
        "rows": (x[np.array([2, 0])], b[[2, 0]]),
        "mask": (x[x > 0], b[b > 0]),
        "turned": (x.T, b.T),
        "shape": (x.reshape(-1), b.reshape(-1)),
        "where": (weft.where(x > 1, x, 0), np.where(b > 1, b, 0)),
        "numpy's": (np.add(x, 1), b + 1),
        "kernel": (weft.nn.softmax(x), np.exp(b) / np.exp(b).sum(axis=-1, keepdims=True)),
    }
    for name, (got, wanted) in found.items():
        assert got.device in (THERE, weft.cpu(0)), name
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6, err_msg=name)
    for shown in (np.asarray(x), np.from_dlpack(x), memoryview(x), pickle.loads(pickle.dumps(x))):
        np.testing.assert_array_equal(np.asarray(shown), b)
    assert (x[2, 1].item(), x.size, x.strides, x.nbytes, x.is_ready()) == (b[2, 1], 6, (8, 4), 24, True)
    x[0] = 7
    x[weft.asarray([False, True, False], device=THERE)] += 1
    weft.add(x, 1, out=x)
    weft.multiply(x, 2, out=x, where=np.array([[True, False]]))
    x -= row
    due = b.copy()
    due[0] = 7
    due[1] += 1
    due += 1
    due[:, 0] *= 2
    np.testing.assert_array_equal(x.numpy(), due - b[0])
    np.testing.assert_array_equal(home.numpy(), A)  # of which nothing was written

    seen: list[Any] = []
    engine = weft.get_engine()
    engine.push(lambda: seen.append(x.numpy().copy()), read_vars=[x])
    engine.push(lambda: np.asarray(x).__setitem__(0, 0), mutate_vars=[x])
    np.testing.assert_array_equal(x.numpy()[0], [0, 0])
    np.testing.assert_array_equal(seen[0], due - b[0])


def test_states_follow_and_files_hold_what_is_there(tmp_path: Path) -> None:
    net = Net()
    net.set_optimizer(opt.SGD(0.1, momentum=0.9))
    x, y = tensor.from_numpy(A), tensor.from_numpy(np.int32([0, 1]))
    net.compile([x], is_train=True, use_graph=True)
    for device in (THERE, weft.cpu(0), THERE):
        for each in (x, y, *net.get_params().values()):
            each.to_device(device)
        out, _ = net(x, y)
        assert out.device == device
        assert {each.device for each in net.get_params().values()} == {device}
    net.save_states(str(tmp_path / "net.zip"))
    due = {name: each.numpy().copy() for name, each in net.get_states().items()}
    net(x, y)
    net.load_states(str(tmp_path / "net.zip"))
    assert {each.device for each in net.get_params().values()} == {THERE}
    for name, each in net.get_states().items():
        np.testing.assert_array_equal(each.numpy(), due[name])


@pytest.mark.parametrize("there", [THERE, weft.cpu(0)], ids=["from_home", "from_elsewhere"])
def test_a_running_op_sees_a_tensor_where_it_was_pushed(there: weft.Device) -> None:
    x, opened, seen = tensor.from_numpy(A), threading.Event(), []
    if there == weft.cpu(0):
        x.to_device(THERE)

    def look() -> None:
        assert opened.wait(60)
        seen.append(np.asarray(x).copy())

    def change() -> None:
        np.asarray(x)[...] = 5.0

    engine = weft.get_engine()
    engine.push(look, (x,))
    engine.push(change, (), (x,))
    x.to_device(there)
    x += 1.0
    opened.set()
    np.testing.assert_array_equal(x.numpy(), np.full_like(A, 6.0))
    np.testing.assert_array_equal(seen, [A])


def test_threads_see_a_tensor_before_a_move_or_after_it() -> None:
    """What is computed is right for one place, though the tensor moves meanwhile; or the call is refused, as it met both."""
    values = np.arange(24, dtype=np.float32)
    x, w = tensor.from_numpy(values), tensor.Tensor(data=values, stores_grad=True)
    here, program = x[...], weft.program(lambda: x * 2.0)
    done = threading.Event()

    def move() -> None:
        x.to_type("half").to_device(THERE).to_type("int").to_host().to_type("float")
        w.to_device(THERE).to_host()

    def compute() -> None:
        for found in (x + x, x * 2, weft.add(x, x), weft.where(x > -1, x * 2, 0), 2 * weft.sort(x), 2 * x.reshape(24)):
            np.testing.assert_array_equal(found.numpy(), 2 * values)
        assert float(x.sum().item()) == float(x.astype(np.float64).sum().item()) == values.sum()
        assert float(x[-1].item()) == np.asarray(x)[-1] == 23
        np.testing.assert_array_equal(np.from_dlpack(x), values)
        np.testing.assert_array_equal(program().numpy(), 2 * values)
        assert (x[3:7].tolist(), here.sum().item()) == ([3, 4, 5, 6], values.sum())

    def compute_or_be_refused() -> None:
        with contextlib.suppress(TypeError):  # which wrong values are not
            compute()

    def until_done(act: Callable[[], None]) -> None:
        while not done.is_set():
            act()

    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(until_done, act) for act in (move, compute_or_be_refused, compute_or_be_refused)]
        wait(runs, SECONDS, FIRST_EXCEPTION)
        done.set()
        for run in runs:
            run.result()
    np.testing.assert_array_equal(w.numpy(), values)
    assert w.requires_grad


def test_memory_of_places_goes_in_the_end() -> None:
    x = tensor.zeros((4,))
    x.to_device(THERE)
    places = []
    for n in range(1, 30):
        x.reset_like(weft.zeros((n,)))
        places.append(weakref.ref(x._now))
    gc.collect()
    assert sum(place() is not None for place in places) == 8
    x.to_device(THERE)
    with pytest.raises(ArgumentTypeError, match="tensors alone move"):
        weft.zeros((2,))._become(weft.ones((2,)))
