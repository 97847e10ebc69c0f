"""What training loops are made of elsewhere: schedules, bounds on gradients, sums of them, groups, averages, torch's batches and states."""

from __future__ import annotations

import copy
import math
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import autograd, layer, model, opt, tensor
from weft.errors import ArgumentTypeError, ArgumentValueError, ModelError, StateFileError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RNG = np.random.default_rng(21)


def one_cycle(step: float, top: float, total: int, share: float = 0.3, div: float = 25, final: float = 1e4) -> float:
    """As PyTorch computes it."""

    def anneal(start: float, end: float, pct: float) -> float:
        return end + (start - end) / 2 * (math.cos(math.pi * pct) + 1)

    first, last = share * total - 1, total - 1
    if step <= first:
        return anneal(top / div, top, step / first)
    return anneal(top, top / div / final, min(step - first, last - first) / (last - first))


def cosine(step: float, start: float, steps: int, end: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(step, steps) / steps)) / 2


SCHEDULES: dict[str, tuple[opt.DecayScheduler, Callable[[float], float]]] = {
    "step": (opt.StepDecay(0.5, 3, 0.1), lambda s: 0.5 * 0.1 ** (s // 3)),
    "steps": (opt.StepDecay(0.5, [2, 5], 0.1), lambda s: 0.5 * 0.1 ** ((s >= 2) + (s >= 5))),
    "cosine": (opt.CosineDecay(0.5, 6, 0.1), lambda s: cosine(s, 0.5, 6, 0.1)),
    "warm-up": (opt.WarmUp(0.5, 4, 0.1), lambda s: 0.1 + 0.4 * min(s, 4) / 4),
    "warm-up, cosine": (
        opt.WarmUp(opt.CosineDecay(0.5, 6), 4),
        lambda s: 0.5 * s / 4 if s < 4 else cosine(s - 4, 0.5, 6, 0),
    ),
    "cycle": (opt.OneCycle(0.5, 9), lambda s: one_cycle(s, 0.5, 9)),
    "cycle from its top": (opt.OneCycle(0.5, 9, pct_start=0.0), lambda s: cosine(s + 1, 0.5, 9, 0.5 / 25e4)),
}


@pytest.mark.parametrize("case", SCHEDULES)
def test_schedules_are_their_formulas_eagerly_and_in_programs(case: str) -> None:
    rate, formula = SCHEDULES[case]
    for step in range(12):
        assert rate(weft.asarray([float(step)])).item() == pytest.approx(formula(step), rel=1e-12, abs=1e-15)
    found = []
    for recorded in (False, True):
        w, descent = weft.zeros(1), opt.SGD(rate)
        w.requires_grad = True

        def step_once(descent: opt.SGD = descent, w: weft.NDArray = w) -> None:
            descent(weft.sum(w))

        run = weft.program(step_once, static_argnames=("descent",)) if recorded else step_once
        for _ in range(11):
            run()
        found.append(w.item())
    assert found[0] == found[1] == pytest.approx(-sum(map(formula, range(11))), rel=1e-5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: opt.StepDecay(0.1, 0), "step_size is a positive number of steps, not 0"),
        (lambda: opt.CosineDecay(0.1, -1), "decay_steps is a positive number of steps"),
        (lambda: opt.WarmUp(0.1, math.inf), "warmup_steps is a positive number of steps"),
        (lambda: opt.OneCycle(0.1, 10, pct_start=2), "pct_start is a share"),
        (lambda: opt.OneCycle(0.1, 10, div_factor=0), "div_factor is a positive number, not 0"),
        (lambda: opt.clip_grad_norm({}, 0.0), "max_norm is a positive number"),
        (lambda: opt.clip_grad_norm([3], 1.0), "takes pairs of parameters and gradients"),
        (lambda: opt.GradientSum().take(), "nothing was added"),
        (lambda: opt.EMA({"w": weft.ones(1)}, 2), "decay is between 0 and 1"),
        (lambda: opt.EMA(3), "takes a model or its get_params"),
        (lambda: opt.ParamGroups({}), "takes a dict of optimizers"),
        (lambda: opt.ParamGroups({"*": 0.1}), "'[*]' has no optimizer, but 0.1"),
        (lambda: opt.ParamGroups(dict.fromkeys("ab", opt.SGD())), "an optimizer of its own"),
        (lambda: opt.ParamGroups({"*.W": opt.SGD()}).prepare({"b": weft.ones(1)}), "'b' matches none of '[*].W'"),
    ],
)
def test_mistakes(make: Any, said: str) -> None:
    with pytest.raises((ArgumentValueError, ArgumentTypeError), match=said):
        make()


def leaves(*shapes: tuple[int, ...]) -> list[weft.NDArray]:
    found = [weft.asarray(RNG.normal(size=shape)) for shape in shapes]
    for each in found:
        each.requires_grad = True
    return found


def test_the_norm_of_all_gradients_is_bounded() -> None:
    a, b = leaves((3, 2), (4,))
    pairs = {a: RNG.normal(size=a.shape), b: RNG.normal(size=b.shape)}
    norm = math.sqrt(sum(float((g**2).sum()) for g in pairs.values()))
    for bound in (norm / 3, norm * 3):
        found, said = opt.clip_grad_norm({p: weft.asarray(g) for p, g in pairs.items()}, bound)
        assert said.item() == pytest.approx(norm)
        for p, g in pairs.items():
            np.testing.assert_allclose(found[p].numpy(), g * min(1, bound / (norm + 1e-6)), rtol=1e-12)
    half = weft.asarray([300.0, 400.0], dtype=weft.float16)  # the squares are beyond it
    found, said = opt.clip_grad_norm([(a, half)], 5.0)
    assert (said.item(), found[a].dtype) == (500.0, np.float16)
    np.testing.assert_allclose(found[a].numpy(), [3, 4], rtol=1e-3)
    assert opt.clip_grad_norm([], 1.0)[1].item() == 0


def test_a_sum_of_gradients_steps_as_one_batch_does() -> None:
    batches = RNG.normal(size=(3, 4, 2))
    (whole,) = leaves((2,))
    parts = weft.asarray(whole.numpy())
    parts.requires_grad = True
    first, second, sums = opt.Adam(0.1), opt.Adam(0.1), opt.GradientSum()
    for _ in range(2):
        first(weft.mean(weft.asarray(batches.reshape(-1, 2)) @ whole))
        for batch in batches:
            sums.add(autograd.gradients(weft.mean(weft.asarray(batch) @ parts)))
        second.apply_gradients(sums.take())
    np.testing.assert_allclose(parts.numpy(), whole.numpy(), rtol=1e-12)
    assert second.step_counter.item() == 2


def test_averages_follow_and_are_lent() -> None:
    (w,) = leaves((3,))
    ema, mine = opt.EMA({"w": w}, 0.75), w.numpy().copy()
    step = weft.program(ema.update)
    for _ in range(3):
        with autograd.no_grad():
            w += 1
        step()
        mine = 0.75 * mine + 0.25 * w.numpy()
    np.testing.assert_allclose(ema.averages["w"].numpy(), mine, rtol=1e-12)
    before = w.tolist()
    with ema.applied():
        assert w.tolist() == ema.averages["w"].tolist()
    assert w.tolist() == before
    ema.set_states({"w": np.zeros(3)})
    assert ema.averages["w"].tolist() == [0, 0, 0]
    with pytest.raises(ModelError, match="compile the model first"):
        opt.EMA(layer.Linear(3))


class Net(model.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense1, self.dense2, self.loss = layer.Linear(4), layer.Linear(3), layer.SoftMaxCrossEntropy()

    def forward(self, x: Any) -> Any:
        return self.dense2(weft.tanh(self.dense1(x)))

    def train_one_batch(self, x: Any, y: Any) -> Any:
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


X, Y = RNG.normal(size=(6, 2)).astype(np.float32), np.arange(6) % 3


def grouped() -> opt.ParamGroups:
    return opt.ParamGroups({"dense1.*": opt.SGD(0.0), "*.b": opt.Adam(0.1), "*": opt.SGD(0.1, momentum=0.9)})


def compiled(optimizer: Any, **mode: bool) -> Net:
    weft.device.get_default_device().SetRandSeed(5)
    net = Net()
    net.set_optimizer(optimizer)
    net.compile([X], **mode)
    return net


@pytest.mark.parametrize("use_graph", [False, True], ids=["eager", "graph"])
def test_groups_of_parameters_and_their_states(use_graph: bool, tmp_path: Path) -> None:
    net = compiled(grouped(), use_graph=use_graph)
    before = {name: value.tolist() for name, value in net.get_params().items()}
    for _ in range(3):
        net(X, Y)
    changed = {name for name, value in net.get_params().items() if value.tolist() != before[name]}
    assert changed == {"dense2.W", "dense2.b"}
    net.save_states(tmp_path / "net.zip")
    other = compiled(grouped(), use_graph=use_graph)
    other.load_states(tmp_path / "net.zip")
    net(X, Y)
    other(X, Y)
    assert [w.tolist() for w in net.get_params().values()] == [w.tolist() for w in other.get_params().values()]
    assert other.optimizer.groups["*.b"].step_counter.item() == 4
    with pytest.raises(StateFileError, match="another optimizer"):
        compiled(opt.SGD(0.1, momentum=0.9)).load_states(tmp_path / "net.zip")
    net.optimizer.groups["dense1.*"].lr = 0.1
    net(X, Y)
    assert net.dense1.W.tolist() != before["dense1.W"]
    with pytest.raises(AttributeError, match="each group has a rate of its own"):
        net.optimizer.lr = 0.1


class Theirs:
    """As a tensor of torch's on the host: neither its dtype nor its device is NumPy's."""

    def __init__(self, elements: Any) -> None:
        self._elements = np.asarray(elements)

    shape = property(lambda self: self._elements.shape)
    ndim = property(lambda self: self._elements.ndim)
    dtype, device = "torch.float32", "cpu"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._elements

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def detach(self) -> Theirs:
        return self

    cpu = detach


def pickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
@pytest.mark.parametrize("use_graph", [False, True], ids=["eager", "graph"])
def test_copies_of_models_train_as_they_do_and_apart(use_graph: bool, duplicate: Any) -> None:
    net = compiled(grouped(), use_graph=use_graph)
    net(X, Y)
    other = duplicate(net)
    assert [*other.get_params()] == [*net.get_params()] != []
    before = [w.numpy().copy() for w in net.get_params().values()]
    other(X, Y)
    other(X, Y)
    assert all(map(np.array_equal, (w.numpy() for w in net.get_params().values()), before))
    net(X, Y)
    net(X, Y)
    for mine, theirs in zip(net.get_params().values(), other.get_params().values(), strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_copies_of_layers_have_their_parameters_and_states(duplicate: Any) -> None:
    norm, x = layer.BatchNorm2d(), weft.asarray(RNG.normal(size=(2, 3, 4, 4)))
    expected = norm(x)
    norm.scale.name = "norm.scale"
    other = duplicate(norm)
    assert [*other.get_params()] == ["scale", "bias"]
    assert [*other.get_states()] == [*norm.get_states()]
    assert (type(other.scale), other.scale.name) == (tensor.Tensor, "norm.scale")
    assert other(x).tolist() == expected.tolist()
    with autograd.no_grad():
        other.scale += 1
    assert norm(x).tolist() == expected.tolist()
    norm.freeze()
    assert [*duplicate(norm).get_params()] == []
    assert [*duplicate(norm).get_states()] == [*norm.get_states()]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_sums_of_gradients_are_copied_with_their_parameters(duplicate: Any) -> None:
    w, sums = tensor.Tensor((2,), stores_grad=True), opt.GradientSum()
    sums.add(autograd.gradients((w * 2).sum()))
    w, sums = duplicate((w, sums))
    sums.add(autograd.gradients((w * 4).sum()))
    ((parameter, mean),) = sums.take().items()
    assert parameter is w
    assert mean.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("use_graph", [False, True], ids=["eager", "graph"])
def test_batches_of_torch(use_graph: bool) -> None:
    net, same = compiled(opt.SGD(0.1), use_graph=use_graph), compiled(opt.SGD(0.1), use_graph=use_graph)
    memory = np.empty_like(X)
    loader = [(Theirs(memory), Theirs(Y))] * 3  # as a loader that fills the same memory again
    found = []
    for at, (x, y) in enumerate(loader):
        memory[...] = X + at
        found.append(net(x, y)[1])
        memory[...] = np.nan
    wanted = [same(weft.asarray(X + np.float32(at)), weft.asarray(Y))[1] for at in range(3)]
    assert [float(loss) for loss in found] == [float(loss) for loss in wanted]
    assert len(net.programs) == int(use_graph)
    memory[...] = X
    other = Net()
    other.compile([Theirs(X)])
    other.eval()
    assert other(Theirs(X)).shape == (6, 3)
    assert layer.Linear(2)(Theirs(X)).shape == (6, 2)


def test_a_model_that_only_evaluates_is_told_so() -> None:
    class Forward(model.Model):
        def __init__(self) -> None:
            self.dense = layer.Linear(3)

        def forward(self, x: Any) -> Any:
            return self.dense(x)

    net = Forward()
    net.compile([X])
    with pytest.raises(NotImplementedError, match=r"call net.eval\(\) first"):
        net(X)
    net.eval()
    assert net(X).shape == (6, 3)


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".pt"])
def test_files_of_other_formats_are_refused(suffix: str, tmp_path: Path) -> None:
    net, path = compiled(opt.SGD(0.1)), tmp_path / f"net{suffix}"
    with pytest.raises(ArgumentValueError, match=r"save_states writes a zip, and .* has the suffix of another format"):
        net.save_states(path)
    assert not path.exists()
    path.write_bytes(b"something else")
    with pytest.raises(StateFileError, match=rf"A {suffix} file is read by net.set_states"):
        net.load_states(path)


def test_states_by_name_in_files_of_both_formats(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    net = compiled(opt.SGD(0.1))
    for suffix in (".safetensors", ".npz"):
        weft.save(tmp_path / f"net{suffix}", **net.get_states())
        other = compiled(opt.SGD(0.1))
        other.set_states({name: np.zeros(value.shape) for name, value in other.get_states().items()})
        other.set_states(weft.load(tmp_path / f"net{suffix}"))
        assert {n: v.tolist() for n, v in other.get_states().items()} == {
            n: v.tolist() for n, v in net.get_states().items()
        }


# States of PyTorch's modules: what its documentation says they compute, by NumPy.


def f4(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_a_module_of_torch_computes_the_same_here() -> None:
    states: dict[str, Any] = {
        "embed.weight": f4(7, 6), "norm.weight": f4(6), "norm.bias": f4(6), "attend.in_proj_weight": f4(18, 6),
        "attend.in_proj_bias": f4(18), "attend.out_proj.weight": f4(6, 6), "attend.out_proj.bias": f4(6),
        "feed.0.weight": f4(5, 6), "feed.0.bias": f4(5), "feed.2.weight": f4(2, 5), "feed.2.bias": f4(2),
    }  # fmt: skip

    class Block(layer.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm, self.attend = layer.Embedding(7, 6), layer.LayerNorm(6), layer.MultiHeadAttention(2)
            self.feed = layer.Sequential(layer.Linear(5), layer.ReLU(), layer.Linear(2))

        def forward(self, x: Any) -> Any:
            return self.feed(self.attend(self.norm(self.embed(x))))

    net, ids = Block(), RNG.integers(0, 7, (3, 4))
    net(weft.asarray(ids))
    net.set_states(model.torch_states(net, {name: Theirs(value) for name, value in states.items()}))
    x = states["embed.weight"][ids].astype(float)
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    x = x * states["norm.weight"] + states["norm.bias"]
    q, k, v = np.split(x @ states["attend.in_proj_weight"].T + states["attend.in_proj_bias"], 3, axis=-1)
    q, k, v = (each.reshape(3, 4, 2, 3).transpose(0, 2, 1, 3) for each in (q, k, v))
    weights = np.exp(q @ k.transpose(0, 1, 3, 2) / np.sqrt(3))
    found = (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(3, 4, 6)
    found = found @ states["attend.out_proj.weight"].T + states["attend.out_proj.bias"]
    found = np.maximum(found @ states["feed.0.weight"].T + states["feed.0.bias"], 0)
    wanted = found @ states["feed.2.weight"].T + states["feed.2.bias"]
    np.testing.assert_allclose(net(weft.asarray(ids)).numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_convolutions_and_running_averages_of_torch() -> None:
    states = {
        "0.weight": f4(4, 3, 2, 2), "0.bias": f4(4), "1.weight": f4(4), "1.bias": f4(4), "1.running_mean": f4(4),
        "1.running_var": np.square(f4(4)), "1.num_batches_tracked": np.asarray(9), "2.weight": f4(4), "2.bias": f4(4),
    }  # fmt: skip
    net = layer.Sequential(layer.Conv2d(4, 2), layer.BatchNorm2d(), layer.GroupNorm(2))
    net(weft.ones((1, 3, 5, 5), np.float32))
    net.set_states(model.torch_states(net, states))
    for name, own in (("0.weight", "0.W"), ("1.running_var", "1.running_var"), ("2.weight", "2.scale")):
        np.testing.assert_array_equal(net.get_states()[own].numpy(), states[name])
    with pytest.raises(ArgumentValueError, match=r"nothing here takes 'a\.weight'; nothing there is '0\.W', '0\.b'"):
        model.torch_states(layer.Sequential(net[0]), {"a.weight": f4(1)})


@pytest.mark.parametrize("kind", ["lstm", "rnn"])
def test_recurrent_layers_of_torch(kind: str) -> None:
    gates = {"lstm": 4, "rnn": 1}[kind]
    states = {}
    for number, features in ((0, 3), (1, 10)):
        for way in ("", "_reverse"):
            states |= {
                f"weight_ih_l{number}{way}": f4(gates * 5, features), f"weight_hh_l{number}{way}": f4(gates * 5, 5),
                f"bias_ih_l{number}{way}": f4(gates * 5), f"bias_hh_l{number}{way}": f4(gates * 5),
            }  # fmt: skip

    def run(x: Any, suffix: str) -> Any:
        p = [states[f"{each}_{suffix}"] for each in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        h, c, found = np.zeros((2, 5)), np.zeros((2, 5)), []
        for step in x:
            z = step @ p[0].T + p[2] + h @ p[1].T + p[3]
            if kind == "rnn":
                h = np.tanh(z)
            else:
                i, f, g, o = np.split(z, 4, axis=-1)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
            found.append(h)
        return np.stack(found)

    x = f4(4, 2, 3)
    made: Any = (layer.LSTM if kind == "lstm" else layer.RNN)(3, 5, num_layers=2, bidirectional=True)
    zeros = weft.zeros((4, 2, 5), np.float32)
    start = (zeros, zeros) if kind == "lstm" else zeros
    made(weft.asarray(x), start)
    made.set_states(model.torch_states(made, states))
    wanted = x
    for number in (0, 1):
        there, back = run(wanted, f"l{number}"), run(wanted[::-1], f"l{number}_reverse")[::-1]
        wanted = np.concatenate([there, back], axis=-1)
    np.testing.assert_allclose(made(weft.asarray(x), start)[0].numpy(), wanted, rtol=1e-4, atol=1e-5)
