"""A script that registers computes for ops which have run, on either kind of device: for `str.format`."""

from __future__ import annotations

#: What a script registers for ops that have run: a compute that counts its calls and gives what nothing else would.
REPLACED = """
    import operator
    import numpy as np, weft

    DEVICE = weft.{device}(0)
    called = []

    def there(x):
        return weft.asarray(x, device=DEVICE)

    def replace(name, compute):
        def counted(out, *operands):
            called.append(name)
            compute(out, *operands)
        weft.ops.get_op(name).set_attribute("compute:{kind}", counted)

    def same(found, wanted, *names):
        found = found.numpy().tolist()
        assert found == wanted, (found, wanted)
        assert called == list(names), called
        called.clear()

    x, y, n = there([1.0, 2.0]), there([3.0, 5.0]), there([7, 9])
    for _ in range(3):  # by Python, then by what it has left
        same(x + y, [4.0, 7.0])
        same(x + n, [8.0, 11.0])
        same(x + 1, [2.0, 3.0])
        same(1 - x, [0.0, -1.0])
        same(-x, [-1.0, -2.0])
        same(x < y, [True, True])
        same(weft.add(x, y), [4.0, 7.0])
        same(weft.sqrt(there([4.0, 9.0])), [2.0, 3.0])
        z = there([1.0, 2.0])
        z += y
        same(z, [4.0, 7.0])
        same(x * y, [3.0, 10.0])
    replace("add", lambda out, a, b: np.copyto(out, 100 * a + b))
    replace("subtract", lambda out, a, b: np.copyto(out, 100 * a - b))
    replace("negative", lambda out, a: np.copyto(out, 100 * a))
    replace("less", lambda out, a, b: np.copyto(out, a > b))
    replace("sqrt", lambda out, a: np.copyto(out, 100 * a))
    for _ in range(3):
        same(x + y, [103.0, 205.0], "add")
        same(y + x, [301.0, 502.0], "add")
        same(x + n, [107.0, 209.0], "add")
        same(x + 1, [101.0, 201.0], "add")
        same(1 - x, [99.0, 98.0], "subtract")
        same(-x, [100.0, 200.0], "negative")
        same(x < y, [False, False], "less")
        same(weft.add(x, y), [103.0, 205.0], "add")
        same(weft.sqrt(there([4.0, 9.0])), [400.0, 900.0], "sqrt")
        z = there([1.0, 2.0])
        z += y
        same(z, [103.0, 205.0], "add")
        z[:] = there([1.0, 2.0])
        weft.add(z, z[::-1], out=z)
        same(z, [102.0, 201.0], "add")
        wide = there(np.zeros(2, "c16"))
        weft.add(x, y, out=wide)
        same(wide, [103.0, 205.0], "add")
        same(x * y, [3.0, 10.0])
"""
