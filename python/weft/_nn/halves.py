"""Which kernels compute numbers of half precision in single precision: those that add up, or take a function of each element.

They are casts around the kernel of single precision, one rounding for each result; NumPy converts halves one by one.
"""

from __future__ import annotations

from weft._registry.defaults import state
from weft._registry.op import get_op

_NAMES = (
    *("conv", "conv_data", "conv_weight", "max_pool", "max_pool_data", "max_pool_take", "avg_pool", "avg_pool_data"),
    *("batch_norm", "batch_norm_train", "batch_norm_data", "layer_norm", "layer_norm_data", "channel_sum"),
    *("softmax", "softmax_data", "log_softmax", "log_softmax_data", "cross_entropy", "cross_entropy_data"),
    *("relu", "relu_data", "leaky_relu", "leaky_relu_data", "elu", "elu_data", "gelu", "gelu_data"),
    *("sigmoid", "sigmoid_data", "softplus", "softplus_data", "window_sum", "lrn"),
    *("lstm_gates", "lstm_gates_data", "gru_gates", "gru_gates_data"),
    *("lstm_sequence", "lstm_sequence_data", "gru_sequence", "gru_sequence_data", "rnn_sequence", "rnn_sequence_data"),
)


def declare() -> None:
    """Say so of the ops; once, when all of them are there."""
    for name in _NAMES:
        state(get_op(f"nn.{name}"), in_single_precision=True)
