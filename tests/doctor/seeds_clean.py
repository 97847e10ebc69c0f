"""Scripts without a defect, second part: each kind's ways of looking like one."""

from __future__ import annotations

from defects import script

#: By name.
MORE: dict[str, str] = {}


def _clean(name: str, source: str) -> None:
    MORE[name] = script(source)


_clean(
    "a class with declared arrays",
    """
    class Stats:
        total = np.zeros(2)

    @weft.task(mutates=[Stats.total])
    def add(x: weft.Read[np.ndarray]) -> None:
        Stats.total += x.sum()

    for turn in range(4):
        add(np.ones(3))
    weft.wait(Stats.total)
""",
)
_clean(
    "views of declared arrays",
    """
    table = np.zeros((4, 3))

    @weft.task
    def fill(row: weft.Overwrite[np.ndarray], value: float) -> None:
        row[:] = value

    @weft.task
    def total(x: weft.Read[np.ndarray]) -> float:
        return float(x.sum())

    for at in range(4):
        fill(table[at], at + 1.0)
    print(total(table).result())
""",
)
_clean(
    "a partial with its variables",
    """
    import functools

    def accumulate(into, x):
        into += x

    total, x = np.zeros(3), np.ones(3)
    engine = weft.get_engine()
    of = engine.variable_of
    for turn in range(4):
        engine.push(functools.partial(accumulate, total, x), read_vars=[of(x)], mutate_vars=[of(total)])
    engine.wait_for_all()
""",
)
_clean(
    "a lambda with defaults",
    """
    engine = weft.get_engine()
    arrays = [np.zeros(3) for _ in range(4)]
    for at, x in enumerate(arrays):
        engine.push(lambda x=x, at=at: x.fill(at), mutate_vars=[engine.variable_of(x)])
    engine.wait_for_all()
""",
)
_clean(
    "a default table that nobody writes",
    """
    @weft.task
    def look(out: weft.Overwrite[np.ndarray], at: int, table=np.arange(10.0)) -> None:
        out[:] = table[at]

    out = np.zeros(2)
    for at in range(5):
        look(out, at)
    weft.wait()
""",
)
_clean(
    "a table that is made before and never again",
    """
    @weft.task
    def fill(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = np.arange(len(out))

    table = np.zeros(8)
    fill(table)
    weft.wait(table)

    @weft.task(reads=[table])
    def look(out: weft.Overwrite[np.ndarray], at: int) -> None:
        out[:] = table[at]

    outs = [np.zeros(2) for _ in range(4)]
    for at, out in enumerate(outs):
        look(out, at)
    weft.wait()
""",
)
_clean(
    "the host fills arrays between tasks",
    """
    @weft.task
    def total(x: weft.Read[np.ndarray], out: weft.Overwrite[np.ndarray]) -> None:
        out[0] = x.sum()

    x, out = np.zeros(100), np.zeros(1)
    sums = []
    for turn in range(5):
        x[:] = turn
        total(x, out)
        weft.wait()
        sums.append(out[0])
    print(sums)
""",
)
_clean(
    "a cache of a method",
    """
    class Basis:
        def __init__(self):
            self.table = np.linspace(0, 1, 50)

        @weft.task
        def project(self, x: weft.Read[np.ndarray]) -> float:
            return float(self.table @ x)

    basis = Basis()
    print([basis.project(np.ones(50)).result() for _ in range(3)])
""",
)
_clean(
    "an object that is changed",
    """
    class Trainer:
        def __init__(self):
            self.weights, self.log = np.zeros(4), np.zeros(10)

    @weft.task
    def step(trainer: weft.Mutate[Trainer], x: weft.Read[np.ndarray], at: int) -> None:
        trainer.weights += x
        trainer.log[at] = trainer.weights.sum()

    trainer = Trainer()
    for at in range(4):
        step(trainer, np.ones(4), at)
    weft.wait(trainer)
""",
)
_clean(
    "a memoryview with a variable",
    """
    x = np.zeros(16, np.uint8)
    window = memoryview(x)
    engine = weft.get_engine()

    def stamp():
        window[3] += 1

    for turn in range(4):
        engine.push(stamp, mutate_vars=[engine.variable_of(x)])
    engine.wait_for_all()
""",
)
_clean(
    "arrays on bytes of a bytearray",
    """
    buffer = bytearray(16)
    frame = np.frombuffer(buffer, np.uint8)

    @weft.task
    def put(x: weft.Mutate[np.ndarray], value: int) -> None:
        memoryview(x)[0] = value

    for turn in range(5):
        put(frame, turn)
    engine = weft.get_engine()
    engine.push(lambda: frame.fill(7), mutate_vars=[engine.variable_of(frame)])
    weft.wait()
""",
)
_clean(
    "a mapped file",
    """
    import tempfile

    with tempfile.TemporaryFile() as file:
        table = np.memmap(file, dtype="f8", mode="w+", shape=(8,))

        @weft.task
        def put(x: weft.Mutate[np.ndarray], value: float) -> None:
            x[:] = value

        for turn in range(4):
            put(table[:4], float(turn))
            put(table[4:], -float(turn))
        weft.wait()
        del table
""",
)
_clean(
    "an array of ctypes",
    """
    import ctypes

    cells = (ctypes.c_double * 8)()
    x = np.ctypeslib.as_array(cells)
    engine = weft.get_engine()

    @weft.task
    def put(x: weft.Mutate[np.ndarray], value: float) -> None:
        x[:] = value

    def clear():
        cells[0] = 0.0

    engine.push(clear, mutate_vars=[engine.variable_of(x)])
    for turn in range(4):
        put(x, float(turn))
        engine.push(clear, mutate_vars=[engine.variable_of(x)])
    weft.wait()
""",
)
_clean(
    "halves of an array of Python's",
    """
    import array

    numbers = array.array("d", [0.0] * 6)
    low, high = np.frombuffer(numbers)[:3], np.frombuffer(numbers)[3:]

    @weft.task
    def put(x: weft.Mutate[np.ndarray], value: float) -> None:
        x[:] = value

    for turn in range(4):
        put(low, float(turn))
        put(high, -float(turn))
    weft.wait()
""",
)
_clean(
    "a pointer with a variable",
    """
    import ctypes

    x = np.zeros(8)
    engine = weft.get_engine()
    of_x = engine.variable_of(x)
    for turn in range(4):
        engine.push(lambda turn=turn: ctypes.memset(x.ctypes.data, turn, x.nbytes), mutate_vars=[of_x])
        engine.push(lambda: float(x[0]), read_vars=[of_x])
    engine.wait_for_all()
""",
)
_clean(
    "a native function with its array",
    """
    import ctypes

    KIND = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
    x = np.zeros(64, np.uint8)

    def write(data):
        ctypes.memset(data, 1, 64)
        return 0

    function = KIND(write)
    engine = weft.get_engine()
    engine.push_native(ctypes.cast(function, ctypes.c_void_p).value, x.ctypes.data, mutate_vars=[engine.variable_of(x)])
    engine.wait_for_all()
""",
)
_clean(
    "a task in a task",
    """
    @weft.task
    def inner(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    @weft.task
    def outer(x: weft.Mutate[np.ndarray], y) -> None:
        x += 1
        inner(y)
        x += 1

    x, y = np.zeros(3), np.zeros(3)
    for turn in range(3):
        outer(x, y)
    weft.wait()
""",
)
_clean(
    "a task that waits for its own task",
    """
    @weft.task
    def inner(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    @weft.task
    def outer(x: weft.Mutate[np.ndarray]) -> None:
        part = np.zeros(3)
        inner(part).wait()
        x += part

    x = np.zeros(3)
    outer(x)
    weft.wait()
""",
)
_clean(
    "a tree of tasks",
    """
    @weft.task
    def leaf(at: int) -> int:
        return at

    @weft.task
    def join(a: int, b: int) -> int:
        return a + b

    level = [leaf(at) for at in range(8)]
    while len(level) > 1:
        level = [join(level[at], level[at + 1]) for at in range(0, len(level), 2)]
    print(level[0].result())
""",
)
_clean(
    "results that are arrays, changed in turn",
    """
    @weft.task
    def make(n: int) -> np.ndarray:
        return np.zeros(n)

    @weft.task
    def add(x: weft.Mutate[np.ndarray], by: float) -> None:
        x += by

    x = make(5)
    for turn in range(4):
        add(x, turn)
    print(x.result().sum())
""",
)
_clean(
    "a coroutine with many awaits",
    """
    import asyncio

    @weft.task
    def work(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    async def one(x):
        for turn in range(3):
            await work(x)
        return float(x.sum())

    async def main():
        arrays = [np.zeros(4) for _ in range(5)]
        return sum(await asyncio.gather(*map(one, arrays)))

    print(asyncio.run(main()))
""",
)
_clean(
    "threads with an engine each",
    """
    import threading

    def work(at, out):
        with weft.Engine(workers=1) as engine:
            x = np.zeros(8)
            of_x = engine.variable_of(x)
            for turn in range(5):
                engine.push(lambda: x.__iadd__(at), mutate_vars=[of_x])
            engine.wait_for_all()
            out.append(x.sum())

    out = []
    threads = [threading.Thread(target=work, args=(at, out)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sorted(out))
""",
)
_clean(
    "threads that work on arrays of their own beside tasks",
    """
    import threading

    @weft.task
    def add(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    private = np.zeros(1000)
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            private[:] += 1
            stop.wait(0.0005)

    thread = threading.Thread(target=busy)
    thread.start()
    x = np.zeros(4)
    for turn in range(10):
        add(x)
    weft.wait(x)
    stop.set()
    thread.join()
""",
)
_clean(
    "exec as a notebook does",
    """
    scope = {"np": np, "weft": weft}
    cells = ["total = np.zeros(3)", "@weft.task\\ndef add(x: weft.Mutate[np.ndarray]) -> None:\\n    x += 1", "add(total); weft.wait(total)"]
    for at, cell in enumerate(cells):
        exec(compile(cell, f"<cell {at}>", "exec"), scope)
    print(scope["total"])
""",
)
_clean(
    "an executor with arrays of its own",
    """
    def work(seed):
        x = np.random.default_rng(seed).random(100)
        return float(x.mean())

    with weft.Executor() as executor:
        print(sum(executor.map(work, range(8))))
""",
)
_clean(
    "a failing task that is retried",
    """
    attempts = []

    @weft.task(retries=2)
    def flaky(x: weft.Mutate[np.ndarray]) -> None:
        attempts.append(1)
        if len(attempts) < 2:
            raise OSError("not yet")
        x += 1

    x = np.zeros(2)
    flaky(x)
    weft.wait(x)
""",
)
_clean(
    "recovery",
    """
    @weft.task
    def half(x: weft.Mutate[np.ndarray], bad: bool) -> None:
        if bad:
            raise ValueError("bad")
        x *= 0.5

    x, y = np.ones(2), np.ones(2)
    half(x, True)
    try:
        weft.wait(x)
    except ValueError:
        pass
    half(y, False)
    weft.wait(y)
""",
)
_clean(
    "a guard against zero",
    """
    x = weft.arange(4.0)
    safe = weft.where(x > 0, x, 1.0)
    print(weft.where(x > 0, weft.log(safe), 0.0).sum())
""",
)
_clean(
    "a stable softmax",
    """
    def softmax(x):
        e = weft.exp(x - x.max())
        return e / e.sum()

    print(softmax(weft.array([1.0, 2.0, 1000.0])))
""",
)
_clean(
    "a minimum that starts at infinity",
    """
    best = np.full(4, np.inf)

    @weft.task
    def lower(best: weft.Mutate[np.ndarray], x: weft.Read[np.ndarray]) -> None:
        np.minimum(best, x, out=best)

    for turn in range(3):
        lower(best, np.arange(4.0) + turn)
    weft.wait(best)
""",
)
_clean(
    "a task that gives infinity for nothing",
    """
    @weft.task
    def bound() -> float:
        return float("inf")

    @weft.task
    def relax(a: float, b: float) -> float:
        return min(a, b)

    print(relax(bound(), 3.0).result())
""",
)
_clean(
    "missing values of a file",
    """
    @weft.task
    def parse(lines: list) -> np.ndarray:
        return np.array([float(line) if line else np.nan for line in lines])

    @weft.task
    def clean(x: np.ndarray) -> np.ndarray:
        return np.nan_to_num(x)

    print(clean(parse(["1.5", "", "2"])).result())
""",
)
_clean(
    "a comparison with infinity",
    """
    x = weft.array([1.0, np.inf])
    print(float(weft.where(weft.isinf(x), 0.0, x).sum()), float(weft.minimum(x, 10.0).sum()))
""",
)
_clean(
    "masked attention",
    """
    scores = weft.ones((3, 3))
    mask = weft.tril(weft.ones((3, 3))) > 0
    masked = weft.where(mask, scores, -np.inf)
    weights = weft.exp(masked - masked.max(axis=1, keepdims=True))
    print((weights / weights.sum(axis=1, keepdims=True)).sum())
""",
)
_clean(
    "a gradient descent as a program",
    """
    def loss(w, x, y):
        return ((x @ w - y) ** 2).mean()

    step = weft.program(lambda w, x, y: w - 0.1 * weft.grad(loss)(w, x, y))
    x, y, w = weft.eye(4), weft.ones(4), weft.zeros(4)
    for turn in range(20):
        w = step(w, x, y)
    print(w)
""",
)
_clean(
    "a model",
    """
    x = weft.ones((8, 4))
    w, b = weft.ones((4, 2)) * 0.1, weft.zeros(2)

    def loss(w, b):
        p = 1 / (1 + weft.exp(-(x @ w + b)))
        return -weft.log(p).mean()

    for turn in range(5):
        gw, gb = weft.grad(loss, argnums=(0, 1))(w, b)
        w -= 0.5 * gw
        b -= 0.5 * gb
    print(float(loss(w, b)))
""",
)
_clean(
    "a program with tasks",
    """
    @weft.task
    def log(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    @weft.program
    def step(x, count):
        log(count)
        return x * 2

    x, count = weft.ones(3), weft.zeros(1)
    for turn in range(4):
        x = step(x, count)
    print(x, count)
""",
)
_clean(
    "a random number generator of weft's",
    """
    rng = weft.random.default_rng(3)
    x = rng.normal(size=(100,))
    y = rng.uniform(size=(100,))
    print(float((x * y).sum()))
""",
)
_clean(
    "a seeded generator, one for each task",
    """
    seeds = np.random.SeedSequence(5).spawn(4)
    rngs = [np.random.default_rng(seed) for seed in seeds]
    outs = [np.zeros(3) for _ in range(4)]
    engine = weft.get_engine()
    for rng, out in zip(rngs, outs):
        engine.push(lambda rng=rng, out=out: out.__setitem__(slice(None), rng.random(3)), mutate_vars=[engine.variable_of(out)])
    weft.wait()
""",
)
_clean(
    "a clean recursion",
    """
    @weft.task
    def add(a: int, b: int) -> int:
        return a + b

    def fib(n):
        return n if n < 2 else add(fib(n - 1), fib(n - 2))

    print(fib(7).result())
""",
)
_clean(
    "double buffering",
    """
    @weft.task
    def step(new: weft.Overwrite[np.ndarray], old: weft.Read[np.ndarray]) -> None:
        new[1:-1] = 0.5 * (old[:-2] + old[2:])
        new[0] = new[-1] = 0

    a, b = np.zeros(32), np.zeros(32)
    a[16] = 1
    for turn in range(10):
        step(b, a)
        a, b = b, a
    weft.wait()
    print(a.sum())
""",
)
_clean(
    "blocks of a matrix",
    """
    n, k = 4, 8
    A = {(i, j): np.ones((k, k)) * (i + 1) for i in range(n) for j in range(n)}
    B = {(i, j): np.eye(k) for i in range(n) for j in range(n)}
    C = {(i, j): np.zeros((k, k)) for i in range(n) for j in range(n)}

    @weft.task
    def gemm(c: weft.Mutate[np.ndarray], a: weft.Read[np.ndarray], b: weft.Read[np.ndarray]) -> None:
        c += a @ b

    for i in range(n):
        for j in range(n):
            for at in range(n):
                gemm(C[i, j], A[i, at], B[at, j])
    weft.wait()
    print(sum(c.sum() for c in C.values()))
""",
)
_clean(
    "a pipeline of stages",
    """
    @weft.task
    def load(out: weft.Overwrite[np.ndarray], at: int) -> None:
        out[:] = at

    @weft.task
    def transform(x: weft.Mutate[np.ndarray]) -> None:
        x **= 2

    @weft.task
    def store(x: weft.Read[np.ndarray], results: weft.Mutate[np.ndarray], at: int) -> None:
        results[at] = x.sum()

    buffers = [np.zeros(16) for _ in range(2)]
    results = np.zeros(10)
    for at in range(10):
        buffer = buffers[at % 2]
        load(buffer, at)
        transform(buffer)
        store(buffer, results, at)
    weft.wait(results)
    print(results)
""",
)
_clean(
    "an object as a lock for a file",
    """
    import io

    class Log:
        def __init__(self):
            self.file, self.lines = io.StringIO(), 0

    @weft.task
    def write(log: weft.Mutate[Log], x: weft.Read[np.ndarray]) -> None:
        log.file.write(f"{x.sum()}\\n")
        log.lines += 1

    log = Log()
    for turn in range(5):
        write(log, np.ones(3) * turn)
    weft.wait(log)
    print(log.lines)
""",
)
_clean(
    "structured arrays",
    """
    people = np.zeros(3, dtype=[("age", "i4"), ("height", "f8")])

    @weft.task
    def birthday(people: weft.Mutate[np.ndarray]) -> None:
        people["age"] += 1

    for turn in range(3):
        birthday(people)
    weft.wait(people)
""",
)
_clean(
    "arrays of objects",
    """
    names = np.array(["a", "bb", None], dtype=object)

    @weft.task
    def shout(names: weft.Mutate[np.ndarray]) -> None:
        names[0] = names[0] + "!"

    for turn in range(3):
        shout(names)
    weft.wait(names)
""",
)
_clean(
    "a numpy array that shares weft's memory",
    """
    x = weft.zeros(6)
    host = np.asarray(x)

    @weft.task
    def add(x: weft.Mutate[weft.NDArray]) -> None:
        x += 1

    for turn in range(3):
        add(x)
    print(x.sum(), host.sum())
""",
)
_clean(
    "dlpack",
    """
    x = np.arange(6.0)
    y = weft.from_dlpack(x)
    z = y * 2
    print(float(z.sum()))
""",
)
_clean(
    "closing and opening engines",
    """
    @weft.task
    def add(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    x = np.zeros(2)
    add(x)
    weft.wait(x)
    weft.get_engine().close()
    weft.set_engine(None)
    add(x)
    weft.wait(x)
""",
)
_clean(
    "a context that changes the engine",
    """
    @weft.task
    def add(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    x = np.zeros(2)
    previous = weft.set_engine(weft.Engine(workers=2))
    for turn in range(3):
        add(x)
    weft.wait(x)
    weft.set_engine(previous)
""",
)
_clean(
    "a task that only prints",
    """
    @weft.task
    def show(x: weft.Read[np.ndarray], what: str) -> None:
        text = f"{what}: {x.sum()}"
        assert text

    x = np.ones(3)
    for turn in range(4):
        show(x, "sum")
    weft.wait()
""",
)
_clean(
    "scratch of a thread",
    """
    import threading

    local = threading.local()

    @weft.task
    def smooth(x: weft.Mutate[np.ndarray]) -> None:
        if not hasattr(local, "scratch"):
            local.scratch = np.empty(16)
        local.scratch[:] = x
        x[1:-1] = 0.5 * (local.scratch[:-2] + local.scratch[2:])

    arrays = [np.ones(16) for _ in range(4)]
    for turn in range(3):
        for x in arrays:
            smooth(x)
    weft.wait()
""",
)
_clean(
    "a memo of a function",
    """
    import functools

    @functools.lru_cache
    def window(n):
        return np.hanning(n)

    @weft.task
    def taper(x: weft.Mutate[np.ndarray]) -> None:
        x *= window(len(x))

    for n in (8, 16, 8):
        taper(np.ones(n))
    weft.wait()
""",
)
_clean(
    "an empty array and numbers",
    """
    @weft.task
    def nothing(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    nothing(np.zeros(0))
    nothing(np.zeros((3, 0)))
    nothing(np.array(5.0))
    weft.wait()
""",
)
_clean(
    "a scan",
    """
    def body(carry, x):
        carry = carry * 0.5 + x
        return carry, carry

    last, steps = weft.scan(body, weft.zeros(()), weft.arange(6.0))
    print(last, steps.sum())
""",
)
_clean(
    "symbols",
    """
    from weft import symbol

    a, b = symbol.var("a"), symbol.var("b")
    c = weft.tanh(a * b) + a
    print(c.eval(a=weft.ones(3), b=weft.ones(3))[0])
""",
)
_clean(
    "a captured block with tasks",
    """
    counts, sums = np.zeros(3), np.zeros(3)

    @weft.task
    def count(x: weft.Read[weft.NDArray], to: weft.Mutate[np.ndarray]) -> None:
        to += 1

    x = weft.zeros(3)
    with weft.capture("counted") as block:
        x += 1
        count(x, counts)
        count(x, sums)

    for _ in range(100):
        block.replay()
    weft.wait()
    assert (counts == 100).all() and (sums == 100).all()
""",
)
