"""Calls that follow each other, in virtual time: each op lasts as long as it says, on the device that it is for.

Threads only decide who is asked first; when an op begins follows from what it reads and writes, and from what its device
has done before.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import MakeEngine

LAYERS = 8
CALLS = 4
FORWARD, BACKWARD, NORM, UPDATE = 2.0, 4.0, 1.0, 3.0


@dataclass
class Clock:
    """When what was done."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    written: dict[str, float] = field(default_factory=dict)
    read: dict[str, float] = field(default_factory=dict)
    devices: dict[int, float] = field(default_factory=dict)

    def run(self, device: int, lasts: float, reads: Sequence[str], mutates: Sequence[str]) -> None:
        """Let an op begin when all is there, and end."""
        with self.lock:
            begins = [self.devices.get(device, 0.0)]
            begins += [self.written.get(name, 0.0) for name in (*reads, *mutates)]
            begins += [self.read.get(name, 0.0) for name in mutates]
            ends = max(begins) + lasts
            self.devices[device] = ends
            self.read.update((name, max(ends, self.read.get(name, 0.0))) for name in reads)
            self.written.update((name, ends) for name in mutates)

    @property
    def now(self) -> float:
        """When the last op has ended."""
        return max(self.devices.values())


def train(push: Callable[[int, float, Sequence[str], Sequence[str]], None]) -> None:
    """Push a step: forwards and backwards on one device, then the norm of all gradients, then updates on the other."""
    for layer in range(LAYERS):
        push(0, FORWARD, [f"w{layer}", f"h{layer}"], [f"h{layer + 1}"])
    for layer in reversed(range(LAYERS)):
        push(0, BACKWARD, [f"w{layer}", f"h{layer}", f"d{layer + 1}"], [f"d{layer}", f"g{layer}"])
    push(0, NORM, [f"g{layer}" for layer in range(LAYERS)], ["norm"])
    for layer in range(LAYERS):
        push(1, UPDATE, ["norm", f"g{layer}"], [f"w{layer}"])


def virtual_time(engine: weft.Engine, *, recorded: bool) -> float:
    """Return when the last of some steps has ended."""
    clock = Clock()
    names = [f"{kind}{layer}" for kind in "whdg" for layer in range(LAYERS + 1)] + ["norm"]
    arrays = {name: weft.zeros(1, engine=engine) for name in names}

    def push(device: int, lasts: float, reads: Sequence[str], mutates: Sequence[str]) -> None:
        engine.push(
            lambda: clock.run(device, lasts, reads, mutates),
            [arrays[name] for name in reads],
            [arrays[name] for name in mutates],
            device=weft.cpu(device),
        )

    def step(first: weft.NDArray) -> None:
        del first  # of this engine
        train(push)

    call = weft.program(step) if recorded else step
    for _ in range(CALLS):
        call(arrays["w0"])
    engine.wait_for_all()
    return clock.now


@pytest.mark.parametrize("policy", ["per_device", "work_stealing"])
def test_steps_of_training_overlap_layer_by_layer(make_engine: MakeEngine, policy: str) -> None:
    # In the order of the pushes every op finds its device free as early as its layer is there.
    reference = Clock()
    for _ in range(CALLS):
        train(reference.run)
    alone = Clock()
    train(alone.run)
    assert reference.now < 0.9 * CALLS * alone.now, "the updates of a step lie beside the next one's layers"
    engines = [make_engine(1 if policy == "per_device" else 2, policy) for _ in range(2)]
    recorded = virtual_time(engines[0], recorded=True)
    eager = virtual_time(engines[1], recorded=False)
    assert recorded <= 1.05 * reference.now
    if policy == "per_device":  # two threads of one pool: chance decides who takes what
        assert recorded <= eager
