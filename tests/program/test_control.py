"""Programs in programs, loops and branches, blocks, switches, methods, pickling."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ArgumentValueError, CaptureError, GraphError


def accumulate(total: Any, x: Any) -> Any:
    total = total * 0.5 + x
    return total, weft.tanh(total)


def test_scan_is_a_loop() -> None:
    xs = weft.random.default_rng(3).random((5, 4))
    total, rows = weft.zeros(4), []
    for x in xs:
        total, row = accumulate(total, x)
        rows.append(row.tolist())
    calls = []

    def body(total: Any, x: Any) -> Any:
        calls.append(1)
        return accumulate(total, x)

    for _ in range(2):
        last, found = weft.scan(body, weft.zeros(4), xs)
        assert last.tolist() == total.tolist()
        assert found.tolist() == rows
    assert len(calls) == 1, "the body is recorded once"
    step = weft.program(lambda init, xs: weft.scan(accumulate, init, xs))
    for _ in range(2):
        last, found = step(weft.zeros(4), xs)
        assert last.tolist() == total.tolist()
        assert found.tolist() == rows


def test_scan_of_nested_arrays() -> None:
    def body(carry: Any, x: Any) -> Any:
        return {"sum": carry["sum"] + x["a"], "count": carry["count"] + 1}, (x["a"] * x["b"], None)

    xs = {"a": weft.arange(3.0), "b": weft.arange(3.0) + 1}
    carry, (products, nothing) = weft.scan(body, {"sum": weft.asarray(0.0), "count": weft.asarray(0)}, xs)
    assert carry["sum"].item() == 3.0
    assert carry["count"].item() == 3
    assert products.tolist() == [0.0, 2.0, 6.0]
    assert nothing is None
    doubled, ys = weft.scan(lambda c, _: (c * 2, None), weft.asarray(1.0), None, length=10)
    assert doubled.item() == 1024.0
    assert ys is None


def test_scan_refuses_what_it_cannot_walk() -> None:
    with pytest.raises(ArgumentValueError, match="rows"):
        weft.scan(accumulate, weft.zeros(2), [weft.ones((3, 2)), weft.ones((4, 2))])
    with pytest.raises(ArgumentValueError, match="length"):
        weft.scan(accumulate, weft.zeros(2), None)
    with pytest.raises(ArgumentValueError, match=r"float64\[2\]"):
        weft.scan(lambda c, x: (c[:1], x), weft.zeros(2), weft.ones((3, 2)))
    with pytest.raises(TypeError, match="pair"):
        weft.scan(weft.add, weft.zeros(2), weft.ones((3, 2)))


def test_cond_chooses() -> None:
    called = []

    def branch(name: str) -> Any:
        def run(x: Any) -> Any:
            called.append(name)
            return {"y": x * 2 if name == "up" else x - 1}

        return run

    up, down = branch("up"), branch("down")
    assert weft.cond(weft.asarray(True), up, down, weft.ones(2))["y"].tolist() == [2.0, 2.0]
    assert weft.cond(False, up, down, weft.ones(2))["y"].tolist() == [0.0, 0.0]
    assert called == ["up", "down"], "outside of programs one branch runs"
    step = weft.program(lambda x: weft.cond(x.sum() > 0, up, down, x))
    for _ in range(2):
        assert step(weft.ones(2))["y"].tolist() == [2.0, 2.0]
        assert step(-weft.ones(2))["y"].tolist() == [-2.0, -2.0]
    assert len(step.programs) == 1


def test_cond_refuses_branches_that_differ_or_change_arrays() -> None:
    w = weft.ones(2)

    def change(x: Any) -> Any:
        x += 1
        return x

    def change_state(x: Any) -> Any:
        w.fill(0.0)
        return x

    for f in (change, change_state):
        step = weft.program(lambda x, f=f: weft.cond(x.sum() > 0, f, lambda x: x, x), static_argnames="f")
        with pytest.raises(CaptureError, match=r"cond.*test_control"):
            step(weft.ones(2))
    step = weft.program(lambda x: weft.cond(x.sum() > 0, lambda x: x, lambda x: x[:1], x))
    with pytest.raises(ArgumentValueError, match=r"float64\[2\].*float64\[1\]"):
        step(weft.ones(2))
    local = weft.program(lambda x: weft.cond(x.sum() > 0, lambda x: change(x * 1), lambda x: x, x))
    assert local(weft.ones(2)).tolist() == [2.0, 2.0]


def test_programs_are_inlined() -> None:
    inner = weft.program(lambda x: weft.tanh(x) * 2)
    outer = weft.program(lambda x: inner(inner(x)))
    x = weft.ones(3)
    wanted = (weft.tanh(weft.tanh(x) * 2) * 2).tolist()
    assert outer(x).tolist() == wanted
    assert outer(x).tolist() == wanted
    assert not inner.programs
    assert len(outer.programs) == 1


def test_a_block_is_a_program() -> None:
    x, w = weft.ones(3), weft.full(3, 0.5)
    with weft.capture("step") as program:
        y = x * 2
        w += y
        z = y[1:]
    assert w.tolist() == [0.5] * 3, "nothing runs in the block"
    for number in range(1, 4):
        program.replay()
        assert w.tolist() == [0.5 + 2 * number] * 3
        assert y.tolist() == [2.0] * 3, "arrays that are held are the program's own"
        assert z.tolist() == [2.0] * 2
    x.fill(2.0)
    program.replay(sequential=True)
    assert y.tolist() == [4.0] * 3
    assert {id(state) for state in program.states} or program.states
    assert program.name == "step"


def test_eager_switches_programs_off() -> None:
    ran = []

    @weft.program
    def step(x: Any) -> Any:
        ran.append(float(x.sum()) if not recording else None)
        return x * 2

    recording = False
    with weft.eager():
        with weft.eager():
            assert step(weft.ones(2)).tolist() == [2.0, 2.0]
        assert step(weft.ones(3)).tolist() == [2.0] * 3
    assert ran == [2.0, 3.0]
    assert not step.programs
    recording = True
    step(weft.ones(2)), step(weft.ones(2))
    assert ran == [2.0, 3.0, None]


class Net:
    """A model of one layer."""

    def __init__(self) -> None:
        self.w = weft.ones((2, 2))

    @weft.program
    def forward(self, x: Any, scale: float = 1.0) -> Any:
        """Compute the layer."""
        return x @ self.w * scale


def test_methods_bind() -> None:
    net = Net()
    x = weft.ones((1, 2))
    assert net.forward(x).tolist() == [[2.0, 2.0]]
    assert net.forward(x, scale=2.0).tolist() == [[4.0, 4.0]]
    assert net.forward.lower(x) in net.forward.programs
    assert len(net.forward.programs) == 2
    assert "scale was 1.0, and is 2.0" in net.forward.why()
    assert net.forward.__doc__ == "Compute the layer."
    assert net.forward.__name__ == "forward"
    net.forward.clear()
    assert not net.forward.programs


@weft.program
def module_step(x: Any) -> Any:
    return weft.tanh(x) + 1


def plain_step(x: Any) -> Any:
    return weft.tanh(x) + 1


program_of_plain = weft.program(plain_step, sequential=True)


def test_programs_are_copied_as_functions_are() -> None:
    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        return x + 1

    class Holder:
        """Holds a program, and its method is one."""

        by = 2

        def __init__(self) -> None:
            self.step = step

        @weft.program
        def scaled(self, x: weft.NDArray) -> weft.NDArray:
            return x * self.by

    holder = Holder()
    assert copy.copy(step) is copy.deepcopy(step) is copy.deepcopy(holder).step is step
    assert copy.copy(holder.scaled)(weft.ones(1)).tolist() == [2]
    of_copy = copy.deepcopy(holder.scaled)
    holder.by = 5
    assert of_copy(weft.ones(1)).tolist() == [2]
    assert holder.scaled(weft.ones(1)).tolist() == [5]


def test_programs_pickle() -> None:
    x = weft.ones(3)
    assert pickle.loads(pickle.dumps(module_step)) is module_step
    again = pickle.loads(pickle.dumps(program_of_plain))
    assert again(x).tolist() == program_of_plain(x).tolist()
    recorded = module_step.lower(x)
    module_step.clear()
    loaded = pickle.loads(pickle.dumps(recorded))
    assert loaded.replay(arguments=[x])[0].tolist() == module_step(x).tolist()
    net = pickle.loads(pickle.dumps(Net()))
    assert net.forward(weft.ones((1, 2))).tolist() == [[2.0, 2.0]]
    with pytest.raises(pickle.PicklingError, match=r"lambda.*at the top of a module"):
        pickle.dumps(weft.program(lambda x: x))
    with weft.capture("block") as block:
        x += 1
    with pytest.raises(TypeError, match="block"):
        pickle.dumps(block)


def test_lower_takes_avals() -> None:
    calls = []

    @weft.program
    def step(x: Any, layers: Any) -> Any:
        calls.append(1)
        for w in layers:
            x = weft.tanh(x @ w)
        return x.sum()

    f4 = np.dtype("float32")
    layers = [weft.Aval((8, 8), f4), weft.Aval((8, 4), f4)]
    program = step.lower(weft.Aval((2, 8), f4), layers)
    assert program.ops >= 3
    result = step(weft.ones((2, 8), dtype=f4), [weft.ones((8, 8), dtype=f4), weft.ones((8, 4), dtype=f4)])
    assert result.shape == ()
    assert step.programs == (program,)
    assert calls == [1]


def test_asyncio_awaits_results() -> None:
    step = weft.program(lambda x: weft.tanh(x) + 1)

    async def main() -> list[Any]:
        results = await asyncio.gather(*(await_array(step(weft.full(3, float(k)))) for k in range(4)))
        return [result.tolist() for result in results]

    async def await_array(x: weft.NDArray) -> weft.NDArray:
        return await x

    assert asyncio.run(main()) == [(weft.tanh(weft.full(3, float(k))) + 1).tolist() for k in range(4)]


@pytest.mark.parametrize("every", [1, 2, 3])
def test_verified_calls_see_what_nobody_noticed(every: int) -> None:
    rates, w = [2.0], weft.ones(3)

    @weft.program(verify=every)
    def step(x: Any) -> Any:
        nonlocal w
        w += x
        return w * rates[0]

    x = weft.ones(3)
    for number in range(1, 7):
        assert step(x).tolist() == [2.0 * (1 + number)] * 3
    rates[0] = 3.0
    found = []
    for _ in range(every):
        try:
            step(x)
        except CaptureError as error:
            found.append(str(error))
    assert len(found) == 1
    assert "op 1, 'multiply'" in found[0] or "multiply" in found[0]
    assert "test_control.py" in found[0]


def test_verified_calls_name_an_op_that_another_one_has_replaced() -> None:
    use = [weft.tanh]
    step = weft.program(lambda x: use[0](x + 1), verify=2)
    x = weft.ones(3)
    step(x), step(x), step(x)
    use[0] = weft.sin
    with pytest.raises(CaptureError, match=r"'tanh'.*'sin'"):
        step(x)


def test_verified_calls_find_a_wrong_step_and_name_it() -> None:
    x, function = weft.linspace(0.0, 1.0, 5), [weft.tanh]

    def body(x: Any) -> Any:
        return weft.sqrt(function[0](x + 1)) * 2

    step = weft.program(body, verify=1)
    assert step(x).tolist() == step(x).tolist()
    function[0] = weft.sin
    wrong = weft.program(body).lower(x)
    function[0] = weft.tanh
    step.programs[0]._planned = wrong._planned
    with pytest.raises(CaptureError, match=r"op 1, 'sin' \(.*test_control.*\), is 'tanh'"):
        step(x)


def test_verified_calls_name_a_callable_that_does_not_do_the_same_again() -> None:
    values = iter(range(100))

    def body(x: Any) -> Any:
        y = x * 0

        def noise() -> None:
            np.asarray(y)[...] = next(values)

        weft.get_engine().push(noise, (), [y], name="noise")
        return weft.tanh(y + 1), x + 1

    step = weft.program(body, verify=1)
    with pytest.raises(CaptureError, match=r"result 0 differs.*'tanh'.*'noise' \(.*test_control"):
        step(weft.ones(3))


def test_verified_calls_are_few() -> None:
    calls = []

    @weft.program(verify=1000)
    def step(x: Any) -> Any:
        calls.append(1)
        return x + 1

    x = weft.ones(3)
    for _ in range(1999):
        step(x)
    assert len(calls) == 2, "once to be recorded, and once beside the thousandth call"


def test_verified_calls_are_fewer_where_they_take_long() -> None:
    calls = []

    @weft.program(verify=100)
    def step(x: Any) -> Any:
        calls.append(1)
        for _ in range(200):
            x = x + 1
        return x

    x = weft.ones(3)
    for _ in range(1000):
        step(x)
    assert 2 <= len(calls) < 11, "once to be recorded, and beside the hundredth call, but not beside each hundredth one"


def test_verified_calls_change_nothing_else() -> None:
    rng = weft.random.default_rng(5)
    same = weft.random.default_rng(5)
    step = weft.program(lambda x: x.fill(1.0) or x + rng.random(3), verify=1)
    x = weft.zeros(3)
    for _ in range(3):
        assert step(x).tolist() == (1.0 + same.random(3)).tolist()


@pytest.mark.parametrize("length", [4, 20_001])
def test_verified_calls_compare_results_that_lie_in_what_is_written(length: int) -> None:
    scale = [2.0]

    @weft.program(verify=2)
    def step(x: Any) -> Any:
        x *= scale[0]
        return x[1:], x[::2] + 1.0

    x, same = weft.ones(length), np.ones(length)
    for _ in range(4):
        tail, sums = step(x)
        same *= 2.0
        assert np.shares_memory(np.asarray(tail), np.asarray(x))
        np.testing.assert_array_equal(np.asarray(x), same)
        np.testing.assert_array_equal(np.asarray(tail), same[1:])
        np.testing.assert_array_equal(np.asarray(sums), same[::2] + 1.0)
    scale[0] = 3.0
    found = []
    for _ in range(2):
        try:
            step(x)
        except CaptureError as error:
            found.append(str(error))
    assert len(found) == 1
    assert "multiply" in found[0]


def test_figures_and_pictures(tmp_path: Any) -> None:
    @weft.program
    def step(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = weft.tanh(x @ w)
        return x.sum()

    x, w = weft.ones((64, 64)), weft.ones((64, 64))
    program = step.lower(x, w)
    assert program.eager_nbytes >= program.eager_peak_nbytes >= program.peak_live_nbytes
    assert 0 < program.nbytes < program.eager_nbytes
    assert program.states == ()
    text = str(program.summary())
    assert "matmul" in text
    assert "argument 1: float64[64, 64]" in text
    assert "matmul" in program.summary()._repr_html_()
    profile = program.profile(replays=3, warmup=1)
    counts = {op.name: op.count for op in profile.ops}
    assert counts["matmul"] == 4
    assert set(counts) <= {"matmul", "tanh", "sum"}, "the replay itself is no op"
    assert sum(op.share for op in profile.ops) == pytest.approx(1.0)
    assert profile.seconds > 0
    assert "matmul" in str(profile)
    for name, part in (("a.dot", "digraph"), ("a.svg", "<svg"), ("b.json", "traceEvents"), ("b.html", "<html")):
        path = tmp_path / name
        (program.draw if name.startswith("a") else program.timeline)(path)
        assert part in path.read_text(encoding="utf-8")
    with pytest.raises(ArgumentValueError, match="svg"):
        program.draw(tmp_path / "a.bmp")


def test_a_program_is_a_graph() -> None:
    @weft.program
    def step(x: Any, w: Any) -> Any:
        h = weft.tanh(x @ w)
        w -= x.T @ h
        return h.sum()

    graph = step.lower(weft.ones((4, 3)), weft.ones((3, 3))).graph
    assert isinstance(graph, weft.graph.Graph)
    nodes = graph.indexed_graph().nodes
    names = [node.name for node in nodes if node.is_variable]
    assert set(names) == {"x_0", "w_1"}
    assert [entry.node.name.partition("_")[0] for entry in graph.outputs] == ["subtract", "sum"]
    assert graph.outputs[0].version == 1


def test_a_large_step_is_one_op_of_a_profile() -> None:
    step = weft.program(lambda x: weft.tanh(x * 2 + 1) @ x)
    profile = step.lower(weft.ones((600, 600))).profile(replays=2, warmup=0)
    assert {op.name: op.count for op in profile.ops} == {"multiply+add+tanh": 1, "matmul": 1}


def test_states_are_the_arrays_that_names_are_bound_to() -> None:
    w, layers = weft.ones(2), [weft.ones(3), weft.ones(4)]
    step = weft.program(lambda x: x + w[1:].sum() + layers[0].sum() + layers[1].sum())
    states = step.lower(weft.ones(2)).states
    assert {id(state) for state in states} == {id(w), id(layers[0]), id(layers[1])}


def test_profile_makes_arguments_of_any_layout() -> None:
    base = weft.arange(40.0)
    step = weft.program(lambda x, y, z: x + y + z)
    program = step.lower(base[10::-1], base[5:16], base[:22:2])
    assert program.profile(replays=2, warmup=0).replays == 2


def test_gradients_of_symbols_that_draw_in_loops_and_branches_are_refused() -> None:
    x, state = weft.symbol.Variable("x"), weft.symbol.Variable("state")
    carry, _ = weft.scan(lambda c, row: (c + weft.nn.dropout(row, 0.5, state) * row, None), weft.sum(x, axis=0), x)
    chosen = weft.cond(weft.sum(x) > 0, lambda x: weft.nn.dropout(x, 0.5, state), lambda x: x * 2, x)
    for y in (carry, chosen):
        with pytest.raises(GraphError, match="draws numbers in the body of"):
            y.gradient("x")
    drawn = weft.nn.dropout(x, 0.5, state)
    given, _ = weft.scan(lambda c, rows: (c + rows[0] * rows[1], None), weft.sum(x, axis=0) * 0, [drawn, x])
    words = weft.random.Generator(1)._state
    gradient = given.gradient("x").eval(x=np.ones((2, 3)), state=words.copy())[0]
    assert gradient.tolist() == (2 * drawn.eval(x=np.ones((2, 3)), state=words.copy())[0]).tolist()
