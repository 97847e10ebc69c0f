"""The functions of `weft.nn`, for rooms that make operators of them."""

from weft._nn.activations import elu, gelu, leaky_relu, relu, sigmoid, softplus
from weft._nn.attention import scaled_dot_product_attention
from weft._nn.convolution import conv, conv_transpose
from weft._nn.inference import attach as _attach_rules
from weft._nn.layers import dense, dropout, embedding, lrn
from weft._nn.native import attach as _attach_kernels
from weft._nn.normalization import batch_norm, batch_norm_train, layer_norm
from weft._nn.pooling import avg_pool, max_pool
from weft._nn.recurrent import gru_cell, lstm_cell, rnn, rnn_cell
from weft._nn.softmax import cross_entropy, log_softmax, softmax
from weft._registry.symbol_hook import deferring as _deferring

__all__ = [
    "avg_pool", "batch_norm", "batch_norm_train", "conv", "conv_transpose", "cross_entropy", "dense", "dropout",
    "elu", "embedding", "gelu", "gru_cell", "layer_norm", "leaky_relu", "log_softmax", "lrn", "lstm_cell",
    "max_pool", "relu", "rnn", "rnn_cell", "scaled_dot_product_attention", "sigmoid", "softmax", "softplus",
]  # fmt: skip

log_softmax = _deferring("nn.log_softmax", log_softmax)
softmax = _deferring("nn.softmax", softmax)
rnn = _deferring("nn.rnn", rnn)
scaled_dot_product_attention = _deferring("nn.scaled_dot_product_attention", scaled_dot_product_attention)

_attach_rules()
_attach_kernels()
