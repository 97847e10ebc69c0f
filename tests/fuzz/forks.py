"""Forks at a random moment, of a process of its own whose threads use weft: the child computes and ends, and so does the parent."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .cases import Generator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["GENERATOR"]

SCRIPT = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import weft
from weft import autograd

def use(stop):
    x = weft.ones(50)
    step = weft.program(lambda x: (x * 2).sum())
    while not stop.is_set():
        {busy}

def check():
    assert (weft.arange(5) * 2).tolist() == [0, 2, 4, 6, 8]
    assert weft.linalg.det(weft.asarray(np.eye(3))).item() == 1.0

stop = threading.Event()
threads = [threading.Thread(target=use, args=(stop,)) for _ in range({threads})]
for thread in threads:
    thread.start()
for after in {pauses}:
    time.sleep(after / 1e6)
    child = os.fork()
    if not child:
        check()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "the child"
stop.set()
for thread in threads:
    thread.join()
check()
print("done")
"""
BUSY = (
    *("(x + 1).sum().item()", "step(x).item()", "weft.linalg.inv(weft.asarray(np.eye(3))).wait_to_read()"),
    *("autograd.grad(lambda x: (x * x).sum())(x).wait_to_read()", "weft.get_engine().push(lambda: None)"),
)
#: Seconds that a case may take: only a hang takes them.
SECONDS = 60


@dataclass(frozen=True)
class Forked:
    """What threads do, how many there are, and microseconds before each fork."""

    busy: str
    threads: int
    pauses: tuple[int, ...]

    def script(self) -> str:
        return SCRIPT.format(busy=self.busy, threads=self.threads, pauses=self.pauses)

    def run(self) -> str | None:
        command = [sys.executable, "-c", self.script()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return "hangs"
        return (
            None if done.stdout == "done\n" and not done.returncode else f"ended with {done.returncode}:\n{done.stderr}"
        )

    def smaller(self) -> Iterator[Forked]:
        if self.threads:
            yield Forked(self.busy, self.threads - 1, self.pauses)
        if len(self.pauses) > 1:
            yield Forked(self.busy, self.threads, self.pauses[: len(self.pauses) // 2])

    def __str__(self) -> str:
        return self.script()


def make(random: Random) -> Forked:
    pauses = tuple(random.randrange(2000) for _ in range(random.randrange(1, 6)))
    return Forked(random.choice(BUSY), random.randrange(3), pauses)


def missing() -> str | None:
    return None if hasattr(os, "fork") else "this system has no fork"


GENERATOR = Generator("forks", make, few=3, missing=missing)
