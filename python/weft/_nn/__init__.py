"""The kernels of networks, one module for each kind; `weft.nn` shows them."""

from importlib import import_module as _import_module

from weft._registry.defaults import state as _state
from weft._registry.op import group as _group

_import_module("weft._numpy.namespace")  # registers the ops that kernels and gradients call
_state(_group("nn"), superlinear=True)
