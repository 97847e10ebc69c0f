"""Models on a CUDA device: tensors and parameters are there, and learn what they learn on the CPU, eagerly and as graphs."""

from __future__ import annotations

import numpy as np
import pytest

from model.learning import Cnn, Net, Trained, learn
from weft import device


@pytest.mark.usefixtures("fake_cuda", "cupy")
@pytest.mark.parametrize("kind", [Net, Cnn])
def test_a_model_learns_on_a_device(kind: type[Trained]) -> None:
    on_cpu = learn(kind, device.get_default_device(), "eager")
    eager, *others = (learn(kind, device.create_cuda_gpu(), mode) for mode in ("eager", "graph", "sequential"))
    np.testing.assert_allclose(eager.losses, on_cpu.losses, rtol=1e-4)
    assert on_cpu.losses[-1] < on_cpu.losses[0]
    assert others == [eager, eager]
