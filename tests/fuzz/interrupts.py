"""KeyboardInterrupt at a random moment of calls: what they leave is as it was, and the next calls do what they should."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from weft import autograd

from .cases import Generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

__all__ = ["GENERATOR"]


def train() -> None:
    w = weft.ones(4)
    for _ in range(3):
        w -= 0.1 * autograd.grad(lambda w: (w * w).sum())(w)


def recorded() -> None:
    step = weft.program(lambda x: (x * 2 + 1).sum())
    for _ in range(3):
        step(weft.ones(8)).item()


def hosted() -> None:
    weft.linalg.inv(weft.asarray(np.eye(3) * 2)).numpy()


def pushed() -> None:
    engine = weft.get_engine()
    variable = engine.new_variable()
    for _ in range(5):
        engine.push(lambda: time.sleep(0.0001), (), [variable])
    engine.wait_for_all()


def indexed() -> None:
    x = weft.arange(100)
    x[x > 50] = 0
    x[[1, 2, 3]].tolist()


def composed() -> None:
    x = weft.symbol.Variable("x")
    weft.symbol.load_json((x * 2 + 1).tojson()).eval(x=weft.ones(3))


CALLS: dict[str, Callable[[], None]] = {
    function.__name__: function for function in (train, recorded, hosted, pushed, indexed, composed)
}


@dataclass(frozen=True)
class Interrupted:
    """Calls, each with an interrupt after so many microseconds."""

    calls: tuple[tuple[str, int], ...]

    def run(self) -> str | None:
        if threading.current_thread() is not threading.main_thread():
            return None
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            for name, after in self.calls:
                interrupt(CALLS[name], after / 1e6)
        finally:
            signal.signal(signal.SIGINT, before)
        return aftermath()

    def smaller(self) -> Iterator[Interrupted]:
        for at in range(len(self.calls)):
            yield replace(self, calls=self.calls[:at] + self.calls[at + 1 :])

    def __str__(self) -> str:
        return "\n".join(f"{name}()  # interrupted after {after} us" for name, after in self.calls)


def interrupt(call: Callable[[], None], after: float) -> None:
    """Make a call, interrupted after so long, if it takes so long."""
    done = threading.Event()

    def strike() -> None:
        if not done.wait(after):
            _thread.interrupt_main()

    striker = threading.Thread(target=strike)
    try:
        try:
            striker.start()
            call()
        finally:
            done.set()
            striker.join()
            time.sleep(0)  # where an interrupt that is on its way arrives
    except KeyboardInterrupt:
        done.set()
        striker.join()


def aftermath() -> str | None:
    """Return what no longer works."""
    weft.wait_all()
    w = weft.asarray([1.0, 2.0])
    gradient: Any = autograd.grad(lambda w: (w * w).sum())(w)
    if gradient.tolist() != [2.0, 4.0]:
        return f"the gradient is {gradient!r}"
    step = weft.program(lambda x: x * 2)
    for _ in range(3):
        if step(w).tolist() != [2.0, 4.0]:
            return "a program gives something else"
    if not step.programs:
        return "no program is recorded any more"
    if (w + 1).tolist() != [2.0, 3.0]:
        return "a sum is something else"
    return None


def make(random: Random) -> Interrupted:
    return Interrupted(tuple((random.choice(list(CALLS)), random.randrange(1, 3000)) for _ in range(5)))


GENERATOR = Generator("interrupts", make, few=10)
