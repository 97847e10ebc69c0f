"""Scripts with one defect each: the kind of its finding, and a comment ``# here`` at its line."""

from __future__ import annotations

import textwrap

#: What most of them begin with.
HEAD = """\
import numpy as np
import weft
"""

#: By name: the kind, and the script.
DEFECTS: dict[str, tuple[str, str]] = {}


def script(source: str) -> str:
    """Return a script with the lines that most of them begin with."""
    return HEAD + textwrap.dedent(source)


def defect(into: dict[str, tuple[str, str]], kind: str, name: str, source: str) -> None:
    """Add a script to a collection."""
    into[name] = kind, script(source)


def _defect(kind: str, name: str, source: str) -> None:
    defect(DEFECTS, kind, name, source)


_defect(
    "undeclared-write",
    "a global",
    """
    totals = np.zeros(2)

    @weft.task
    def add(x: weft.Read[np.ndarray]) -> None:
        totals[0] += x.sum()

    for turn in range(4):
        add(np.ones(3))  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "an array of an enclosing function",
    """
    def main() -> None:
        counts = np.zeros(4)

        @weft.task
        def count(x: weft.Read[np.ndarray]) -> None:
            counts[1] += len(x)

        count(np.ones(3)).wait()  # here

    main()
""",
)
_defect(
    "undeclared-write",
    "a parameter without a tag",
    """
    @weft.task
    def fill(out, value: float) -> None:
        out[:] = value

    x = np.zeros(8)
    fill(x, 2.0)  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "the base of a view that is read",
    """
    @weft.task
    def zero(x: weft.Read[np.ndarray]) -> None:
        x.base[:] = 0

    x = np.ones((4, 4))
    zero(x[1])  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "a list of arrays",
    """
    rows = [np.zeros(3) for _ in range(4)]

    @weft.task
    def accumulate(x: weft.Read[np.ndarray], at: int) -> None:
        rows[at] += x

    accumulate(np.ones(3), 2)  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "an array in a list that is given",
    """
    @weft.task
    def scale(arrays: list, x: weft.Mutate[np.ndarray]) -> None:
        x *= 2
        arrays[0][:] = x

    x, y = np.ones(3), np.zeros(3)
    scale([y], x)  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "an attribute of self",
    """
    class Meter:
        def __init__(self) -> None:
            self.sums = np.zeros(2)

        def add(self, x) -> None:
            self.sums += x.sum()

    meter = Meter()
    x = np.ones(3)
    engine = weft.get_engine()
    engine.push(lambda: meter.add(x), read_vars=[engine.variable_of(x)])  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "a dict of arrays",
    """
    state = {"mean": np.zeros(3), "count": np.zeros(1)}

    @weft.task
    def update(x: weft.Read[np.ndarray]) -> None:
        state["mean"] += x

    update(np.ones(3))  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "a global behind a function",
    """
    log = np.zeros(10)

    def note(value) -> None:
        log[0] = value

    @weft.task
    def work(x: weft.Mutate[np.ndarray]) -> None:
        x += 1
        note(x[0])

    work(np.ones(3))  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "a variable that one push forgets",
    """
    x, y = np.zeros(3), np.zeros(3)
    engine = weft.Engine(workers=2)
    of_x, of_y = engine.new_variable("x"), engine.new_variable("y")
    for turn in range(3):
        engine.push(lambda: np.add(x, 1, out=x), mutate_vars=[of_x])

    def both() -> None:
        y[:] = 2
        x[0] = 5

    engine.push(both, mutate_vars=[of_y])  # here
    engine.close()
""",
)
_defect(
    "undeclared-write",
    "the first push forgets its variable",
    """
    x = np.zeros(3)
    engine = weft.Engine(workers=2)
    of_x, other = engine.new_variable("x"), engine.new_variable("other")
    engine.push(lambda: np.add(x, 3, out=x), mutate_vars=[other])  # here
    for turn in range(3):
        engine.push(lambda: np.add(x, 1, out=x), mutate_vars=[of_x])
    engine.close()
""",
)
_defect(
    "undeclared-write",
    "read in place of mutated",
    """
    x = np.zeros(3)
    engine = weft.get_engine()
    engine.push(lambda: x.fill(1), read_vars=[engine.variable_of(x)], name="fill")  # here
    engine.wait_for_all()
""",
)
_defect(
    "undeclared-write",
    "an NDArray's memory",
    """
    x = weft.zeros(4)
    host = np.asarray(x)
    memory = x._storage()

    @weft.task
    def poke(y: weft.Mutate[np.ndarray]) -> None:
        y += 1
        memory[2] = 7

    y = np.zeros(2)
    poke(y)  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "beyond a slice that is declared",
    """
    x = weft.zeros(16)
    x.wait_to_read()
    memory = x._storage()
    part = x[:4]
    weft.get_engine().push(lambda: memory.fill(1), mutate_vars=[part])  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "a native function",
    """
    import ctypes

    libc = ctypes.CDLL(None)
    KIND = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
    x = np.zeros(64, np.uint8)

    def write(data) -> int:
        ctypes.memset(data, 1, 64)
        return 0

    function = KIND(write)
    engine = weft.get_engine()
    other = np.zeros(3)
    of_x = engine.variable_of(x)
    engine.push(lambda: None, read_vars=[of_x])
    engine.push_native(
        ctypes.cast(function, ctypes.c_void_p).value, x.ctypes.data, mutate_vars=[engine.variable_of(other)]
    )  # above
    engine.wait_for_all()
""".replace("    engine.push_native(\n        ctypes.cast", "    engine.push_native(  # here\n        ctypes.cast"),
)
_defect(
    "undeclared-write",
    "a method as a task",
    """
    class Counter:
        def __init__(self) -> None:
            self.hits = np.zeros(3)

    counter = Counter()

    @weft.task
    def hit(c, x: weft.Read[np.ndarray]) -> None:
        c.hits[0] += x[0]

    hit(counter, np.ones(3))  # here
    weft.wait()
""",
)
_defect(
    "undeclared-write",
    "an op of a program",
    """
    side = np.zeros(2)

    @weft.task
    def count(x: weft.Mutate[np.ndarray]) -> None:
        x += 1
        side[0] += 1

    @weft.program
    def step(x):
        count(x)  # here
        return x * 2

    x = weft.zeros(3)
    for turn in range(3):
        step(x).wait_to_read()
""",
)
_defect(
    "undeclared-write",
    "an operator",
    """
    x, y = np.zeros(3), np.zeros(3)
    engine = weft.get_engine()

    def run() -> None:
        x.__iadd__(1)
        y.__iadd__(1)

    operator = engine.new_operator(run, mutate_vars=[engine.variable_of(x)], name="run")
    operator.push()  # here
    engine.wait_for_all()
""",
)
_defect(
    "undeclared-read",
    "a global that others write",
    """
    table = np.zeros(3)

    @weft.task
    def fill(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = 5

    @weft.task
    def look(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = table * 2

    y = np.empty(3)
    fill(table)
    look(y)  # here
    weft.wait()
""",
)
_defect(
    "undeclared-read",
    "a parameter without a tag, read",
    """
    @weft.task
    def fill(out: weft.Overwrite[np.ndarray], value: float) -> None:
        out[:] = value

    @weft.task
    def copy(out: weft.Overwrite[np.ndarray], x) -> None:
        out[:] = x

    x, y = np.zeros(3), np.zeros(3)
    fill(x, 3.0)
    copy(y, x)  # here
    fill(x, 4.0)
    weft.wait()
""",
)
_defect(
    "undeclared-read",
    "a lambda",
    """
    x, y = np.zeros(3), np.zeros(3)
    engine = weft.Engine(workers=2)
    of_x, of_y = engine.variable_of(x), engine.variable_of(y)
    engine.push(lambda: x.fill(2), mutate_vars=[of_x])
    engine.push(lambda: np.copyto(y, x), mutate_vars=[of_y])  # here
    engine.close()
""",
)
_defect(
    "undeclared-read",
    "a variable made by hand",
    """
    x, y = np.zeros(3), np.zeros(3)
    engine = weft.Engine(workers=2)
    of_x, of_y = engine.new_variable("x"), engine.new_variable("y")
    engine.push(lambda: x.fill(2), mutate_vars=[of_x])
    engine.push(lambda: np.add(x, 1, out=y), mutate_vars=[of_y])  # here
    engine.close()
""",
)
_defect(
    "undeclared-read",
    "an attribute that a task reads",
    """
    class Model:
        def __init__(self) -> None:
            self.weights = np.ones(3)

    model = Model()

    @weft.task
    def train(w: weft.Mutate[np.ndarray]) -> None:
        w += 1

    @weft.task
    def predict(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = model.weights * 2

    y = np.empty(3)
    train(model.weights)
    predict(y)  # here
    weft.wait()
""",
)
_defect(
    "undeclared-read",
    "an item of a list",
    """
    rows = [np.zeros(3) for _ in range(4)]

    @weft.task
    def fill(out: weft.Overwrite[np.ndarray], value: float) -> None:
        out[:] = value

    @weft.task
    def total(out: weft.Overwrite[np.ndarray]) -> None:
        out[0] = sum(row.sum() for row in rows)

    y = np.zeros(1)
    for at, row in enumerate(rows):
        fill(row, at + 1.0)
    total(y)  # here
    weft.wait()
""",
)
_defect(
    "undeclared-read",
    "an array behind a method",
    """
    class Model:
        def __init__(self) -> None:
            self.layers = {"first": np.ones(3)}

        def score(self) -> float:
            return float(self.layers["first"].sum())

    model = Model()

    @weft.task
    def train(w: weft.Mutate[np.ndarray]) -> None:
        w += 1

    @weft.task
    def score(m: Model) -> float:
        return m.score()

    train(model.layers["first"])
    print(score(model).result())  # here
""",
)
_defect(
    "undeclared-read",
    "an NDArray that changes later",
    """
    x = weft.zeros(3)

    @weft.task
    def look(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = np.asarray(x)

    y = np.empty(3)
    look(y)  # here
    x += 1
    weft.wait()
""",
)
_defect(
    "first-nan",
    "a logarithm",
    """
    x = weft.arange(4.0)
    y = x + 1
    z = weft.log(x)  # here
    w = z * 2 + y
    print(w.sum())
""",
)
_defect(
    "first-nan",
    "a division in a loop",
    """
    x = weft.ones(4)
    for turn in range(6):
        y = x / (3 - turn)  # here
        z = y + 1
    print(z)
""",
)
_defect(
    "first-nan",
    "in a task",
    """
    @weft.task
    def normalise(x: weft.Mutate[np.ndarray]) -> None:
        with np.errstate(all="ignore"):
            x /= x.sum()

    x = np.array([1.0, -1.0])
    normalise(x)  # here
    weft.wait()
""",
)
_defect(
    "first-nan",
    "in a program",
    """
    @weft.program
    def step(x):
        y = x - 1
        z = weft.sqrt(y)  # here
        return z.sum()

    for turn in range(3):
        print(float(step(weft.ones(3) * (2 - turn))))
""",
)
_defect(
    "first-nan",
    "a sum that overflows",
    """
    x = weft.full((4,), 3e38, dtype="float32")
    y = x * 0.5
    print(x.sum() * 0 + y.sum())  # here
""",
)
_defect(
    "first-nan",
    "an operation in place",
    """
    x = weft.ones((3, 3))
    x[1] = 0
    x /= x  # here
    print(x)
""",
)
_defect(
    "first-nan",
    "a result of a task",
    """
    @weft.task
    def mean(x: weft.Read[np.ndarray]) -> float:
        return float(np.divide(x.sum(), 0.0))

    with np.errstate(all="ignore"):
        print(mean(np.ones(3)).result())  # here
""",
)
_defect(
    "nondeterministic",
    "an unseeded generator",
    """
    @weft.task
    def noise(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = np.random.default_rng().random(len(out))

    x = np.zeros(8)
    noise(x)  # here
    weft.wait()
""",
)
_defect(
    "nondeterministic",
    "the time",
    """
    import time

    @weft.task
    def stamp(out: weft.Overwrite[np.ndarray]) -> None:
        out[0] = time.perf_counter_ns()

    x = np.zeros(1)
    stamp(x)  # here
    weft.wait()
""",
)
_defect(
    "nondeterministic",
    "a generator that ops share",
    """
    rng = np.random.default_rng(7)

    @weft.task
    def draw(out: weft.Overwrite[np.ndarray]) -> None:
        out[:] = rng.random(len(out))

    arrays = [np.zeros(4) for _ in range(8)]
    for x in arrays:
        draw(x)  # here
    weft.wait()
""",
)
_defect(
    "wait-in-loop",
    "a wait for each result",
    """
    import time

    @weft.task
    def work(x: weft.Mutate[np.ndarray]) -> None:
        time.sleep(0.004)

    for x in [np.zeros(3) for _ in range(12)]:
        work(x)
        weft.wait(x)  # here
""",
)
_defect(
    "wait-in-loop",
    "the result of a handle",
    """
    import time

    @weft.task
    def work(at: int) -> int:
        time.sleep(0.004)
        return at

    total = 0
    for at in range(12):
        total += work(at).result()  # here
""",
)
_defect(
    "repeated-ops",
    "a loop of short ops",
    """
    x = weft.ones(16)
    for turn in range(200):
        y = x * 0.5  # here
        z = y + x
        y = weft.tanh(z)
        z = y - x
        y = z * z
        z = y + 1
        y = z - 0.5
        x = y / 1.5
    print(x)
""",
)
_defect(
    "copied-each-turn",
    "a constant of NumPy's",
    """
    table = np.arange(50_000.0)
    x = weft.zeros(50_000)
    for turn in range(12):
        x = x + table  # here
    print(x.sum())
""",
)
_defect(
    "copied-each-turn",
    "weft.array in a loop",
    """
    table = np.arange(5_000.0)
    total = weft.zeros(())
    for turn in range(12):
        x = weft.array(table)  # here
        total += x.sum()
    print(total)
""",
)
_defect(
    "short-task",
    "an increment",
    """
    @weft.task
    def bump(x: weft.Mutate[np.ndarray]) -> None:
        x[0] += 1

    arrays = [np.zeros(1) for _ in range(4)]
    for turn in range(400):
        bump(arrays[turn % 4])  # here
    weft.wait()
""",
)
_defect(
    "one-buffer",
    "a buffer that is filled again",
    """
    import time

    @weft.task
    def fill(out: weft.Overwrite[np.ndarray], value: int) -> None:
        time.sleep(0.001)
        out[:] = value

    @weft.task
    def use(x: weft.Read[np.ndarray]) -> None:
        time.sleep(0.006)

    buffer = np.zeros(16)
    for turn in range(10):
        fill(buffer, turn)  # here
        use(buffer)
    weft.wait()
""",
)
_defect(
    "recording-storm",
    "a number that changes",
    """
    @weft.program
    def scale(x, by):
        return x * by

    x = weft.ones(3)
    for turn in range(12):
        x = scale(x, 1.0 + turn / 100)  # here
    print(x)
""",
)
