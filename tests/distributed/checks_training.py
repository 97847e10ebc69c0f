"""What `opt.DistOpt` makes of gradients, on however many ranks there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import autograd, device, layer, model, opt, tensor
from weft._trace.record import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft import NDArray
    from weft.distributed import Communicator

CHECKS: dict[str, Callable[[Communicator], None]] = {}

SHAPES = [(6, 16), (16,), (16, 16), (16,), (16, 3)]
ROWS = 8


def check(function: Callable[[Communicator], None]) -> Callable[[Communicator], None]:
    """List a check."""
    CHECKS[function.__name__] = function
    return function


def parameters(seed: int, scale: float = 0.5) -> list[NDArray]:
    """A perceptron's, the same for the same seed."""
    generator = np.random.default_rng(seed)
    made = [weft.asarray((generator.standard_normal(shape) * scale).astype(np.float32)) for shape in SHAPES]
    for each in made:
        each.requires_grad = True
    return made


def batch(rank: int, step: int) -> tuple[NDArray, NDArray]:
    """A rank's part of the data."""
    generator = np.random.default_rng([rank, step])
    x, y = generator.standard_normal((ROWS, 6)), generator.standard_normal((ROWS, 3))
    return weft.asarray(x.astype(np.float32)), weft.asarray(y.astype(np.float32))


def loss_of(weights: list[NDArray], x: NDArray, y: NDArray) -> NDArray:
    """The mean square of what a perceptron has wrong."""
    w1, b1, w2, b2, w3 = weights
    hidden = weft.tanh(weft.tanh(x @ w1 + b1) @ w2 + b2)
    wrong = hidden @ w3 - y
    return (wrong * wrong).mean()


def values(weights: list[NDArray]) -> list[np.ndarray[Any, Any]]:
    """The elements, as they are now."""
    return [each.numpy().copy() for each in weights]


@check
def ranks_train_as_one_process_on_several_devices(comm: Communicator) -> None:
    steps = 4
    mine = parameters(1 + comm.rank)  # the ranks begin with different ones: rank 0's count
    descent = opt.DistOpt(opt.SGD(lr=0.1, momentum=0.9, weight_decay=1e-3), communicator=comm)
    descent.prepare({f"w{at}": each for at, each in enumerate(mine)})
    for step in range(steps):
        descent(loss_of(mine, *batch(comm.rank, step)))

    whole = parameters(1)
    single = opt.SGD(lr=0.1, momentum=0.9, weight_decay=1e-3)
    for step in range(steps):
        sums: list[NDArray] | None = None
        for rank in range(comm.size):
            device = weft.cpu(rank)
            copies = [weft.asarray(each.numpy().copy()).to_device(device) for each in whole]
            for each in copies:
                each.requires_grad = True
            x, y = batch(rank, step)
            loss = loss_of(copies, x.to_device(device), y.to_device(device))
            found = autograd.gradients(loss)
            grads = [found[each].to_device(weft.cpu(0)) for each in copies]
            sums = grads if sums is None else [a + b for a, b in zip(sums, grads, strict=True)]
        assert sums is not None
        for at, (weight, gradient) in enumerate(zip(whole, sums, strict=True)):
            single.apply(f"w{at}", weight, gradient / comm.size)
        single.step()
    for one, other in zip(values(mine), values(whole), strict=True):
        if comm.size == 2:
            np.testing.assert_array_equal(one, other)  # bit for bit: a sum of two has no order
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@check
def buckets_do_not_change_a_bit(comm: Communicator) -> None:
    found = []
    for threshold in (1, 20, 1 << 20):
        weights = parameters(3)
        descent = opt.DistOpt(opt.SGD(lr=0.1), communicator=comm)
        for step in range(2):
            descent.backward_and_update(loss_of(weights, *batch(comm.rank, step)), threshold=threshold)
        found.append(values(weights))
    if comm.size == 2:
        for other in found[1:]:
            for a, b in zip(found[0], other, strict=True):
                np.testing.assert_array_equal(a, b)


@check
def half_precision_is_near(comm: Communicator) -> None:
    weights, exact = parameters(4), parameters(4)
    halves, descent = (opt.DistOpt(opt.SGD(lr=0.1), communicator=comm) for _ in range(2))
    halves.backward_and_update_half(loss_of(weights, *batch(comm.rank, 0)), threshold=100)
    descent.backward_and_update(loss_of(exact, *batch(comm.rank, 0)))
    for a, b in zip(values(weights), values(exact), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-4)
    assert any((a != b).any() for a, b in zip(values(weights), values(exact), strict=True))
    clipped = parameters(4)
    before = values(clipped)
    halves.backward_and_update_half(loss_of(clipped, *batch(comm.rank, 0)), clipping=True, clip_Value=1e-3)
    for a, b in zip(values(clipped), before, strict=True):
        assert np.abs(a - b).max() <= 1.1e-4


@check
def halves_are_reduced_by_themselves(comm: Communicator) -> None:
    for size in (1, 5, 12):
        every = [(np.arange(size) + rank).astype(np.float16) for rank in range(comm.size)]
        for op, by in (("sum", np.sum), ("mean", np.mean), ("max", np.max), ("min", np.min)):
            x = weft.asarray(every[comm.rank])
            comm.all_reduce(x, op)
            wanted = by(np.stack(every).astype(np.float32), axis=0).astype(np.float16)
            np.testing.assert_array_equal(x.numpy(), wanted)
    x = weft.asarray(np.arange(12, dtype=np.float16).reshape(3, 4))
    comm.all_reduce(x[:, ::2])
    assert x.numpy()[1].tolist() == [4.0 * comm.size, 5.0, 6.0 * comm.size, 7.0]


@check
def partial_updates_go_round(comm: Communicator) -> None:
    weights = parameters(5)
    descent = opt.DistOpt(opt.SGD(lr=0.1), communicator=comm)
    seen = set()
    for step in range(4):  # one of two parts at a time
        descent.backward_and_partial_update(loss_of(weights, *batch(comm.rank, step)), threshold=100)
        seen.add(descent.partial)
        equal = [
            float(weft.abs(comm.all_reduce(w * 1.0, "max") - comm.all_reduce(w * 1.0, "min")).max()) == 0
            for w in weights
        ]
        assert any(equal)
        assert not all(equal)
    assert seen == {0, 1}


@check
def sparse_updates_send_what_is_large(comm: Communicator) -> None:
    for top in (False, True):
        whole, part = parameters(6), parameters(6)
        dense, sparse = (opt.DistOpt(opt.SGD(lr=0.1), communicator=comm) for _ in range(2))
        dense.backward_and_update(loss_of(whole, *batch(comm.rank, 0)))
        sparse.backward_and_sparse_update(
            loss_of(part, *batch(comm.rank, 0)), spars=1.0 if top else 1e-12, topK=top, corr=False
        )
        for a, b in zip(values(part), values(whole), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)  # all of them are large enough
    kept = parameters(6)
    before = values(kept)
    descent = opt.DistOpt(opt.SGD(lr=1.0), communicator=comm)
    gradients = autograd.gradients(loss_of(kept, *batch(comm.rank, 0)))
    descent.backward_and_sparse_update(loss_of(kept, *batch(comm.rank, 0)), spars=0.1, topK=True)
    sent = np.concatenate([(a - b).ravel() for a, b in zip(before, values(kept), strict=True)][::-1])
    count = int(np.ceil(0.1 * sent.size))
    assert count <= np.count_nonzero(sent) <= comm.size * count
    rest = np.sort(np.abs(descent.gradAccumulation[0].numpy()))
    every = np.sort(np.abs(np.concatenate([g.numpy().ravel() for g in gradients.values()])))
    np.testing.assert_allclose(rest[count:], every[:-count], rtol=1e-6)  # what was not sent waits
    assert not rest[:count].any()


@check
def parameters_are_rank_0s(comm: Communicator) -> None:
    weights = parameters(10 + comm.rank)
    descent = opt.DistOpt(opt.SGD(lr=0.0), communicator=comm)
    descent(loss_of(weights, *batch(comm.rank, 0)))
    for one, other in zip(values(weights), values(parameters(10)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (descent.world_size, descent.global_rank, descent.local_rank) == (comm.size, comm.rank, comm.rank)
    assert descent.lr_value.item() == 0.0
    with pytest.raises(ValueError, match="world_size is"):
        opt.DistOpt(opt.SGD(), world_size=comm.size + 1, communicator=comm)
    with pytest.raises(TypeError, match="wraps an optimizer"):
        opt.DistOpt(0.1, communicator=comm)  # type: ignore[arg-type]


@check
def wrong_numbers_are_refused_before_anything_is_sent(comm: Communicator) -> None:
    weights = parameters(5)
    before = values(weights)
    descent = opt.DistOpt(opt.SGD(lr=0.1), communicator=comm)
    modes: dict[str, Callable[..., None]] = {
        "threshold": descent.backward_and_update,
        "threshold (half)": descent.backward_and_update_half,
        "threshold (partial)": descent.backward_and_partial_update,
        "threshold (sparse)": descent.backward_and_sparse_update,
    }
    for name, mode in modes.items():
        for wrong in (-5, float("nan")):
            with pytest.raises(ValueError, match="threshold is a number of elements, at least 0"):
                mode(loss_of(weights, *batch(comm.rank, 0)), threshold=wrong)
        with pytest.raises(TypeError, match="threshold is a number of elements, not str"):
            mode(loss_of(weights, *batch(comm.rank, 0)), threshold=name)
    for wrong in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="clip_Value is a positive number"):
            descent.backward_and_update_half(loss_of(weights, *batch(comm.rank, 0)), clip_Value=wrong)
        with pytest.raises(ValueError, match="spars is a positive number, not"):
            descent.backward_and_sparse_update(loss_of(weights, *batch(comm.rank, 0)), spars=wrong)
    with pytest.raises(ValueError, match=r"a share of at most 1, not 1.5"):
        descent.sparsification(weft.ones(3), None, 1.5, True)
    for wrong in (0, float("nan")):
        with pytest.raises(ValueError, match="buffSize is a number of elements, at least 1"):
            opt.DistOpt(opt.SGD(), buffSize=wrong, communicator=comm)  # type: ignore[arg-type]
    for one, other in zip(values(weights), before, strict=True):
        np.testing.assert_array_equal(one, other)
    descent.backward_and_update(loss_of(weights, *batch(comm.rank, 0)), threshold=0)  # each by itself


@check
def a_recorded_step_reduces_gradients(comm: Communicator) -> None:
    weights, eager = parameters(7), parameters(7)
    descent, plain = (opt.DistOpt(opt.SGD(lr=0.1, momentum=0.9), communicator=comm) for _ in range(2))

    @weft.program
    def train(x: NDArray, y: NDArray) -> NDArray:
        loss = loss_of(weights, x, y)
        descent(loss)
        return loss

    for step in range(3):
        first = train(*batch(comm.rank, step))
        second = loss_of(eager, *batch(comm.rank, step))
        plain(second)
        assert first.item() == second.item()
    for one, other in zip(values(weights), values(eager), strict=True):
        np.testing.assert_array_equal(one, other)


def hidden(trace: weft.Trace, cost: Callable[[str], float]) -> float:
    """How much of the communication lies behind computation, were ops to cost what `cost` says: in virtual time.

    One worker computes and one communicates, each the first in order of what is ready.
    """
    ops, names = trace.ops, trace.names
    todo = [at for at in range(len(ops)) if ops[at]["kind"] != Kind.WAIT]
    needs: dict[int, set[int]] = {at: set() for at in todo}
    for before, after in trace.dependencies:
        if int(before) in needs and int(after) in needs:
            needs[int(after)].add(int(before))
    free = {False: 0.0, True: 0.0}
    ends: dict[int, float] = {}
    spans: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    while todo:
        # The op that can begin first, and of those the one pushed first.
        start, at = min(
            (max([free["all_reduce" in names[ops[at]["name"]]], *(ends[each] for each in needs[at])]), at)
            for at in todo
            if needs[at] <= ends.keys()
        )
        todo.remove(at)
        name = names[ops[at]["name"]]
        sends = "all_reduce" in name
        ends[at] = free[sends] = start + cost(name)
        spans[sends].append((start, ends[at]))
    total = sum(end - start for start, end in spans[True])
    behind = sum(max(0.0, min(e, f) - max(s, t)) for s, e in spans[True] for t, f in spans[False])
    return behind / total


@check
def communication_goes_behind_backward(comm: Communicator) -> None:
    size, layers = 32, 8
    weights = [weft.asarray(np.eye(size, dtype=np.float32)) for _ in range(layers)]
    for each in weights:
        each.requires_grad = True
    descent = opt.DistOpt(opt.SGD(lr=0.1), communicator=comm)

    def forward() -> NDArray:
        x = weft.ones((size, size), dtype="float32")
        for each in weights:
            x = weft.tanh(x @ each)
        return x.sum()

    descent.backward_and_update(forward(), threshold=size * size - 1)
    loss = forward()
    loss.wait_to_read()
    comm.wait()
    with weft.trace() as trace:
        descent.backward_and_update(loss, threshold=size * size - 1)
        weft.wait_all()
    sent = sum("all_reduce" in trace.names[op["name"]] for op in trace.ops)
    assert sent == layers
    assert trace.summary().overlap_fraction is not None  # in real time, which no test can be sure of
    # Products cost 10, what is sent 8: backward, two products a layer, is longer than the communication.
    costs = {"matmul": 10.0, "all_reduce": 8.0}
    share = hidden(trace, lambda name: next((cost for key, cost in costs.items() if key in name), 0.1))
    assert share >= 0.8, (share, [trace.names[op["name"]] for op in trace.ops if op["kind"] != 6])


class Net(model.Model):
    """The network of SINGA's documentation, small: written as there, and knowing nothing of ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = layer.Conv2d(1, 4, 3, padding=0, activation="RELU")
        self.pool1 = layer.MaxPool2d(2, 2, padding=0)
        self.flatten = layer.Flatten()
        self.dense1 = layer.Linear(12)
        self.relu = layer.ReLU()
        self.dense2 = layer.Linear(5)
        self.loss = layer.SoftMaxCrossEntropy()

    def forward(self, x: NDArray) -> NDArray:
        found: NDArray = self.dense2(self.relu(self.dense1(self.flatten(self.pool1(self.conv1(x))))))
        return found

    def train_one_batch(
        self, x: NDArray, y: NDArray, dist_option: str = "plain", spars: float = 0.05
    ) -> tuple[NDArray, NDArray]:
        out = self.forward(x)
        loss = self.loss(out, y)
        if dist_option == "plain":
            self.optimizer(loss)
        elif dist_option == "half":
            self.optimizer.backward_and_update_half(loss, clipping=True, clip_Value=2.5)
        elif dist_option == "partialUpdate":
            self.optimizer.backward_and_partial_update(loss, threshold=50)
        elif dist_option == "sparseTopK":
            self.optimizer.backward_and_sparse_update(loss, topK=True, spars=spars)
        elif dist_option == "sparseThreshold":
            self.optimizer.backward_and_sparse_update(loss, topK=False, spars=spars)
        return out, loss


def images(rank: int, step: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A rank's part of the pictures, and their classes."""
    generator = np.random.default_rng([9, rank, step])
    return generator.standard_normal((4, 1, 10, 10)).astype(np.float32), generator.integers(0, 5, 4).astype(np.int32)


def compiled(seed: int, descent: Any, *, use_graph: bool, sequential: bool = False) -> tuple[Net, NDArray, NDArray]:
    """A network that is ready to be trained, and its inputs."""
    dev = device.get_default_device()
    dev.SetRandSeed(seed)
    x, y = tensor.Tensor((4, 1, 10, 10), dev, tensor.float32), tensor.Tensor((4,), dev, tensor.int32)
    net = Net()
    net.set_optimizer(descent)
    net.compile([x], is_train=True, use_graph=use_graph, sequential=sequential)
    return net, x, y


def trained_on_ranks(comm: Communicator, steps: int, **options: bool) -> list[np.ndarray[Any, Any]]:
    """The parameters of a model that all ranks have trained."""
    descent = opt.DistOpt(opt.SGD(lr=0.05, momentum=0.9, weight_decay=1e-5), communicator=comm)
    net, x, y = compiled(20 + comm.rank, descent, **options)  # rank 0's parameters count
    for step in range(steps):
        pictures, classes = images(comm.rank, step)
        x.copy_from_numpy(pictures)
        y.copy_from_numpy(classes)
        _, loss = net(x, y)
        assert np.isfinite(loss.numpy()).all()
    return values(list(net.get_params().values()))


def trained_alone(ranks: int, steps: int) -> list[np.ndarray[Any, Any]]:
    """The same of one process, which computes with all parts one after another."""
    single = opt.SGD(lr=0.05, momentum=0.9, weight_decay=1e-5)
    net, _, _ = compiled(20, single, use_graph=False)
    for step in range(steps):
        sums: dict[str, NDArray] = {}
        for rank in range(ranks):
            pictures, classes = images(rank, step)
            autograd.training = True  # as it is inside of a model's calls
            gradients = autograd.gradients(net.loss(net.forward(weft.asarray(pictures)), weft.asarray(classes)))
            autograd.training = False
            for name, parameter in net.get_params().items():
                sums[name] = sums[name] + gradients[parameter] if name in sums else gradients[parameter]
        for name, parameter in net.get_params().items():
            single.apply(name, parameter, sums[name] / ranks)
        single.step()
    return values(list(net.get_params().values()))


@check
def models_train_as_they_are(comm: Communicator) -> None:
    eagerly = trained_on_ranks(comm, 3, use_graph=False)
    graph = trained_on_ranks(comm, 3, use_graph=True)
    serial = trained_on_ranks(comm, 3, use_graph=True, sequential=True)
    for one, *others, alone in zip(eagerly, graph, serial, trained_alone(comm.size, 3), strict=True):
        for other in others:
            np.testing.assert_array_equal(one, other)
        if comm.size == 2:
            np.testing.assert_array_equal(one, alone)
        np.testing.assert_allclose(one, alone, rtol=1e-4, atol=1e-6)


@check
def models_train_in_every_mode(comm: Communicator) -> None:
    for mode in ("plain", "half", "partialUpdate", "sparseTopK", "sparseThreshold"):
        for use_graph in (False, True):
            descent = opt.DistOpt(opt.SGD(lr=0.05), communicator=comm)
            net, x, y = compiled(5, descent, use_graph=use_graph)
            pictures, classes = images(comm.rank, 0)
            x.copy_from_numpy(pictures)
            y.copy_from_numpy(classes)
            losses = [float(net(x, y, mode, spars=0.2)[1].numpy().mean()) for _ in range(8)]
            assert losses[-1] < losses[0], (mode, use_graph, losses)
            if mode != "partialUpdate":  # of which each rank's other parameters are its own
                for each in net.get_params().values():
                    first, *others = comm.all_gather(each).numpy()
                    assert all((first == other).all() for other in others), (mode, use_graph)
