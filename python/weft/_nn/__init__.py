"""The kernels of networks, one module for each kind; `weft.nn` shows them."""

from importlib import import_module as _import_module

_import_module("weft._ops.namespace")  # registers the ops of which kernels and their gradients are made
