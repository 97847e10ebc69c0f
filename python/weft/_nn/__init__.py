"""The kernels of networks, one module for each kind; `weft.nn` shows them."""

import weft._array.namespace  # noqa: F401 - registers the ops of which kernels and their gradients are made
