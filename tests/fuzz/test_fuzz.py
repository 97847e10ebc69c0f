"""A few thousand cases of one seed, of all generators; `python -m tests.fuzz` runs others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from .cases import Generator, without_each
from .generators import GENERATORS
from .gradients import TORCH, Derived
from .runner import Found, Progress, fuzz
from .sizes import attack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from random import Random

SEED = 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", GENERATORS)
def test_nothing_is_found(name: str) -> None:
    generator = GENERATORS[name]
    reason = generator.missing()
    if reason is not None:
        pytest.skip(reason)
    found: list[Found] = []
    fuzz([generator], Progress(SEED, 0, None), seconds=None, cases=generator.few, tell=found.append)
    assert not found, "\n".join(map(str, found))


@pytest.mark.skipif(TORCH is not None, reason=f"gradients are compared without {TORCH}")
def test_torch_is_a_second_oracle() -> None:
    case = Derived(("v = xp.hypot(v, x)", "v = v[..., :1] * v", "v = xp.sin(v) * 2"), (2, 3), 1)
    assert case.run() is None
    host = np.ones(3)
    assert Derived(("v = xp.sin(v)",), (3,), 0).by_torch(host, np.cos(host)) is None
    assert Derived(("v = xp.sin(v)",), (3,), 0).by_torch(host, np.sin(host)) is not None


@pytest.mark.slow
@pytest.mark.parametrize("form", ["{n}", "({n}, {n})"])
def test_every_function_takes_or_refuses_numbers_at_the_ends(form: str) -> None:
    problem = attack(250, *((number, form) for number in (2**31, 2**62, 2**63 - 1, -(2**63))))
    assert problem is None, problem


@dataclass(frozen=True)
class Lines:
    """A case that fails if it has both of two lines."""

    lines: tuple[str, ...]

    def run(self) -> str | None:
        return "both" if {"a", "b"} <= set(self.lines) else None

    def smaller(self) -> Iterator[Lines]:
        return map(Lines, without_each(self.lines))

    def __str__(self) -> str:
        return "\n".join(self.lines)


def some_lines(random: Random) -> Lines:
    return Lines(tuple(random.choices("abcdef", k=20)))


def test_what_fails_is_made_short_and_found_again(tmp_path: Path) -> None:
    generator, kept = Generator("lines", some_lines, few=5), tmp_path / "progress.json"
    found: list[Found] = []
    ran = fuzz([generator], Progress(7, 0, kept), seconds=None, cases=5, tell=found.append)
    assert ran == {"lines": 5}
    assert found
    assert {str(each.case) for each in found} <= {"a\nb", "b\na"}
    assert "--seed 7 --only lines --start" in str(found[0])
    assert Progress(7, 0, kept).next("lines") == 5, "it goes on where it was"
    kept.write_text(json.dumps({"seed": 7, "next": {"lines": 5}, "running": "lines"}))
    progress = Progress(7, 0, kept)
    assert progress.crashed == ("lines", 5), "the process ended there"
    assert progress.next("lines") == 6, "it goes on behind it"
