"""Communicators of arrays on GPUs: NCCL's calls on the tests' driver, and on two GPUs where there are two."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from launching import launch, needs_mpi, outcomes

#: What `checks_nccl` has, which stands in for CuPy when it is imported: here it is but named.
SOURCE = (Path(__file__).parent / "checks_nccl.py").read_text(encoding="utf-8").splitlines()
CHECKS = [
    (line.split()[1].partition("(")[0], above.startswith(" "))
    for above, line in itertools.pairwise(SOURCE)
    if above.strip() == "@check"
]


@pytest.mark.slow
@needs_mpi
@pytest.mark.usefixtures("fake_cuda")
@pytest.mark.parametrize("check", [name for name, _ in CHECKS])
def test_nccl(check: str) -> None:
    found, text = outcomes(2, "checks_nccl")
    for rank in range(2):
        assert found.get((check, rank), f"rank {rank} never came to it:\n{text}") == "passed"


@needs_mpi
@pytest.mark.multi_gpu
def test_nccl_on_two_gpus() -> None:
    done = launch(2, "ranks.py", "checks_nccl", WEFT_REAL_GPUS="1")
    assert done.returncode == 0, done
    passed = [f'["{name}", {rank}, "passed"]' for name, simulated in CHECKS if not simulated for rank in range(2)]
    assert [each for each in passed if each not in done.stdout] == [], done.stdout
