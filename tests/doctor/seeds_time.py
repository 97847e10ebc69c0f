"""Scripts with one slow habit each."""

from __future__ import annotations

from defects import defect

#: By name: the kind, and the script.
HABITS: dict[str, tuple[str, str]] = {}

_WAIT = "wait-in-loop"
defect(
    HABITS,
    _WAIT,
    "a while loop",
    """
    import time

    @weft.task
    def fetch(at: int) -> int:
        time.sleep(0.005)
        return at * at

    at, total = 0, 0
    while at < 10:
        total += fetch(at).result()  # here
        at += 1
    print(total)
""",
)
defect(
    HABITS,
    _WAIT,
    "a comprehension",
    """
    import time

    @weft.task
    def fetch(at: int) -> int:
        time.sleep(0.005)
        return at * at

    squares = [fetch(at).result() for at in range(10)]  # here
    print(sum(squares))
""",
)
defect(
    HABITS,
    _WAIT,
    "a generator expression",
    """
    import time

    @weft.task
    def fetch(at: int) -> int:
        time.sleep(0.005)
        return at * at

    print(sum(fetch(at).result() for at in range(10)))  # here
""",
)
defect(
    HABITS,
    _WAIT,
    "a wait in a function that a loop calls",
    """
    import time

    @weft.task
    def blur(image: weft.Mutate[np.ndarray]) -> None:
        time.sleep(0.005)
        image += 1

    def process(image):
        blur(image)
        weft.wait(image)  # here
        return image

    images = [np.zeros(4) for _ in range(10)]
    print(len([process(image) for image in images]))
""",
)
defect(
    HABITS,
    _WAIT,
    "a wait in a method",
    """
    import time

    @weft.task
    def work(x: weft.Mutate[np.ndarray]) -> None:
        time.sleep(0.004)
        x += 1

    class Pipeline:
        def __init__(self):
            self.count = 0

        def run(self, x):
            handle = work(x)
            handle.wait()  # here
            self.count += 1

    pipeline = Pipeline()
    for x in [np.zeros(3) for _ in range(12)]:
        pipeline.run(x)
    print(pipeline.count)
""",
)
defect(
    HABITS,
    _WAIT,
    "a wait for all",
    """
    import time

    @weft.task
    def work(x: weft.Mutate[np.ndarray]) -> None:
        time.sleep(0.004)
        x += 1

    for x in [np.zeros(3) for _ in range(12)]:
        work(x)
        weft.wait_all()  # here
""",
)
defect(
    HABITS,
    _WAIT,
    "a wait for an engine's variable",
    """
    import time

    engine = weft.Engine(workers=4)
    arrays = [np.zeros(3) for _ in range(12)]
    for x in arrays:
        of_x = engine.variable_of(x)
        engine.push(lambda: time.sleep(0.004), mutate_vars=[of_x], name="work")
        engine.wait_for_var(of_x)  # here
    engine.close()
""",
)
defect(
    HABITS,
    _WAIT,
    "a wait for the engine",
    """
    import time

    engine = weft.get_engine()
    arrays = [np.zeros(3) for _ in range(12)]
    for x in arrays:
        engine.push(lambda: time.sleep(0.004), mutate_vars=[engine.variable_of(x)], name="work")
        engine.wait_for_all()  # here
""",
)
defect(
    HABITS,
    _WAIT,
    "a loop in a loop",
    """
    import time

    @weft.task
    def cell(x: weft.Mutate[np.ndarray]) -> None:
        time.sleep(0.003)

    grid = [[np.zeros(2) for _ in range(4)] for _ in range(4)]
    for row in grid:
        for x in row:
            cell(x)
            weft.wait(x)  # here
""",
)
defect(
    HABITS,
    _WAIT,
    "several tasks and one wait",
    """
    import time

    @weft.task
    def load(out: weft.Overwrite[np.ndarray], at: int) -> None:
        time.sleep(0.002)
        out[:] = at

    @weft.task
    def scale(x: weft.Mutate[np.ndarray]) -> None:
        time.sleep(0.002)
        x *= 2

    results = []
    for at in range(12):
        x = np.zeros(8)
        load(x, at)
        scale(x)
        weft.wait(x)  # here
        results.append(x.sum())
    print(sum(results))
""",
)
defect(
    HABITS,
    _WAIT,
    "numpy code on an array",
    """
    @weft.task
    def simulate(out: weft.Overwrite[np.ndarray], seed: int) -> None:
        rng = np.random.default_rng(seed)
        out[0] = rng.random(200_000).mean()

    means = []
    for seed in range(10):
        out = np.zeros(1)
        simulate(out, seed)
        weft.wait(out)  # here
        means.append(out[0])
    print(np.mean(means))
""",
)
defect(
    HABITS,
    _WAIT,
    "an array of weft that is shown",
    """
    import time

    @weft.task
    def measure(out: weft.Overwrite[weft.NDArray], at: int) -> None:
        time.sleep(0.004)
        out[:] = at

    values = []
    for at in range(10):
        out = weft.zeros(3)
        measure(out, at)
        values.append(float(out.sum()))  # here
    print(values)
""",
)
defect(
    HABITS,
    _WAIT,
    "an array of weft made NumPy's",
    """
    import time

    @weft.task
    def measure(out: weft.Overwrite[weft.NDArray], at: int) -> None:
        time.sleep(0.004)
        out[:] = at

    values = []
    for at in range(10):
        out = weft.zeros(3)
        measure(out, at)
        values.append(out.numpy())  # here
    print(np.sum(values))
""",
)
defect(
    HABITS,
    _WAIT,
    "a coroutine that awaits each",
    """
    import asyncio
    import time

    @weft.task
    def fetch(at: int) -> int:
        time.sleep(0.005)
        return at

    async def main():
        total = 0
        for at in range(10):
            total += await fetch(at)  # here
        print(total)

    asyncio.run(main())
""",
)
_AGAIN = "repeated-ops"
defect(
    HABITS,
    _AGAIN,
    "one line of three ops",
    """
    x = weft.ones(32)
    for turn in range(400):
        x = (x * 0.5 + 1.0) / 1.5  # here
    print(x)
""",
)
defect(
    HABITS,
    _AGAIN,
    "two lines",
    """
    x, v = weft.ones(64), weft.zeros(64)
    for turn in range(300):
        v = v * 0.9 - x * 0.1  # here
        x = x + v
    print(x.sum())
""",
)
defect(
    HABITS,
    _AGAIN,
    "three lines in place",
    """
    x, y = weft.ones(64), weft.zeros(64)
    for turn in range(300):
        y += x  # here
        y *= 0.5
        x -= y
    print(x.sum())
""",
)
defect(
    HABITS,
    _AGAIN,
    "a helper function",
    """
    def activate(x):
        return weft.tanh(x) * 0.5 + x  # here

    x = weft.ones(64)
    for turn in range(300):
        x = activate(x)
    print(x.sum())
""",
)
defect(
    HABITS,
    _AGAIN,
    "a while loop of five lines",
    """
    x = weft.linspace(0.0, 1.0, 100)
    turn = 0
    while turn < 300:
        a = weft.sin(x)  # here
        b = weft.cos(x)
        c = a * b
        d = c + x
        x = d * 0.5
        turn += 1
    print(x.sum())
""",
)
defect(
    HABITS,
    _AGAIN,
    "a stencil",
    """
    u = weft.zeros(200)
    u[100] = 1.0
    for turn in range(400):
        u[1:-1] = u[1:-1] + 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])  # here
    print(u.sum())
""",
)
defect(
    HABITS,
    _AGAIN,
    "a small network",
    """
    w1, w2 = weft.ones((8, 8)) * 0.1, weft.ones((8, 4)) * 0.1
    x = weft.ones((4, 8))
    total = weft.zeros(())
    for turn in range(300):
        h = weft.maximum(x @ w1, 0)  # here
        y = h @ w2
        total = total + (y * y).mean()
    print(total)
""",
)
defect(
    HABITS,
    _AGAIN,
    "eight lines with loops inside",
    """
    weights = [weft.ones(16) * 0.5 for _ in range(3)]
    x = weft.ones(16)
    for turn in range(200):
        for w in weights:
            x = x * w  # here
            x = x + 1
        x = x / 2
    print(x.sum())
""",
)
defect(
    HABITS,
    _AGAIN,
    "larger arrays",
    """
    x = weft.ones(5_000)
    y = weft.zeros(5_000)
    for turn in range(300):
        y = y * 0.99 + x  # here
        z = y - x
        w = z * z
        x = w * 0.001 + x * 0.5
    print(x.sum())
""",
)
_COPY = "copied-each-turn"
defect(
    HABITS,
    _COPY,
    "an operand of a product",
    """
    weights = np.ones((64, 64)) / 64
    x = weft.ones(64)
    for turn in range(20):
        x = x @ weights  # here
    print(x.sum())
""",
)
defect(
    HABITS,
    _COPY,
    "an argument of a program",
    """
    table = np.arange(5_000.0)

    @weft.program
    def step(x, t):
        return x * 0.5 + t

    x = weft.zeros(5_000)
    for turn in range(20):
        x = step(x, weft.array(table))  # here
    print(x.sum())
""",
)
defect(
    HABITS,
    _COPY,
    "a mask",
    """
    mask = np.arange(4_000) % 2 == 0
    x = weft.ones(4_000)
    for turn in range(20):
        x = weft.where(mask, x * 0.5, x)  # here
    print(x.sum())
""",
)
defect(
    HABITS,
    _COPY,
    "an assignment",
    """
    start = np.linspace(0.0, 1.0, 4_000)
    x = weft.zeros(4_000)
    total = weft.zeros(())
    for turn in range(20):
        x[:] = start  # here
        total += (x * turn).sum()
    print(total)
""",
)
defect(
    HABITS,
    _COPY,
    "a function that converts",
    """
    table = np.arange(4_000.0)

    def score(x):
        t = weft.array(table)  # here
        return (x * t).sum()

    x = weft.ones(4_000)
    total = weft.zeros(())
    for turn in range(20):
        total = total + score(x)
    print(total)
""",
)
defect(
    HABITS,
    _COPY,
    "an array that is made anew",
    """
    x = weft.zeros(4_000)
    for turn in range(20):
        x = x + np.full(4_000, 0.5)  # here
    print(x.sum())
""",
)
defect(
    HABITS,
    _COPY,
    "a comprehension of arrays",
    """
    kernel = np.hanning(2_000)
    rows = [weft.ones(2_000) * at for at in range(12)]
    out = [row * kernel for row in rows]  # here
    print(sum(float(each.sum()) for each in out))
""",
)
defect(
    HABITS,
    _COPY,
    "asarray with a dtype",
    """
    table = np.arange(4_000)
    x = weft.zeros(4_000)
    for turn in range(20):
        t = weft.asarray(table, dtype=weft.float64)  # here
        x = x + t
    print(x.sum())
""",
)
_SHORT = "short-task"
defect(
    HABITS,
    _SHORT,
    "a push of a lambda",
    """
    x = np.zeros(4)
    engine = weft.get_engine()
    of_x = engine.variable_of(x)

    def bump():
        x[0] += 1

    for turn in range(1000):
        engine.push(bump, mutate_vars=[of_x])  # here
    engine.wait_for_all()
    print(x[0])
""",
)
defect(
    HABITS,
    _SHORT,
    "a sum of small numbers",
    """
    @weft.task
    def add(a: int, b: int) -> int:
        return a + b

    handles = [add(at, at) for at in range(400)]  # here
    print(sum(handle.result() for handle in handles))
""",
)
defect(
    HABITS,
    _SHORT,
    "a cell of a grid",
    """
    grid = np.zeros((20, 20))
    rows = [np.zeros(20) for _ in range(20)]

    @weft.task
    def cell(row: weft.Mutate[np.ndarray], at: int) -> None:
        row[at] = at * 0.5

    for row in rows:
        for at in range(20):
            cell(row, at)  # here
    weft.wait()
""",
)
_BUFFER = "one-buffer"
defect(
    HABITS,
    _BUFFER,
    "a push that overwrites",
    """
    import time

    engine = weft.Engine(workers=4)
    buffer, outs = np.zeros(8), [np.zeros(8) for _ in range(10)]
    vb = engine.variable_of(buffer)

    def produce():
        time.sleep(0.002)
        buffer[:] = 1

    def consume(out):
        time.sleep(0.006)
        out[:] = buffer

    for out in outs:
        engine.push(produce, overwrite_vars=[vb])  # here
        engine.push(lambda out=out: consume(out), read_vars=[vb], mutate_vars=[engine.variable_of(out)])
    engine.close()
""",
)
defect(
    HABITS,
    _BUFFER,
    "two readers",
    """
    import time

    @weft.task
    def load(frame: weft.Overwrite[np.ndarray], at: int) -> None:
        time.sleep(0.002)
        frame[:] = at

    @weft.task
    def encode(frame: weft.Read[np.ndarray]) -> float:
        time.sleep(0.005)
        return float(frame.sum())

    @weft.task
    def detect(frame: weft.Read[np.ndarray]) -> float:
        time.sleep(0.004)
        return float(frame.max())

    frame = np.zeros(100)
    handles = []
    for at in range(10):
        load(frame, at)  # here
        handles += [encode(frame), detect(frame)]
    print(sum(handle.result() for handle in handles))
""",
)
defect(
    HABITS,
    _BUFFER,
    "a sum of what was read",
    """
    import time

    @weft.task
    def sample(out: weft.Overwrite[np.ndarray], seed: int) -> None:
        time.sleep(0.004)
        out[:] = np.random.default_rng(seed).random(len(out))

    @weft.task
    def accumulate(total: weft.Mutate[np.ndarray], x: weft.Read[np.ndarray]) -> None:
        time.sleep(0.004)
        total += x

    buffer, total = np.zeros(8), np.zeros(8)
    for seed in range(12):
        sample(buffer, seed)  # here
        accumulate(total, buffer)
    weft.wait(total)
    print(total)
""",
)
_STORM = "recording-storm"
defect(
    HABITS,
    _STORM,
    "a shape that grows",
    """
    @weft.program
    def total(x):
        return (x * 2).sum()

    for size in range(1, 13):
        print(float(total(weft.ones(size))))  # here
""",
)
defect(
    HABITS,
    _STORM,
    "a learning rate",
    """
    @weft.program
    def step(w, g, rate):
        return w - rate * g

    w, g = weft.ones(8), weft.ones(8)
    rate = 0.1
    for turn in range(12):
        rate *= 0.9
        w = step(w, g, rate)  # here
    print(w)
""",
)
defect(
    HABITS,
    _STORM,
    "a counter",
    """
    @weft.program
    def step(x, turn):
        return x + turn

    x = weft.ones(8)
    for turn in range(12):
        x = step(x, turn)  # here
    print(x)
""",
)
defect(
    HABITS,
    _STORM,
    "a global number",
    """
    rate = 1.0

    @weft.program
    def step(x):
        return x * rate

    x = weft.ones(8)
    for turn in range(12):
        rate = rate * 0.9
        x = step(x)  # here
    print(x)
""",
)
defect(
    HABITS,
    _STORM,
    "a program made in the loop",
    """
    x = weft.ones(8)
    for turn in range(12):
        step = weft.program(lambda x: x * 2 + 1)
        x = step(x) / 3  # here
    print(x)
""",
)
defect(
    HABITS,
    _STORM,
    "names in a tuple",
    """
    @weft.program
    def label(x, names):
        return x + len(names)

    x = weft.ones(8)
    names = ()
    for turn in range(12):
        names = (*names, f"n{turn}")
        x = label(x, names)  # here
    print(x)
""",
)
defect(
    HABITS,
    _STORM,
    "a method of a model",
    """
    class Model:
        def __init__(self):
            self.w = weft.ones((4, 4))

        @weft.program
        def forward(self, x):
            return x @ self.w

    model = Model()
    for rows in range(1, 11):
        y = model.forward(weft.ones((rows, 4)))  # here
    print(y.sum())
""",
)
_BLAS = "too-many-threads"
defect(
    HABITS,
    _BLAS,
    "products side by side",
    """
    @weft.task
    def multiply(out: weft.Overwrite[np.ndarray], a: weft.Read[np.ndarray], b: weft.Read[np.ndarray]) -> None:
        np.matmul(a, b, out=out)

    a = np.ones((500, 500))
    for turn in range(12):
        multiply(np.empty((500, 500)), a, a)  # here
    weft.wait()
""",
)
defect(
    HABITS,
    _BLAS,
    "solvers side by side",
    """
    def solve(a, b):
        return np.linalg.solve(a @ a.T, b)

    a, b = np.random.default_rng(0).random((400, 400)) + 400 * np.eye(400), np.ones(400)
    engine = weft.get_engine()
    of_a = engine.variable_of(a)
    for turn in range(12):
        engine.push(lambda: solve(a, b), read_vars=[of_a], name="solve")  # here
    engine.wait_for_all()
""",
)
