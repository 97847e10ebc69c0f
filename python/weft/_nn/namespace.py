"""The functions of `weft.nn`, for rooms that make operators of them."""

from weft._nn import halves as _halves
from weft._nn.activations import elu, gelu, leaky_relu, relu, sigmoid, softplus
from weft._nn.attention import scaled_dot_product_attention
from weft._nn.batch_norm import batch_norm, batch_norm_train
from weft._nn.convolution import conv
from weft._nn.cross_entropy import cross_entropy
from weft._nn.dense import dense
from weft._nn.dropout import dropout
from weft._nn.embedding import embedding
from weft._nn.layer_norm import layer_norm
from weft._nn.lrn import lrn
from weft._nn.pooling import avg_pool, max_pool
from weft._nn.recurrent import gru_cell, lstm_cell, rnn, rnn_cell
from weft._nn.softmax import log_softmax, softmax
from weft._nn.transposed import conv_transpose
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

_halves.declare()
