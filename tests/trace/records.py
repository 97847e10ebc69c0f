"""Records made by hand, and runs of random programs on imagined workers: what the core would have answered."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from weft._trace.record import NO_OP, NONE, Access, Kind, Outcome, Record
from weft._trace.views import Views

OPS = {
    "number": "u8", "name": "u4", "place": "u4", "kind": "u1", "lane": "u2", "priority": "i4", "bytes": "u8", "pusher": "u2",
    "worker": "u2", "parent": "i8", "pushed": "i8", "ready": "i8", "started": "i8", "ended": "i8", "settled": "i8",
    "outcome": "u1", "stream": "u2", "device_started": "i8", "device_ended": "i8", "moved": "u8",
}  # fmt: skip
ACCESSES = {"op": "u4", "variable": "u4", "kind": "u1", "version": "u8"}


class Recording:
    """Collects ops as a core would, in the order of pushes. The main thread is number 0, workers follow."""

    def __init__(self, workers: int = 2) -> None:
        self.names: list[str] = [""]
        self.places: list[str] = [""]
        self.variables: dict[str, int] = {}
        self.versions: dict[str, int] = {}
        self.threads = [{"name": "MainThread", "kind": "thread", "lane": 0, "ident": 1}]
        self.threads += [
            {"name": f"weft-0.{at}", "kind": "worker", "lane": 0, "ident": 2 + at} for at in range(workers)
        ]
        self.streams: list[dict[str, str]] = []
        self.ops: list[dict[str, int]] = []
        self.accesses: list[dict[str, int]] = []
        self.errors: dict[int, str] = {}

    def op(
        self,
        name: str,
        start: int = 0,
        end: int = 0,
        *,
        worker: int | None = 1,
        read: str = "",
        mutate: str = "",
        overwrite: str = "",
        place: str = "run.py:1",
        error: str = "",
        **columns: int,
    ) -> int:
        """Add an op that ran from `start` to `end`; variables are letters. Return its index."""
        index = len(self.ops)
        row = dict.fromkeys(OPS, 0) | {
            "number": index, "name": self._index(self.names, name), "place": self._index(self.places, place),
            "worker": NONE if worker is None else worker, "parent": NO_OP, "stream": NONE, "pushed": max(start - 1, 1),
            "ready": start, "started": start, "ended": end, "settled": end, "outcome": Outcome.DONE if end else Outcome.PENDING,
        }  # fmt: skip
        self.ops.append(row | ({"outcome": Outcome.FAILED} if error else {}) | columns)
        if error:
            self.errors[index] = error
        for letters, kind in ((read, Access.READ), (mutate, Access.MUTATE), (overwrite, Access.OVERWRITE)):
            for letter in letters:
                self.versions[letter] = self.versions.get(letter, 0) + (kind != Access.READ)
                variable = self.variables.setdefault(letter, len(self.variables))
                version = self.versions[letter]
                self.accesses.append({"op": index, "variable": variable, "kind": kind, "version": version})
        return index

    def _index(self, texts: list[str], text: str) -> int:
        if text not in texts:
            texts.append(text)
        return texts.index(text)

    def answer(self, duration: int | None = None, dropped: int = 0) -> dict[str, Any]:
        """Return what the core would answer."""
        last = max((max(op["settled"], op["ended"], op["device_ended"], op["started"]) for op in self.ops), default=0)
        return {
            "epoch": 1.7e9,
            "duration": last + 10 if duration is None else duration,
            "dropped": dropped,
            "names": self.names,
            "places": self.places,
            "threads": self.threads,
            "streams": self.streams,
            "variables": [{"id": at, "name": name, "bytes": 0} for name, at in self.variables.items()],
            "ops": {name: np.array([op[name] for op in self.ops], kind).tobytes() for name, kind in OPS.items()},
            "accesses": {
                name: np.array([a[name] for a in self.accesses], kind).tobytes() for name, kind in ACCESSES.items()
            },
            "errors": self.errors,
        }

    def record(self, **about: int) -> Record:
        """Return the record."""
        return Record.read(self.answer(**about))

    def views(self) -> Views:
        """Return the record with what can be seen in it."""
        return Views(self.record())


def random_run(count: int, seed: int, workers: int = 2, variables: int = 12) -> Recording:
    """Return a run of random ops, each started by the worker that is free first once what it waits for is over."""
    rng = random.Random(seed)
    run = Recording(workers)
    letters = [chr(ord("a") + at) if at < 26 else f"\u0100{at}"[0] for at in range(variables)]
    written: dict[str, int] = dict.fromkeys(letters, 0)  # when the last mutation is over
    looked: dict[str, int] = dict.fromkeys(letters, 0)  # when all accesses are over
    free = [0] * workers
    kinds = {
        "load": Kind.COPY, "store": Kind.COPY, "exp": Kind.COMPUTE, "matmul": Kind.COMPUTE, "add": Kind.COMPUTE,
        "train.<locals>.step": Kind.CALLABLE, "evaluate": Kind.CALLABLE, "solve": Kind.NATIVE,
    }  # fmt: skip
    pushed = 1000
    for at in range(count):
        name = rng.choice(list(kinds))
        mutate, *read = rng.sample(letters, rng.randint(1, 3))
        pushed += rng.randint(200, 2500)
        over = max(looked[mutate], *(written[letter] for letter in read), 0) if read else looked[mutate]
        ready = max(pushed + 100, over + 100)
        worker = min(range(workers), key=free.__getitem__)
        start = max(ready + rng.randint(50, 500), free[worker] + 20)
        end = start + rng.choice([40, 900, 3000, 8000, 25_000]) + rng.randint(0, 1000)
        failed = rng.random() < 0.01
        run.op(
            name, start, end, worker=worker + 1, read="".join(read), mutate=mutate, kind=kinds[name], pushed=pushed, ready=ready,
            settled=end + 60, place=f"train.py:{10 + len(name)}", error="ValueError: no good" if failed else "", number=at,
            bytes=rng.choice([0, 4096, 1 << 20]),
        )  # fmt: skip
        free[worker] = end
        written[mutate] = looked[mutate] = end
        for letter in read:
            looked[letter] = max(looked[letter], end)
        if not at % 50:
            run.op("wait for a", pushed, end, worker=None, read=mutate, kind=Kind.WAIT, pushed=pushed)
            pushed = max(pushed, end)
    return run
