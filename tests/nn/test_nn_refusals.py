"""Numbers at the ends of integer types, and of other classes, as arguments of kernels: errors are weft's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import nn
from weft.errors import WeftError

if TYPE_CHECKING:
    from collections.abc import Callable

HUGE = 2**64

CALLS: dict[str, Callable[[weft.NDArray], Any]] = {
    "conv stride": lambda x: nn.conv(x, weft.ones((1, 1, 2), dtype="float32"), stride=[HUGE]),
    "conv padding": lambda x: nn.conv(x, weft.ones((1, 1, 2), dtype="float32"), padding=np.array([HUGE - 1])),
    "conv dilation": lambda x: nn.conv(x, weft.ones((1, 1, 1), dtype="float32"), dilation=(HUGE,)),
    "conv_transpose stride": lambda x: nn.conv_transpose(x, weft.ones((1, 1, 2), dtype="float32"), stride=HUGE),
    "max_pool stride": lambda x: nn.max_pool(x, 2, stride=[HUGE]),
    "max_pool kernel": lambda x: nn.max_pool(x, HUGE),
    "avg_pool padding": lambda x: nn.avg_pool(x, 2, padding=HUGE),
    "lrn size, no whole number": lambda x: nn.lrn(x, 5.0),  # type: ignore[arg-type] # a mistake
    "softmax axis": lambda x: nn.softmax(x, axis=HUGE),
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_beyond_all_integers_are_refused_as_weft_does(name: str) -> None:
    with pytest.raises(WeftError):
        CALLS[name](weft.ones((1, 1, 4), dtype="float32")).wait_to_read()


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "sigmoid", "softplus", "gelu"])
@pytest.mark.parametrize("value", [2.5, -1.25, 0.0, 2.0**63])
def test_an_activation_takes_a_number(name: str, value: float) -> None:
    found = getattr(nn, name)(value)
    expected = getattr(nn, name)(weft.asarray([value]))
    assert (found.shape, found.dtype) == ((), weft.float64)
    np.testing.assert_allclose(found.numpy(), expected.numpy()[0], rtol=1e-14)


def test_a_recurrent_network_takes_its_weights_by_layers() -> None:
    x, h = weft.ones((4, 2, 3)), weft.zeros((1, 2, 4))
    for weights in (weft.ones(200), [weft.ones((12, 3)), weft.ones((12, 4)), None, None]):
        with pytest.raises(TypeError, match=r"a list with a tuple \(w_x, w_h, b_x, b_h\) for each layer"):
            nn.rnn(x, h, weights, mode="gru")
