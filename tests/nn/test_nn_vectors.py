"""Loops of kernels are compiled for several kinds of vectors: the bits are the same with all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from weft._core import vectors

if TYPE_CHECKING:
    from conftest import RunScript

_KERNELS = """
import hashlib, sys
import numpy as np
import weft
from weft import nn
from weft._core import vectors

rng, digest = np.random.default_rng(7), hashlib.sha256()

def note(*results):
    for result in results:
        digest.update(result.numpy().tobytes())

for dtype in ("float32", "float64"):
    def numbers(*shape):
        return weft.asarray(rng.standard_normal(shape).astype(dtype))

    rows, images = numbers(37, 83), numbers(3, 8, 13, 11)
    per_channel = [numbers(8) for _ in range(2)]
    note(nn.softmax(rows), nn.log_softmax(rows), nn.softmax(rows, axis=0))
    note(nn.cross_entropy(rows, weft.asarray(rng.integers(0, 83, 37))))
    note(nn.layer_norm(rows, numbers(83), numbers(83)))
    note(nn.batch_norm(images, *per_channel, numbers(8), numbers(8) ** 2 + 1))
    note(nn.relu(images), nn.sigmoid(rows), nn.gelu(rows), nn.elu(rows))
    note(nn.conv(numbers(2, 1, 17, 19), numbers(5, 1, 3, 3)), nn.conv(images, numbers(6, 8, 3, 3), padding=1))
    note(nn.max_pool(images, 2), nn.avg_pool(images, 3))
print(vectors()[0], digest.hexdigest())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", vectors()[1])
def test_every_kind_gives_the_same_bits(script: RunScript, name: str) -> None:
    done, wanted = (script(_KERNELS, WEFT_ONEDNN_LIBRARY="off", **env) for env in ({"WEFT_VECTORS": name}, {}))
    assert (done.returncode, wanted.returncode) == (0, 0), done.stderr + wanted.stderr
    taken, bits = done.stdout.split()
    assert taken == name
    assert wanted.stdout.split() == [vectors()[1][-1], bits]


def test_a_kind_that_the_processor_does_not_have_changes_nothing(script: RunScript) -> None:
    done = script("from weft._core import vectors; print(*vectors()[1], vectors()[0])", WEFT_VECTORS="avx1024")
    assert done.returncode == 0, done.stderr
    *available, taken = done.stdout.split()
    assert taken == available[-1]
