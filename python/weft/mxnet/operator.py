"""Operators that a script defines in Python: MXNet's `CustomOp`, `CustomOpProp` and `register`."""

from weft._mxnet.custom import CustomOp, CustomOpProp, register

__all__ = ["CustomOp", "CustomOpProp", "register"]
