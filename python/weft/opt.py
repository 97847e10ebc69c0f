"""Optimizers, with SINGA's names and arguments: they compute gradients, and change parameters in place.

>>> import weft
>>> from weft import opt
>>> w = weft.asarray([4.0])
>>> w.requires_grad = True
>>> descent = opt.SGD(lr=opt.ExponentialDecay(0.25, decay_steps=1, decay_rate=0.5))
>>> for _ in range(2):
...     descent((w * w).sum())
>>> w, descent.lr_value
(NDArray([1.5]), NDArray([0.0625], dtype=float32))
"""

from weft._singa.optimizers.base import Optimizer
from weft._singa.optimizers.distributed import DistOpt
from weft._singa.optimizers.rules import SGD, AdaGrad, Adam, RMSProp
from weft._singa.optimizers.schedules import Constant, DecayScheduler, ExponentialDecay

__all__ = [
    "SGD", "AdaGrad", "Adam", "Constant", "DecayScheduler", "DistOpt", "ExponentialDecay", "Optimizer", "RMSProp",
]  # fmt: skip
