"""Gradients against central differences, and against torch where it is installed; eagerly and of programs."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from weft import autograd

from .cases import Generator, without_each

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["GENERATOR", "TORCH", "Derived"]

#: Smooth functions, by the names that weft and torch give them.
UNARY = ("sin", "cos", "exp", "tanh", "square", "sqrt", "log", "arctan", "sinh", "expm1", "log1p")
BINARY = ("add", "multiply", "divide", "hypot")
#: Why torch is not asked, or None.
TORCH = None if importlib.util.find_spec("torch") else "torch as a second oracle, which is not installed"
STEP = 1e-6


@dataclass(frozen=True)
class Derived:
    """Lines that make a scalar, `s`, of an array of positive numbers, `x`."""

    lines: tuple[str, ...]
    shape: tuple[int, ...]
    seed: int

    def value(self, xp: Any, x: Any) -> Any:
        names = {"xp": xp, "x": x, "v": x}
        exec("\n".join(self.lines), names)
        return names["v"].sum()

    def run(self) -> str | None:
        host = np.random.default_rng(self.seed).uniform(0.3, 1.2, self.shape)
        with np.errstate(all="ignore"):
            if self.is_singular(host):
                return None
            wanted, wider = self.differences(host, STEP), self.differences(host, 4 * STEP)
        if not np.allclose(wanted, wider, rtol=1e-5, atol=1e-6) or np.abs(wanted).max(initial=0) > 1e6:
            return (
                None  # differences say nothing: of infinities, and where the function is far from a line between them
            )
        x = weft.asarray(host)
        gradient = autograd.grad(lambda x: self.value(weft, x))
        for name, function in (("eager", gradient), ("program", weft.program(gradient))):
            for _ in range(2):
                found = function(x).numpy()
                if not np.allclose(found, wanted, rtol=1e-4, atol=1e-5 * max(1, np.abs(wanted).max(initial=0))):
                    return f"{name} and differences:\n{found!r}\nand\n{wanted!r}"
        return None if TORCH else self.by_torch(host, found)

    def is_singular(self, host: np.ndarray) -> bool:
        """Return whether a function meets zeros at which its slope is infinite, or is chosen."""
        names = {"xp": np, "x": host, "v": host}
        for line in self.lines:
            if any(f"xp.{name}(" in line for name in ("sqrt", "log", "hypot")) and not np.all(names["v"]):
                return True
            exec(line, names)
        return False

    def differences(self, host: np.ndarray, step: float) -> np.ndarray:
        """Return central differences."""
        found = np.zeros(host.shape)
        for at in np.ndindex(host.shape):
            high, low = host.copy(), host.copy()
            high[at] += step
            low[at] -= step
            found[at] = (self.value(np, high) - self.value(np, low)) / (2 * step)
        return found

    def by_torch(self, host: np.ndarray, found: np.ndarray) -> str | None:
        """Compare with torch."""
        import torch

        x = torch.tensor(host, requires_grad=True)
        self.value(torch, x).backward()
        wanted = x.grad.numpy()
        same = np.allclose(found, wanted, rtol=1e-9, atol=1e-11)
        return None if same else f"weft and torch:\n{found!r}\nand\n{wanted!r}"

    def smaller(self) -> Iterator[Derived]:
        for lines in without_each(self.lines):
            yield replace(self, lines=lines)

    def __str__(self) -> str:
        made = f"x = v = xp.asarray(np.random.default_rng({self.seed}).uniform(0.3, 1.2, {self.shape}))"
        return "\n".join((made, *self.lines, "s = v.sum()"))


def make(random: Random) -> Derived:
    lines = []
    for _ in range(random.randrange(1, 5)):
        kind = random.randrange(5)
        if kind < 2:
            lines.append(f"v = xp.{random.choice(UNARY)}(v)")
        elif kind == 2:
            lines.append(f"v = xp.{random.choice(BINARY)}(v, {random.choice(('x', 'v'))})")
        elif kind == 3:
            lines.append(
                random.choice(
                    (
                        "v = v * 0.5 + 1",
                        "v = v[..., :1] * v",
                        "v = v - 0.3 * v.mean()",
                        "v = v - 0.3 * x",
                        "v = v / (1 + v * v)",
                    )
                )
            )
        else:
            lines.append(random.choice(("v = v.reshape(-1)[::2]; x = x.reshape(-1)[::2]", "v = v.sum() * x")))
    return Derived(tuple(lines), random.choice(((3,), (2, 3), (1,))), random.randrange(1000))


GENERATOR = Generator("gradients", make, few=60, without=lambda: TORCH)
