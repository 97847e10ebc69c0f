"""Scripts in which one op touches what it does not declare, in as many ways as memory can be reached."""

from __future__ import annotations

from defects import defect

#: By name: the kind, and the script.
ACCESSES: dict[str, tuple[str, str]] = {}

defect(
    ACCESSES,
    "undeclared-write",
    "a view in a closure",
    """
    table = np.zeros((4, 3))
    row = table[1]

    @weft.task
    def look(x: weft.Read[np.ndarray]) -> float:
        return float(x.sum())

    @weft.task
    def mark(value: float) -> None:
        row[:] = value

    look(table)
    mark(2.0)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "an array of a class",
    """
    class Stats:
        total = np.zeros(2)

        @classmethod
        def add(cls, x):
            cls.total += x.sum()

    x = np.ones(3)
    engine = weft.get_engine()
    for turn in range(3):
        engine.push(lambda: Stats.add(x), read_vars=[engine.variable_of(x)], name="add")  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a bound class method",
    """
    class Stats:
        total = np.zeros(2)

        @classmethod
        def bump(cls):
            cls.total += 1

    x = np.ones(3)
    engine = weft.get_engine()
    engine.push(Stats.bump, read_vars=[engine.variable_of(x)])  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a default argument",
    """
    cache = np.zeros(4)

    @weft.task
    def remember(x: weft.Read[np.ndarray], into=cache) -> None:
        into[:3] += x

    remember(np.ones(3))  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a default argument of a lambda",
    """
    acc = np.zeros(4)
    engine = weft.get_engine()
    x = np.ones(4)
    engine.push(lambda acc=acc, x=x: np.add(acc, x, out=acc), read_vars=[engine.variable_of(x)])  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a partial",
    """
    import functools

    def accumulate(into, x):
        into += x

    total, x = np.zeros(3), np.ones(3)
    engine = weft.get_engine()
    engine.push(functools.partial(accumulate, total, x), read_vars=[engine.variable_of(x)])  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a partial by keyword",
    """
    from functools import partial

    def scale(x, *, factor, log):
        x *= factor
        log[0] += 1

    log, x = np.zeros(1), np.ones(3)
    engine = weft.get_engine()
    step = partial(scale, x, factor=2.0, log=log)
    engine.push(step, mutate_vars=[engine.variable_of(x)])  # here
    engine.wait_for_all()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a numpy function with an output",
    """
    import functools

    x, y = np.ones(3), np.zeros(3)
    engine = weft.get_engine()
    engine.push(functools.partial(np.add, x, 1, out=y), read_vars=[engine.variable_of(x)])  # here
    engine.wait_for_all()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a bound method of an array",
    """
    import functools

    x, y = np.ones(3), np.zeros(3)
    engine = weft.get_engine()
    engine.push(functools.partial(y.fill, 3.0), read_vars=[engine.variable_of(x)])  # here
    engine.wait_for_all()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a static method",
    """
    class Board:
        cells = np.zeros((3, 3))

        @staticmethod
        def reset():
            Board.cells[:] = -1

    @weft.task
    def clear(x: weft.Mutate[np.ndarray]) -> None:
        x[:] = 0
        Board.reset()

    clear(np.ones(2))  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a nest of dicts and lists",
    """
    state = {"layers": [{"w": np.ones(2)}, {"w": np.ones(2)}]}

    @weft.task
    def train(x: weft.Read[np.ndarray], at: int) -> None:
        state["layers"][at]["w"] -= 0.1 * x

    for at in range(2):
        train(np.ones(2), at)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a dataclass with slots",
    """
    from dataclasses import dataclass, field

    @dataclass(slots=True)
    class Account:
        balance: np.ndarray = field(default_factory=lambda: np.zeros(1))

    account = Account()

    @weft.task
    def deposit(amount: weft.Read[np.ndarray]) -> None:
        account.balance += amount

    deposit(np.array([3.0]))  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a field of a named tuple",
    """
    from typing import NamedTuple

    class Pair(NamedTuple):
        mean: np.ndarray
        count: np.ndarray

    def main():
        pair = Pair(np.zeros(3), np.zeros(1))

        @weft.task
        def update(x: weft.Read[np.ndarray]) -> None:
            pair.count[0] += 1

        update(np.ones(3))  # here
        weft.wait()

    main()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a deque of arrays",
    """
    import collections

    history = collections.deque([np.zeros(3) for _ in range(3)], maxlen=3)

    @weft.task
    def record(x: weft.Read[np.ndarray]) -> None:
        history[-1][:] = x

    record(np.ones(3))  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a namespace",
    """
    from types import SimpleNamespace

    world = SimpleNamespace(grid=np.zeros((4, 4)), step=0)

    @weft.task
    def diffuse(noise: weft.Read[np.ndarray]) -> None:
        world.grid[1:-1, 1:-1] += noise

    diffuse(np.ones((2, 2)))  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a closure in a closure",
    """
    def make(counter):
        def outer(x):
            def inner(value):
                counter[0] += value
            inner(float(x.sum()))
        return outer

    counter = np.zeros(1)
    count = weft.task(make(counter))
    x = np.ones(3)
    count(x)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a function in a dict",
    """
    errors = np.zeros(2)

    def on_ok(x):
        errors[0] += x

    HANDLERS = {"ok": on_ok}

    @weft.task
    def dispatch(x: weft.Read[np.ndarray], kind: str) -> None:
        HANDLERS[kind](x[0])

    dispatch(np.ones(3), "ok")  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a method as a task of its class",
    """
    class Meter:
        def __init__(self):
            self.peak = np.zeros(1)

        @weft.task
        def watch(self, x: weft.Read[np.ndarray]) -> None:
            self.peak[0] = max(self.peak[0], x.max())

    meter = Meter()
    meter.watch(np.arange(3.0))  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a callable object",
    """
    class Adder:
        def __init__(self, total):
            self.total = total

        def __call__(self):
            self.total += 1

    total, x = np.zeros(2), np.ones(3)
    engine = weft.get_engine()
    engine.push(Adder(total), mutate_vars=[engine.variable_of(x)])  # here
    engine.wait_for_all()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "an object that is read",
    """
    class Model:
        def __init__(self):
            self.weights = np.ones(3)
            self.calls = np.zeros(1)

    @weft.task
    def predict(model: weft.Read[Model], out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = model.weights * 2
        model.calls += 1

    model, out = Model(), np.zeros(3)
    predict(model, out)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "arrays given by star",
    """
    @weft.task
    def add_all(out: weft.Mutate[np.ndarray], *parts) -> None:
        for part in parts:
            out += part
            part[:] = 0

    out, a, b = np.zeros(2), np.ones(2), np.zeros(2)
    add_all(out, a, b)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "an array among keywords",
    """
    @weft.task
    def write(x: weft.Read[np.ndarray], **options) -> None:
        options["log"][0] = x.sum()

    log = np.zeros(1)
    write(np.ones(2), log=log)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a read-only view made writable",
    """
    @weft.task
    def clip(x: weft.Read[np.ndarray]) -> None:
        x.setflags(write=True)
        np.clip(x, 0, 1, out=x)

    x = np.arange(4.0)
    clip(x)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a pointer of ctypes",
    """
    import ctypes

    x, y = np.zeros(4), np.zeros(4)
    pointer = y.ctypes.data_as(ctypes.POINTER(ctypes.c_double))

    @weft.task
    def poke(x: weft.Mutate[np.ndarray]) -> None:
        x += 1
        pointer[2] = 9.0

    poke(x)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "an address",
    """
    import ctypes

    x, y = np.zeros(4), np.zeros(4)
    address = y.ctypes.data
    engine = weft.get_engine()
    engine.push(lambda: ctypes.memset(address, 1, 8), mutate_vars=[engine.variable_of(x)], name="memset")  # here
    engine.push(lambda: y.sum(), read_vars=[engine.variable_of(y)])
    engine.wait_for_all()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a function of C",
    """
    import ctypes

    libc = ctypes.CDLL(None)
    x, y = np.zeros(4), np.zeros(4)

    @weft.task
    def clear(x: weft.Mutate[np.ndarray]) -> None:
        x[:] = 0
        libc.memset(ctypes.c_void_p(y.ctypes.data), 3, ctypes.c_size_t(16))

    clear(x)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a memoryview",
    """
    x = np.zeros(8, np.uint8)
    window = memoryview(x)

    @weft.task
    def stamp(value: int) -> None:
        window[3] = value

    stamp(7)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "bytes of a bytearray",
    """
    buffer = bytearray(64)
    frame = np.frombuffer(buffer, np.uint8)

    @weft.task
    def show(frame: weft.Read[np.ndarray]) -> int:
        return int(frame[0])

    @weft.task
    def paint(value: int) -> None:
        buffer[5] = value

    show(frame)
    paint(9)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a push in a thread",
    """
    import threading

    totals = np.zeros(4)

    @weft.task
    def add(x: weft.Read[np.ndarray], at: int) -> None:
        totals[at] += x.sum()

    def work(at):
        for turn in range(3):
            add(np.ones(3), at)  # here

    threads = [threading.Thread(target=work, args=(at,)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a push in a coroutine",
    """
    import asyncio

    totals = np.zeros(4)

    @weft.task
    def add(x: weft.Read[np.ndarray]) -> float:
        totals[0] += x.sum()
        return float(totals[0])

    async def one():
        return await add(np.ones(3))  # here

    async def main():
        print(await asyncio.gather(*[one() for _ in range(3)]))

    asyncio.run(main())
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a push in a generator",
    """
    seen = np.zeros(1)

    @weft.task
    def load(at: int):
        seen[0] += 1
        return np.full(3, at)

    def batches():
        for at in range(4):
            yield load(at)  # here

    print(sum(batch.result().sum() for batch in batches()))
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a push in a comprehension",
    """
    seen = np.zeros(1)

    @weft.task
    def load(at: int):
        seen[0] += 1
        return np.full(3, at)

    handles = [load(at) for at in range(4)]  # here
    print(sum(handle.result().sum() for handle in handles))
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a task in a task",
    """
    totals = np.zeros(2)

    @weft.task
    def inner(x: weft.Read[np.ndarray]) -> None:
        totals[0] += x.sum()

    @weft.task
    def outer(x: weft.Mutate[np.ndarray]) -> None:
        x += 1
        inner(np.ones(3))  # here

    outer(np.zeros(3))
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a task in a task that waits",
    """
    totals = np.zeros(2)

    @weft.task
    def inner(x: weft.Read[np.ndarray]) -> None:
        totals[0] += x.sum()

    @weft.task
    def outer(x: weft.Mutate[np.ndarray]) -> None:
        x += 1
        inner(np.ones(3)).wait()  # here
        x += 1

    outer(np.zeros(3))
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "an executor",
    """
    totals = np.zeros(2)

    def work(at):
        totals[at % 2] += at
        return at

    with weft.Executor() as executor:
        futures = [executor.submit(work, at) for at in range(1, 6)]  # here
        print(sum(future.result() for future in futures))
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "an engine of its own",
    """
    grid = np.zeros((8, 8))
    halo = np.zeros(8)

    with weft.Engine(workers=2, name="stencil") as engine:
        of_grid, of_halo = engine.new_variable("grid"), engine.new_variable("halo")

        def sweep():
            grid[1:-1] += 1

        def exchange():
            halo[:] = 5
            grid[0] = halo

        for turn in range(3):
            engine.push(sweep, mutate_vars=[of_grid])
            engine.push(exchange, mutate_vars=[of_halo])  # here
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a task on an engine of its own",
    """
    scores = np.zeros(4)
    engine = weft.Engine(workers=2)

    @weft.task(engine=engine, name="score")
    def score(x: weft.Read[np.ndarray], at: int) -> None:
        scores[at] = x.sum()

    x = np.ones(10)
    for at in range(4):
        score(x, at)  # here
    engine.close()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a task of a method with a result",
    """
    class Trainer:
        def __init__(self):
            self.losses = np.zeros(10)
            self.step = weft.task(self._step)

        def _step(self, x: weft.Mutate[np.ndarray], at: int) -> float:
            x *= 0.5
            self.losses[at] = x.sum()
            return float(self.losses[at])

    trainer = Trainer()
    x = np.ones(4)
    for at in range(3):
        trainer.step(x, at)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "declared as read by the push",
    """
    x, y = np.zeros(3), np.ones(3)
    engine = weft.get_engine()
    vx, vy = engine.variable_of(x), engine.variable_of(y)
    for turn in range(3):
        engine.push(lambda: np.add(x, y, out=x), read_vars=[vx, vy])  # here
    engine.wait_for_all()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "the wrong variable",
    """
    engine = weft.Engine(workers=2)
    a, b, c = np.zeros(3), np.zeros(3), np.zeros(3)
    va, vb, vc = [engine.new_variable(name) for name in "abc"]

    def put(target, value):
        def run():
            target[:] = value
        return run

    engine.push(put(a, 1), mutate_vars=[va], name="a")
    engine.push(put(b, 2), mutate_vars=[vb], name="b")
    engine.push(put(c, 3), mutate_vars=[vc], name="c")
    engine.push(put(a, 4), mutate_vars=[va], name="a again")
    engine.push(put(b, 5), mutate_vars=[vc], name="b again")  # here
    engine.push(lambda: a + b + c, read_vars=[va, vb, vc], name="sum")
    engine.close()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a weft array in a closure",
    """
    import ctypes

    state = weft.zeros(4)
    shown = np.asarray(state)

    @weft.task
    def tick(x: weft.Mutate[np.ndarray]) -> None:
        x += 1
        ctypes.memset(shown.ctypes.data, 1, 8)

    tick(np.zeros(1))  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a push that completes later",
    """
    x, flags = np.zeros(3), np.zeros(1)
    engine = weft.get_engine()

    def start(complete):
        flags[0] = 1
        complete()

    engine.push_async(start, mutate_vars=[engine.variable_of(x)])  # here
    engine.wait_for_all()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a structured array",
    """
    people = np.zeros(3, dtype=[("age", "i4"), ("height", "f8")])

    @weft.task
    def birthday(at: int) -> None:
        people["age"][at] += 1

    for at in range(3):
        birthday(at)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a strided part",
    """
    image = np.zeros((16, 16, 3))
    red = image[:, :, 0]

    @weft.task
    def brighten(x: weft.Read[np.ndarray]) -> None:
        red[::2] += x.mean()

    brighten(np.ones(4))  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "an array in Fortran's order, in a matrix product",
    """
    out = np.zeros((4, 4), order="F")

    @weft.task
    def multiply(a: weft.Read[np.ndarray], b: weft.Read[np.ndarray]) -> None:
        np.matmul(a, b, out=out)

    multiply(np.ones((4, 4)), np.eye(4))  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a program with a push inside",
    """
    seen = np.zeros(1)
    engine = weft.get_engine()

    def note():
        seen[0] += 1

    @weft.program
    def step(x):
        y = x * 2
        engine.push(note, read_vars=[y], name="note")  # here
        return y + 1

    x = weft.ones(4)
    for turn in range(3):
        x = step(x)
    print(x)
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "an array of a class, read",
    """
    class Config:
        scale = np.ones(3)

    @weft.task
    def tune(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    @weft.task
    def apply(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = Config.scale * 2

    out = np.zeros(3)
    tune(Config.scale)
    apply(out)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "a view, read",
    """
    table = np.zeros((4, 3))
    row = table[2]

    @weft.task
    def fill(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = 3

    @weft.task
    def total(out: weft.Overwrite[np.ndarray]) -> None:
        out[0] = row.sum()

    out = np.zeros(1)
    fill(table)
    total(out)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "a partial, read",
    """
    import functools

    def blend(out, x, y):
        out[:] = 0.5 * x + 0.5 * y

    x, y, out = np.zeros(3), np.ones(3), np.zeros(3)
    engine = weft.get_engine()
    of = engine.variable_of
    engine.push(lambda: x.fill(4), mutate_vars=[of(x)])
    engine.push(functools.partial(blend, out, x, y), read_vars=[of(y)], mutate_vars=[of(out)])  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "a default argument, read",
    """
    weights = np.ones(3)

    @weft.task
    def train(w: weft.Mutate[np.ndarray]) -> None:
        w -= 0.5

    @weft.task
    def predict(x: weft.Read[np.ndarray], w=weights) -> float:
        return float(x @ w)

    train(weights)
    print(predict(np.ones(3)).result())  # here
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "a property",
    """
    class Field:
        def __init__(self):
            self._values = np.zeros(4)

        @property
        def energy(self):
            return float((self._values ** 2).sum())

    field = Field()

    @weft.task
    def kick(values: weft.Mutate[np.ndarray]) -> None:
        values += 2

    @weft.task
    def measure(out: weft.Overwrite[np.ndarray]) -> None:
        out[0] = field.energy

    out = np.zeros(1)
    kick(field._values)
    measure(out)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "a method of an object in a closure",
    """
    class Bank:
        def __init__(self):
            self.accounts = np.zeros(4)

        def total(self):
            return self.accounts.sum()

    def main():
        bank, out = Bank(), np.zeros(1)

        @weft.task
        def pay(accounts: weft.Mutate[np.ndarray], amount: float) -> None:
            accounts += amount

        @weft.task
        def audit(out: weft.Overwrite[np.ndarray]) -> None:
            out[0] = bank.total()

        for turn in range(3):
            pay(bank.accounts, turn + 1.0)
        audit(out)  # here
        weft.wait()

    main()
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "by a name that is looked up",
    """
    weights = np.ones(3)

    @weft.task
    def train(w: weft.Mutate[np.ndarray]) -> None:
        w += 1

    @weft.task
    def report(out: weft.Overwrite[np.ndarray], name: str) -> None:
        out[:] = globals()[name]

    out = np.zeros(3)
    train(weights)
    report(out, "weights")  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "by getattr",
    """
    class Net:
        def __init__(self):
            self.w, self.b = np.ones(3), np.zeros(3)

    net = Net()

    @weft.task
    def train(w: weft.Mutate[np.ndarray]) -> None:
        w += 1

    @weft.task
    def snapshot(out: weft.Overwrite[np.ndarray]) -> None:
        for name in ("w", "b"):
            out[:] += getattr(net, name)

    out = np.zeros(3)
    train(net.w)
    snapshot(out)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "a pointer of ctypes, read",
    """
    import ctypes

    x, y = np.zeros(4), np.zeros(4)
    pointer = x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))

    @weft.task
    def fill(out: weft.Overwrite[np.ndarray], value: float) -> None:
        out[:] = value

    @weft.task
    def peek(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = [pointer[at] for at in range(4)]

    fill(x, 3.0)
    peek(y)  # here
    fill(x, 4.0)
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "weights of a model of weft arrays",
    """
    w = weft.ones(3)

    @weft.task
    def predict(x: weft.Read[np.ndarray], out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = x * w.numpy()

    x, out = np.arange(3.0), np.zeros(3)
    for turn in range(3):
        w -= 0.1
        predict(x, out)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "a variable that one push leaves out",
    """
    a, b, c = np.zeros(4), np.zeros(4), np.zeros(4)
    engine = weft.get_engine()
    va, vb, vc = (engine.variable_of(each) for each in (a, b, c))

    def produce():
        a[:] = 1

    def consume():
        c[:] = a + b

    engine.push(produce, mutate_vars=[va])
    engine.push(lambda: b.fill(2), mutate_vars=[vb])
    engine.push(consume, read_vars=[vb], mutate_vars=[vc])  # here
    engine.wait_for_all()
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "an untagged parameter in a loop",
    """
    @weft.task
    def step(x: weft.Mutate[np.ndarray]) -> None:
        x *= 1.5

    @weft.task
    def norm(x) -> float:
        return float(np.sqrt((x ** 2).sum()))

    x = np.ones(4)
    norms = []
    for turn in range(4):
        step(x)
        norms.append(norm(x))  # here
    print([handle.result() for handle in norms])
""",
)
defect(
    ACCESSES,
    "undeclared-read",
    "a list that is given",
    """
    @weft.task
    def fill(out: weft.Overwrite[np.ndarray], value: float) -> None:
        out[:] = value

    @weft.task
    def mean(out: weft.Overwrite[np.ndarray], parts: list) -> None:
        out[:] = sum(parts) / len(parts)

    parts = [np.zeros(3) for _ in range(3)]
    out = np.zeros(3)
    for at, part in enumerate(parts):
        fill(part, at + 1.0)
    mean(out, parts)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "nondeterministic",
    "the global generator",
    """
    np.random.seed(0)

    @weft.task
    def jitter(x: weft.Mutate[np.ndarray]) -> None:
        x += np.random.normal(size=len(x))

    arrays = [np.zeros(8) for _ in range(6)]
    for x in arrays:
        jitter(x)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "nondeterministic",
    "Python's generator",
    """
    import random

    @weft.task
    def pick(items: list) -> int:
        return random.choice(items)

    print([pick(list(range(1000))).result() for _ in range(4)])  # here
""",
)
defect(
    ACCESSES,
    "nondeterministic",
    "a counter of Python's",
    """
    import itertools

    counter = itertools.count()

    @weft.task
    def number(out: weft.Overwrite[np.ndarray]) -> None:
        out[0] = next(counter)

    arrays = [np.zeros(1) for _ in range(8)]
    for x in arrays:
        number(x)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "nondeterministic",
    "a list that ops append to",
    """
    log = []

    @weft.task
    def note(x: weft.Mutate[np.ndarray], name: str) -> None:
        log.append(name)
        x[0] = len(log)

    for at in range(8):
        note(np.zeros(1), f"op {at}")  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "nondeterministic",
    "hashes of strings",
    """
    @weft.task
    def first(words: list) -> str:
        return next(iter(set(words)))

    words = [f"word{at}" for at in range(100)]
    print(first(words).result())  # here
""",
)
defect(
    ACCESSES,
    "nondeterministic",
    "an address of an object",
    """
    @weft.task
    def tag(out: weft.Overwrite[np.ndarray]) -> None:
        out[0] = id(object()) % 1_000_003

    x = np.zeros(1)
    tag(x)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "nondeterministic",
    "uuid in a push",
    """
    import uuid

    x = np.zeros(1)
    engine = weft.get_engine()

    def stamp():
        x[0] = uuid.uuid4().int % 10**9

    engine.push(stamp, mutate_vars=[engine.variable_of(x)])  # here
    engine.wait_for_all()
""",
)
defect(
    ACCESSES,
    "nondeterministic",
    "the time in a result",
    """
    import time

    @weft.task
    def now() -> float:
        return time.time()

    print(now().result())  # here
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "behind a weak reference",
    """
    import weakref

    class Holder:
        def __init__(self):
            self.cells = np.zeros(2)

    holder = Holder()
    found = weakref.ref(holder)

    @weft.task
    def touch(x: weft.Read[np.ndarray]) -> None:
        found().cells[0] += x[0]

    for _ in range(3):
        touch(np.ones(1))  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "half of a mapped file",
    """
    import tempfile

    with tempfile.TemporaryFile() as file:
        table = np.memmap(file, dtype="f8", mode="w+", shape=(8,))
    sums = np.zeros(2)

    @weft.task
    def put(x: weft.Read[np.ndarray], to: weft.Mutate[np.ndarray]) -> None:
        table[4:] += x[0]
        to += 1

    for turn in range(4):
        put(np.ones(2), sums)  # here
    weft.wait()
""",
)
defect(
    ACCESSES,
    "undeclared-write",
    "a task in a captured block",
    """
    seen, cells = np.zeros(1), np.zeros(3)

    @weft.task
    def clear(x: weft.Mutate[np.ndarray]) -> None:
        x[:] = 0

    @weft.task
    def note(x: weft.Read[weft.NDArray]) -> None:
        seen[0] += 1

    x = weft.ones(3)
    with weft.capture("noted") as block:
        x += 1
        clear(cells)
        note(x)  # here

    for _ in range(5):
        block.replay()
    weft.wait()
""",
)
