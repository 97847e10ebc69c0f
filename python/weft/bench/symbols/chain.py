"""A long chain of additions as a symbol, timed step by step: ``python chain.py weft|mxnet OPS`` prints one JSON object.

It is run by its path, in a process of its own, by the Python that has the library: it imports nothing of this package but weft.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

#: The timed steps, in this order.
STEPS = ("build", "save", "load", "infer shapes", "bind")
_LENGTH = 2


def timed(library: str, ops: int) -> dict[str, float]:
    """Return the seconds of each step, and ``verified``: 1.0 if the symbol that was loaded has the same arguments and shapes.

    Parameters
    ----------
    library : {'weft', 'mxnet'}
        The library of the symbols.
    ops : int
        The length of the chain.

    Examples
    --------
    >>> from weft.bench.symbols.chain import STEPS, timed
    >>> found = timed("weft", 10)
    >>> found["verified"], all(found[step] > 0 for step in STEPS)
    (1.0, True)
    """
    # Without it MXNet looks for oneDNN's subgraphs, which takes it ten times as long.
    os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
    module: Any = importlib.import_module(library)
    symbols: Any = importlib.import_module(f"{library}.symbol")
    where = () if library == "weft" else (module.cpu(),)
    seconds: list[float] = []
    start = perf_counter()

    def lap() -> None:
        nonlocal start
        seconds.append(perf_counter() - start)
        start = perf_counter()

    y = symbols.Variable("x")
    for _ in range(ops):
        y = y + 1
    lap()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "chain.json")
        start = perf_counter()
        y.save(path)
        lap()
        again = symbols.load(path)
        lap()
    start = perf_counter()
    shapes = y.infer_shape(x=(_LENGTH,))
    lap()
    y.simple_bind(*where, grad_req="null", x=(_LENGTH,))
    lap()
    same = again.list_arguments() == ["x"] and again.infer_shape(x=(_LENGTH,)) == shapes
    return {**dict(zip(STEPS, seconds, strict=True)), "verified": float(same)}


if __name__ == "__main__":
    print(json.dumps(timed(sys.argv[1], int(sys.argv[2]))))
