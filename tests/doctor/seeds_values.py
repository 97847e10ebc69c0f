"""Scripts in which one op makes the first values that are not finite."""

from __future__ import annotations

from defects import defect

#: By name: the kind, and the script.
VALUES: dict[str, tuple[str, str]] = {}

_NAN = "first-nan"
defect(
    VALUES,
    _NAN,
    "a ratio in a function",
    """
    def normalise(x):
        spread = x.max() - x.min()
        return (x - x.mean()) / spread  # here

    rows = [weft.arange(4.0), weft.full((4,), 2.0), weft.arange(4.0) * 3]
    out = [normalise(row) for row in rows]
    print(sum(float(each.sum()) for each in out))
""",
)
defect(
    VALUES,
    _NAN,
    "a softmax that overflows",
    """
    def softmax(x):
        e = weft.exp(x)  # here
        return e / e.sum()

    print(softmax(weft.array([1.0, 2.0, 1000.0])))
""",
)
defect(
    VALUES,
    _NAN,
    "a mean of nothing",
    """
    x = weft.arange(5.0)
    rest = x[5:]
    average = rest.mean()  # here
    print(float(average))
""",
)
defect(
    VALUES,
    _NAN,
    "half precision",
    """
    x = weft.full((8,), 300.0, dtype=weft.float16)
    y = x + 1
    z = y * y  # here
    print(z.sum())
""",
)
defect(
    VALUES,
    _NAN,
    "a cast to single precision",
    """
    x = weft.array(np.array([1.0, 1e300]))
    y = x * 2
    z = y.astype(weft.float32)  # here
    print(z + 1)
""",
)
defect(
    VALUES,
    _NAN,
    "a matrix product",
    """
    a = weft.full((3, 3), 1e20, dtype=weft.float32)
    b = a * 2
    c = a @ b  # here
    print((c - c).sum())
""",
)
defect(
    VALUES,
    _NAN,
    "division of integers",
    """
    counts = weft.array(np.array([3, 0, 5]))
    total = counts.sum()
    share = total / counts  # here
    print(share)
""",
)
defect(
    VALUES,
    _NAN,
    "a power of a negative number",
    """
    x = weft.linspace(-1.0, 1.0, 5)
    y = x * 2
    print((y ** 0.5).sum())  # here
""",
)
defect(
    VALUES,
    _NAN,
    "a descent that diverges",
    """
    def loss(w):
        return (w ** 4).sum()

    grad = weft.grad(loss)
    w = weft.full((3,), 2.0)
    for turn in range(8):
        g = grad(w)
        w = w - 1.0 * g
    print(w)
""".replace("return (w ** 4).sum()", "return (w ** 4).sum()  # here"),
)
defect(
    VALUES,
    _NAN,
    "a gradient at zero",
    """
    def length(w):
        return weft.sqrt((w ** 2).sum())

    w = weft.zeros(3)
    print(length(w))
    g = weft.grad(length)(w)  # here
    print(g)
""",
)
defect(
    VALUES,
    _NAN,
    "a gradient on a tape",
    """
    from weft import autograd

    w = weft.zeros(3)
    w.requires_grad = True
    y = weft.sqrt(w).sum()
    slopes = autograd.gradients(y)  # here
    print(slopes[w])
""",
)
defect(
    VALUES,
    _NAN,
    "in place, in a slice",
    """
    x = weft.arange(6.0)
    x[2:4] = 0
    x[1:] -= 1
    x[:3] /= x[2:5]  # here
    print(x)
""".replace("x[2:4] = 0", "x[3:] = 1"),
)
defect(
    VALUES,
    _NAN,
    "a logarithm of a sum",
    """
    x = weft.zeros((2, 3))
    y = x + 0.0
    z = weft.log(y.sum(axis=1))  # here
    print(weft.exp(z))
""",
)
defect(
    VALUES,
    _NAN,
    "a norm that is divided by",
    """
    def unit(v):
        return v / weft.sqrt((v * v).sum())  # here

    vectors = [weft.ones(3), weft.zeros(3)]
    print([unit(v) for v in vectors])
""",
)
defect(
    VALUES,
    _NAN,
    "an arcus cosine",
    """
    a, b = weft.ones(4), weft.ones(4) * 1.0000001
    c = a * b
    angle = weft.arccos(c)  # here
    print(angle.sum())
""",
)
defect(
    VALUES,
    _NAN,
    "a program in a function",
    """
    @weft.program
    def entropy(p):
        logs = weft.log(p)  # here
        return -(p * logs).sum()

    def main():
        for share in (0.5, 0.25, 0.0):
            p = weft.array([share, 1 - share])
            print(float(entropy(p)))

    main()
""",
)
defect(
    VALUES,
    _NAN,
    "a step of a program that trains",
    """
    @weft.program
    def step(w, x, y):
        p = 1 / (1 + weft.exp(-(x @ w)))
        loss = -(y * weft.log(p) + (1 - y) * weft.log(1 - p)).mean()  # here
        return w - 0.1 * (x.T @ (p - y)), loss

    x = weft.array([[1.0, 100.0], [1.0, -3.0]])
    y = weft.array([1.0, 0.0])
    w = weft.array([0.0, 0.5])
    for turn in range(3):
        w, loss = step(w, x, y)
    print(loss)
""",
)
defect(
    VALUES,
    _NAN,
    "an op that changes a program's argument",
    """
    @weft.program
    def decay(x, by):
        x /= by  # here
        return x.sum()

    x = weft.ones(4)
    for by in (2.0, 1.0, 0.0):
        decay(x, weft.array(by))
    print(x)
""",
)
defect(
    VALUES,
    _NAN,
    "a task with an output",
    """
    @weft.task
    def divide(out: weft.Overwrite[np.ndarray], a: weft.Read[np.ndarray], b: weft.Read[np.ndarray]) -> None:
        with np.errstate(all="ignore"):
            np.divide(a, b, out=out)

    a, b, out = np.ones(4), np.arange(4.0), np.empty(4)
    divide(out, b, a)
    divide(out, a, b)  # here
    weft.wait()
""",
)
defect(
    VALUES,
    _NAN,
    "a push on variables",
    """
    x, y = np.array([4.0, -4.0]), np.zeros(2)
    engine = weft.get_engine()
    vx, vy = engine.variable_of(x), engine.variable_of(y)

    def root():
        with np.errstate(all="ignore"):
            np.sqrt(x, out=y)

    engine.push(lambda: x.__imul__(2), mutate_vars=[vx], name="double")
    engine.push(root, read_vars=[vx], mutate_vars=[vy])  # here
    engine.push(lambda: y.__iadd__(1), mutate_vars=[vy], name="shift")
    engine.wait_for_all()
""",
)
defect(
    VALUES,
    _NAN,
    "a push on variables made by hand",
    """
    x, y = np.array([4.0, 0.0]), np.zeros(2)
    engine = weft.Engine(workers=2)
    vx, vy = engine.new_variable("x"), engine.new_variable("y")

    def invert():
        with np.errstate(all="ignore"):
            np.divide(1.0, x, out=y)

    engine.push(lambda: x.__imul__(2), mutate_vars=[vx], name="double")
    engine.push(invert, read_vars=[vx], mutate_vars=[vy])  # here
    engine.push(lambda: y.__iadd__(1), mutate_vars=[vy], name="shift")
    engine.close()
""",
)
defect(
    VALUES,
    _NAN,
    "a result that other tasks take",
    """
    @weft.task
    def load(at: int) -> np.ndarray:
        return np.arange(3.0) * at

    @weft.task
    def ratio(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return x / x.sum()

    @weft.task
    def total(x: np.ndarray) -> float:
        return float(x.sum())

    print([total(ratio(load(at))).result() for at in (1, 0)])  # here
""",
)
defect(
    VALUES,
    _NAN,
    "a task on arrays of weft",
    """
    @weft.task
    def invert(x: weft.Mutate[weft.NDArray]) -> None:
        with np.errstate(all="ignore"):
            np.reciprocal(x, out=x)

    x = weft.arange(3.0)
    x += 0
    invert(x)  # here
    y = x * 2
    print(y)
""",
)
defect(
    VALUES,
    _NAN,
    "a dict of results",
    """
    @weft.task
    def stats(x: weft.Read[np.ndarray]) -> dict:
        with np.errstate(all="ignore"):
            return {"mean": float(x.mean()), "ratio": float(np.divide(x.max(), x.min()))}

    print(stats(np.arange(3.0)).result())  # here
""",
)
defect(
    VALUES,
    _NAN,
    "an object that is changed",
    """
    class Model:
        def __init__(self):
            self.scale = np.ones(2)

    @weft.task
    def rescale(model: weft.Mutate[Model], x: weft.Read[np.ndarray]) -> None:
        with np.errstate(all="ignore"):
            model.scale /= x

    model = Model()
    rescale(model, np.array([2.0, 0.0]))  # here
    weft.wait()
""",
)
defect(
    VALUES,
    _NAN,
    "complex numbers",
    """
    z = weft.array(np.array([1 + 1j, 0j]))
    w = z * 2
    v = 1 / w  # here
    print(v.sum())
""",
)
defect(
    VALUES,
    _NAN,
    "a cumulative product",
    """
    x = weft.full((400,), 10.0)
    y = weft.cumprod(x)  # here
    print(y[-1] * 0)
""",
)
defect(
    VALUES,
    _NAN,
    "a scan",
    """
    def body(carry, x):
        carry = carry / x  # here
        return carry, carry

    last, all_of_them = weft.scan(body, weft.ones(()), weft.array([2.0, 1.0, 0.0, 1.0]))
    print(last)
""",
)
defect(
    VALUES,
    _NAN,
    "a generator of batches",
    """
    def batches():
        for at in range(4):
            yield weft.arange(3.0) - at

    total = weft.zeros(())
    for batch in batches():
        total = total + weft.log(batch + 1).sum()  # here
    print(total)
""",
)
defect(
    VALUES,
    _NAN,
    "in a thread",
    """
    import threading

    out = []

    def work(at):
        x = weft.full((4,), float(at))
        y = x - 1
        out.append(weft.log(weft.abs(y)))  # here

    threads = [threading.Thread(target=work, args=(at,)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(out)
""",
)
defect(
    VALUES,
    _NAN,
    "in a lambda",
    """
    f = lambda x: weft.sqrt(x - 2)  # here
    y = f(weft.arange(5.0))
    print(y.sum())
""",
)
defect(
    VALUES,
    _NAN,
    "numpy's function on arrays of weft",
    """
    x = weft.arange(4.0)
    y = np.log(x)  # here
    print(np.sum(y))
""",
)
defect(
    VALUES,
    _NAN,
    "an op with an output",
    """
    a, b = weft.ones(3), weft.zeros(3)
    out = weft.empty(3)
    weft.add(a, b, out=out)
    weft.divide(a, b, out=out)  # here
    print(out)
""",
)
defect(
    VALUES,
    _NAN,
    "an inverse",
    """
    a = weft.array([[1.0, 2.0], [2.0, 4.0 + 1e-320]])
    d = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    adjugate = weft.stack([weft.stack([a[1, 1], -a[0, 1]]), weft.stack([-a[1, 0], a[0, 0]])])
    inverse = adjugate / d  # here
    print(inverse @ a)
""",
)
defect(
    VALUES,
    _NAN,
    "a broadcast in a network",
    """
    from weft import nn

    x = weft.ones((4, 3))
    mean, var = x.mean(axis=0), x.var(axis=0)
    y = (x - mean) / weft.sqrt(var)  # here
    print(weft.maximum(y, 0).sum())
""".replace("    from weft import nn\n\n", ""),
)
defect(
    VALUES,
    _NAN,
    "a task on arrays of weft in a loop",
    """
    @weft.task
    def invert(x: weft.Mutate[weft.NDArray]) -> None:
        with np.errstate(all="ignore"):
            np.reciprocal(x, out=x)

    x = weft.arange(3.0)
    for turn in range(3):
        invert(x)  # here
    print(x)
""",
)
defect(
    VALUES,
    _NAN,
    "a list of whole numbers",
    """
    @weft.task
    def ratio(counts: list) -> float:
        with np.errstate(all="ignore"):
            return float(np.divide(counts[0], counts[1]))

    print(ratio([3, 0]).result())  # here
""",
)
defect(
    VALUES,
    "first-nan",
    "a variance of one number",
    """
    x = weft.asarray([1.0])
    spread = x.var(ddof=1)  # here
    scaled = weft.asarray([2.0]) / spread
    weft.wait()
""",
)
defect(
    VALUES,
    "first-nan",
    "a program with draws, at a late call",
    """
    rng = weft.random.default_rng(1)

    @weft.program
    def step(x):
        y = x + rng.normal(size=(4,)) * 0
        return weft.sqrt(y)  # here

    for turn in range(60):
        y = step(weft.full(4, -1.0 if turn == 50 else 1.0))
    weft.wait()
""",
)
defect(
    VALUES,
    "first-nan",
    "a branch that is taken once",
    """
    @weft.program
    def step(x):
        return weft.cond(x.sum() > 0, lambda x: x * 2, lambda x: weft.log(x), x)  # here

    for turn in range(40):
        y = step(weft.full(3, -1.0 if turn == 33 else 1.0))
    weft.wait()
""",
)
defect(
    VALUES,
    "first-nan",
    "a task in a program",
    """
    @weft.task
    def inverse(x: weft.Read[np.ndarray], y: weft.Overwrite[np.ndarray]) -> None:
        y[:] = 1 / x

    @weft.program
    def step(x):
        y = weft.empty_like(x)
        inverse(x, y)  # here
        return y.sum()

    for turn in range(25):
        total = step(weft.full(4, float(turn - 18)))
    weft.wait()
""",
)
defect(
    VALUES,
    "first-nan",
    "a captured block",
    """
    x, down = weft.ones(3), weft.full(3, 3.0)
    with weft.capture("down") as block:
        down -= 1
        x /= down

    for _ in range(5):
        block.replay()  # here
    weft.wait()
""",
)
