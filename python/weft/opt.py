"""Optimizers: they compute gradients, and change parameters in place. Those that SINGA has bear its names and arguments.

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

from typing import TYPE_CHECKING

from weft._singa.hints import absent_from
from weft._singa.optimizers.averages import EMA
from weft._singa.optimizers.base import Optimizer
from weft._singa.optimizers.decays import CosineDecay, OneCycle, StepDecay, WarmUp
from weft._singa.optimizers.distributed import DistOpt
from weft._singa.optimizers.gradients import GradientSum, clip_grad_norm
from weft._singa.optimizers.groups import ParamGroups
from weft._singa.optimizers.rules import SGD, AdaGrad, Adam, AdamW, RMSProp
from weft._singa.optimizers.schedules import Constant, DecayScheduler, ExponentialDecay

__all__ = [
    "EMA", "SGD", "AdaGrad", "Adam", "AdamW", "Constant", "CosineDecay", "DecayScheduler", "DistOpt",
    "ExponentialDecay", "GradientSum", "OneCycle", "Optimizer", "ParamGroups", "RMSProp", "StepDecay", "WarmUp",
    "clip_grad_norm",
]  # fmt: skip

if not TYPE_CHECKING:  # for them any name would be there
    __getattr__ = absent_from(__name__)
