"""Networks on a GPU: kernels, their gradients and whole models give what they give on the host."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from model.learning import MODES, Cnn, Net, Trained, learn
from nn.networks import NETWORKS, check_on_device
from weft import device

# What CuPy warns of is its own; what it compiles and loads at first takes its time.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default"), pytest.mark.timeout(45)]


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_and_their_gradients_are_the_hosts(name: str) -> None:
    pytest.importorskip("cupy")
    check_on_device(name, weft.gpu(0))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [Net, Cnn])
def test_a_model_learns(kind: type[Trained], mode: str) -> None:
    pytest.importorskip("cupy")
    on_cpu, found = learn(kind, device.get_default_device(), "eager"), learn(kind, device.create_cuda_gpu(), mode)
    np.testing.assert_allclose(found.losses, on_cpu.losses, rtol=1e-4)
