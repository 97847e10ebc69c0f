"""SINGA's operators, as functions of arrays, for `weft.autograd`."""
