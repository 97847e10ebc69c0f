"""Scripts without a defect: of each kind what looks like one and is none."""

from __future__ import annotations

import textwrap

from defects import HEAD

#: By name.
CLEAN: dict[str, str] = {}


def _clean(name: str, source: str) -> None:
    CLEAN[name] = HEAD + textwrap.dedent(source)


_clean(
    "tagged parameters",
    """
    @weft.task
    def add(total: weft.Mutate[np.ndarray], x: weft.Read[np.ndarray]) -> None:
        total += x

    total = np.zeros(3)
    for turn in range(5):
        add(total, np.ones(3))
    weft.wait(total)
""",
)
_clean(
    "closed-over arrays that are declared",
    """
    totals, table = np.zeros(3), np.ones(3)

    @weft.task(mutates=[totals], reads=[table])
    def add() -> None:
        totals[:] += table

    for turn in range(5):
        add()
    weft.wait(totals)
""",
)
_clean(
    "a constant table",
    """
    table = np.arange(10.0)

    @weft.task
    def look(out: weft.Overwrite[np.ndarray], at: int) -> None:
        out[:] = table[at]

    arrays = [np.zeros(2) for _ in range(4)]
    for at, out in enumerate(arrays):
        look(out, at)
    weft.wait()
""",
)
_clean(
    "the shape of a global",
    """
    shared = np.zeros((3, 4))

    @weft.task
    def fill(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    @weft.task
    def size(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = shared.shape[0]

    out = np.zeros(1)
    fill(shared)
    size(out)
    fill(shared)
    weft.wait()
""",
)
_clean(
    "the host writes between ops",
    """
    @weft.task
    def double(x: weft.Mutate[np.ndarray]) -> None:
        x *= 2

    x, y = np.ones(3), np.ones(3)
    for turn in range(4):
        double(x)
        weft.wait(x)
        x[0] = turn
        y[1] = turn
        double(y)
        weft.wait()
""",
)
_clean(
    "variables made by hand",
    """
    x, y = np.zeros(3), np.zeros(3)
    engine = weft.Engine(workers=2)
    of_x, of_y = engine.new_variable("x"), engine.new_variable("y")
    for turn in range(4):
        engine.push(lambda: np.add(x, 1, out=x), mutate_vars=[of_x])
        engine.push(lambda: np.add(x, 1, out=y), read_vars=[of_x], mutate_vars=[of_y])
    engine.close()
""",
)
_clean(
    "one variable for several arrays",
    """
    weights, bias = np.zeros(3), np.zeros(1)
    engine = weft.Engine(workers=2)
    model = engine.new_variable("model")

    def step() -> None:
        weights.__iadd__(1)
        bias.__iadd__(2)

    for turn in range(4):
        engine.push(step, mutate_vars=[model])
        engine.push(lambda: weights.sum() + bias.sum(), read_vars=[model])
    engine.close()
""",
)
_clean(
    "variables of objects",
    """
    x, y = np.zeros(3), np.zeros(3)
    engine = weft.get_engine()
    engine.push(lambda: x.fill(2), mutate_vars=[engine.variable_of(x)])
    engine.push(lambda: np.copyto(y, x), read_vars=[engine.variable_of(x)], mutate_vars=[engine.variable_of(y)])
    engine.wait_for_all()
""",
)
_clean(
    "an object with arrays",
    """
    class Model:
        def __init__(self) -> None:
            self.weights, self.steps = np.zeros(3), [np.zeros(2)]

    @weft.task
    def train(model: weft.Mutate[Model]) -> None:
        model.weights += 1
        model.steps[0] += 1

    @weft.task
    def score(model: weft.Read[Model]) -> float:
        return float(model.weights.sum())

    model = Model()
    for turn in range(3):
        train(model)
        score(model)
    weft.wait()
""",
)
_clean(
    "local scratch",
    """
    @weft.task
    def smooth(x: weft.Mutate[np.ndarray]) -> None:
        scratch = np.empty_like(x)
        scratch[:] = x
        scratch[1:] += x[:-1]
        x[:] = scratch

    x = np.ones(8)
    smooth(x)
    smooth(x)
    weft.wait()
""",
)
_clean(
    "results of tasks",
    """
    @weft.task
    def load(seed: int) -> np.ndarray:
        return np.random.default_rng(seed).random(4)

    @weft.task
    def join(rows: list) -> np.ndarray:
        return np.stack(rows)

    @weft.task
    def total(x: np.ndarray) -> float:
        return float(x.sum())

    print(total(join([load(seed) for seed in range(4)])).result())
""",
)
_clean(
    "a seeded generator that is an argument",
    """
    @weft.task
    def draw(out: weft.Overwrite[np.ndarray], seed: int) -> None:
        out[:] = np.random.default_rng(seed).random(len(out))

    arrays = [np.zeros(4) for _ in range(6)]
    for seed, out in enumerate(arrays):
        draw(out, seed)
    weft.wait()
""",
)
_clean(
    "a generator with a variable",
    """
    rng = np.random.default_rng(3)

    class Source:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(3)

    @weft.task
    def draw(source: weft.Mutate[Source], out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = source.rng.random(len(out))

    source = Source()
    for out in [np.zeros(4) for _ in range(6)]:
        draw(source, out)
    weft.wait()
""",
)
_clean(
    "array code",
    """
    x = weft.linspace(0.0, 1.0, 50)
    for turn in range(10):
        x = weft.sin(x) * 0.5 + x[::-1] / 3
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
    print(x.sum(), float(x.max()))
""",
)
_clean(
    "a mask of infinities",
    """
    scores = weft.arange(6.0).reshape(2, 3)
    mask = scores > 2
    masked = weft.where(mask, scores, -np.inf)
    weights = weft.exp(masked - 10)
    print(weights.sum())
""",
)
_clean(
    "values that were not finite from the start",
    """
    data = weft.array(np.array([1.0, np.nan, np.inf, 3.0]))
    scaled = data * 2 + 1
    good = weft.isfinite(scaled)
    print(weft.where(good, scaled, 0.0).sum(), weft.nansum(data * 0))
""",
)
_clean(
    "a loader of missing values",
    """
    @weft.task
    def load(out: weft.Overwrite[np.ndarray], name: str) -> None:
        out[:] = [1.0, float("nan"), 2.0]

    @weft.task
    def scale(x: weft.Mutate[np.ndarray]) -> None:
        x *= 2

    x = np.zeros(3)
    load(x, "table")
    scale(x)
    weft.wait()
""",
)
_clean(
    "infinity as a start",
    """
    best = weft.full((4,), np.inf)
    for turn in range(4):
        best = weft.minimum(best, weft.arange(4.0) + turn)
    lowest = np.full(3, np.inf)

    @weft.task
    def lower(best: weft.Mutate[np.ndarray], x: weft.Read[np.ndarray]) -> None:
        np.minimum(best, x, out=best)

    lower(lowest, np.ones(3))
    print(best.sum())
    weft.wait()
""",
)
_clean(
    "a program",
    """
    @weft.program
    def step(x, w):
        y = weft.tanh(x @ w)
        return y / weft.abs(y).max()

    x, w = weft.ones((4, 4)), weft.eye(4) * 0.5
    for turn in range(6):
        x = step(x, w)
    print(x.sum())
""",
)
_clean(
    "a program that changes its argument",
    """
    @weft.program
    def smooth(x):
        x[1:-1] = 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
        return weft.abs(x).max()

    x = weft.zeros(9)
    x[4] = 1.0
    print([float(smooth(x)) for _ in range(4)])
""",
)
_clean(
    "gradients",
    """
    def loss(w):
        return ((w * 3 - 1) ** 2).sum()

    w = weft.ones(4)
    for turn in range(5):
        w = w - 0.05 * weft.grad(loss)(w)
    print(w)
""",
)
_clean(
    "tasks on arrays of weft",
    """
    @weft.task
    def scale(x: weft.Mutate[weft.NDArray], by: float) -> None:
        x *= by

    x = weft.ones(16)
    for turn in range(3):
        scale(x, 2.0)
        x = x + 1
        scale(x[:4], 0.5)
    print(x.sum())
""",
)
_clean(
    "halves of an array",
    """
    @weft.task
    def fill(out: weft.Overwrite[np.ndarray], value: float) -> None:
        out[:] = value

    x = weft.zeros(16)
    engine = weft.get_engine()
    low, high = x[:8], x[8:]
    engine.push(lambda: np.asarray(low).__setitem__(slice(None), 1.0), mutate_vars=[low])
    engine.push(lambda: np.asarray(high).__setitem__(slice(None), 2.0), mutate_vars=[high])
    print(x.sum())
""",
)
_clean(
    "ops inside ops",
    """
    engine = weft.get_engine()
    x, y = np.zeros(3), np.zeros(3)
    of_x, of_y = engine.variable_of(x), engine.variable_of(y)

    def outer() -> None:
        x.fill(1)
        engine.push(lambda: y.fill(2), mutate_vars=[of_y])

    engine.push(outer, mutate_vars=[of_x])
    engine.wait_for_all()
""",
)
_clean(
    "threads",
    """
    import threading

    @weft.task
    def add(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    own = [np.zeros(64) for _ in range(4)]

    def work(at: int) -> None:
        for turn in range(10):
            add(own[at])
            weft.wait(own[at])
            own[at][0] = turn

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
""",
)
_clean(
    "asyncio",
    """
    import asyncio

    @weft.task
    def work(at: int) -> int:
        return at * at

    async def main() -> int:
        return sum(await asyncio.gather(*[one(at) for at in range(6)]))

    async def one(at: int) -> int:
        return await work(at)

    print(asyncio.run(main()))
""",
)
_clean(
    "ops that complete later",
    """
    import threading

    engine = weft.Engine(workers=2)
    x = np.zeros(3)
    of_x = engine.variable_of(x)
    pending, begun = [], threading.Event()

    def begin(complete):
        pending.append(complete)
        begun.set()

    def end():
        begun.wait()
        pending[0]()

    engine.push_async(begin, mutate_vars=[of_x])
    other = engine.new_variable("other")
    engine.push(lambda: None, mutate_vars=[other])
    threading.Timer(0.01, end).start()
    engine.wait_for_var(of_x)
    engine.close()
""",
)
_clean(
    "a failure that is handled",
    """
    @weft.task
    def parse(out: weft.Overwrite[np.ndarray], text: str) -> None:
        out[:] = float(text)

    x = np.zeros(1)
    parse(x, "no number")
    try:
        weft.wait(x)
    except ValueError:
        parse(x, "2.5")
    weft.wait(x)
""",
)
_clean(
    "engines of its own",
    """
    with weft.Engine(workers=1) as one, weft.Engine(policy="serial") as two:
        x, y = np.zeros(3), np.zeros(3)
        one.push(lambda: x.fill(1), mutate_vars=[one.variable_of(x)])
        two.push(lambda: y.fill(2), mutate_vars=[two.variable_of(y)])
        one.wait_for_all()
        two.push(lambda: np.copyto(y, x), mutate_vars=[two.variable_of(y)], read_vars=[two.variable_of(x)])
""",
)
_clean(
    "a wait that the next turn needs",
    """
    x = weft.ones(1000)
    for turn in range(20):
        x = weft.cos(x)
        if float(weft.abs(x).max()) < 0.1:
            break
""",
)
_clean(
    "work on the host beside ops",
    """
    @weft.task
    def count(hits: weft.Mutate[np.ndarray], text: str) -> None:
        hits[0] += len(text)

    hits = np.zeros(1)
    lines: list[str] = []
    for turn in range(8):
        lines.append(str(turn))
        count(hits, lines[-1])
    weft.wait(hits)
""",
)
_clean(
    "an executor",
    """
    with weft.Executor() as executor:
        futures = [executor.submit(pow, at, 2) for at in range(8)]
        print(sum(future.result() for future in futures))
""",
)
