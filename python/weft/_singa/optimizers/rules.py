"""The rules of optimizers: how gradients change parameters.

Each op that changes a parameter, or a state of one, reads the gradient. So a step with a failed gradient is skipped
whole, and leaves the last good versions: `weft.Model.recover` makes them the values again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft._numpy import namespace
from weft._singa.optimizers.base import Optimizer
from weft._singa.optimizers.schedules import DecayScheduler
from weft._tape.modes import no_grad
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._core import NDArray


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum, weight decay and Nesterov's look ahead where they are asked for.

    With ``weight_decay * p`` added to the gradient g, the velocity becomes ``v = momentum * v + (1 - dampening) * g``,
    and the parameter ``p = p - lr * v``; with `nesterov`, ``p - lr * (g + momentum * v)``; without momentum, ``p - lr * g``.

    Parameters
    ----------
    lr : float or DecayScheduler, default: 0.1
        The learning rate.
    momentum, dampening, weight_decay : float or DecayScheduler, default: 0
        As above.
    nesterov : bool, default: False
        Whether to look ahead; needs a momentum, and no dampening.
    dtype : dtype-like, default: float32
        The dtype of these numbers.

    Raises
    ------
    ArgumentValueError
        If a number is negative or not finite, if the momentum is 1 or more, or if `nesterov` is set without momentum or
        with dampening.
    ArgumentTypeError
        If one is neither a number nor a schedule.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> w = weft.asarray([1.0, 2.0])
    >>> w.requires_grad = True
    >>> descent = opt.SGD(lr=0.25, momentum=0.5)
    >>> for _ in range(2):
    ...     descent((w * w).sum())
    >>> w
    NDArray([0., 0.])
    """

    slots: tuple[str, ...] = ("moments",)

    def __init__(
        self,
        lr: float | DecayScheduler = 0.1,
        momentum: float | DecayScheduler = 0,
        dampening: float | DecayScheduler = 0,
        weight_decay: float | DecayScheduler = 0,
        nesterov: bool = False,
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        super().__init__(lr, dtype)
        self.schedule("momentum", momentum, below=1.0)
        self.schedule("dampening", dampening, least=None)
        self.schedule("weight_decay", weight_decay)
        self.nesterov = nesterov
        if not self.plays("momentum"):
            self.slots = ()
            self._left_out.add("momentum")
        if nesterov and (not self.slots or self.plays("dampening")):
            raise ArgumentValueError(
                f"nesterov=True needs a momentum and no dampening, and they are {momentum} and {dampening}"
            )

    def apply(self, param_name: str, param_value: NDArray, param_grad: NDArray) -> None:
        """Apply a gradient to a parameter, in place."""
        with no_grad():
            step = self._decayed(param_name, param_value, param_grad)
            if self.slots:
                momentum = self.value("momentum", param_value)
                velocity = self.slot("moments", param_name, param_value)
                fresh = step if not self.plays("dampening") else (1 - self.value("dampening", param_value)) * step
                namespace.add(velocity * momentum, fresh, out=velocity)
                step = step + momentum * velocity if self.nesterov else velocity
            param_value -= self.value("lr", param_value) * step


class RMSProp(Optimizer):
    """RMSProp: gradients are divided by the root of a running average of their squares.

    ``a = rho * a + (1 - rho) * g * g`` and ``p = p - lr * g / sqrt(a + epsilon)``.

    Parameters
    ----------
    lr : float or DecayScheduler, default: 0.1
        The learning rate.
    rho : float or DecayScheduler, default: 0.9
        How much of the average is kept.
    epsilon : float or DecayScheduler, default: 1e-8
        Keeps the root from 0.
    weight_decay : float or DecayScheduler, default: 0
        ``weight_decay * p`` is added to g.

    Raises
    ------
    ArgumentValueError
        If a number is negative or not finite, or if `rho` is 1 or more.
    ArgumentTypeError
        If one is neither a number nor a schedule.

    Examples
    --------
    >>> from weft import opt
    >>> opt.RMSProp(lr=0.01).slots
    ('running_average',)
    """

    slots = ("running_average",)
    _widens = True

    def __init__(
        self,
        lr: float | DecayScheduler = 0.1,
        rho: float | DecayScheduler = 0.9,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0,
    ) -> None:
        super().__init__(lr)
        self.schedule("rho", rho, below=1.0)
        self.schedule("epsilon", epsilon)
        self.schedule("weight_decay", weight_decay)

    def apply(self, param_name: str, param_value: NDArray, param_grad: NDArray) -> None:
        """Apply a gradient to a parameter, in place."""
        with no_grad():
            g = self._decayed(param_name, param_value, param_grad)
            rho = self.value("rho", g)
            average = self.slot("running_average", param_name, param_value)
            namespace.add(average * rho, (1 - rho) * _square(g), out=average)
            root = namespace.sqrt(average + self.value("epsilon", g))
            param_value -= self.value("lr", g) * (g / root)


class AdaGrad(Optimizer):
    """AdaGrad: gradients are divided by the root of the sum of all their squares.

    ``h = h + g * g`` and ``p = p - lr * g / sqrt(h + epsilon)``.

    Parameters
    ----------
    lr : float or DecayScheduler, default: 0.1
        The learning rate.
    epsilon : float or DecayScheduler, default: 1e-8
        Keeps the root from 0.
    weight_decay : float or DecayScheduler, default: 0
        ``weight_decay * p`` is added to g.

    Raises
    ------
    ArgumentValueError
        If a number is negative or not finite.
    ArgumentTypeError
        If one is neither a number nor a schedule.

    Examples
    --------
    >>> from weft import opt
    >>> opt.AdaGrad().slots
    ('history',)
    """

    slots = ("history",)
    _widens = True

    def __init__(
        self,
        lr: float | DecayScheduler = 0.1,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0,
    ) -> None:
        super().__init__(lr)
        self.schedule("epsilon", epsilon)
        self.schedule("weight_decay", weight_decay)

    def apply(self, param_name: str, param_value: NDArray, param_grad: NDArray) -> None:
        """Apply a gradient to a parameter, in place."""
        with no_grad():
            g = self._decayed(param_name, param_value, param_grad)
            history = self.slot("history", param_name, param_value)
            history += _square(g)
            root = namespace.sqrt(history + self.value("epsilon", g))
            param_value -= self.value("lr", g) * (g / root)


class Adam(Optimizer):
    """Adam: running averages of gradients and of their squares, corrected for their beginning at 0.

    ``m = beta_1 * m + (1 - beta_1) * g``, ``v = beta_2 * v + (1 - beta_2) * g * g``, and
    ``p = p - lr * (m / (1 - beta_1**t)) / (sqrt(v / (1 - beta_2**t)) + epsilon)`` at step t, counted from 1.

    Parameters
    ----------
    lr : float or DecayScheduler, default: 0.001
        The learning rate. SINGA's default is 0.1.
    beta_1, beta_2 : float or DecayScheduler, default: 0.9, 0.999
        How much of the averages is kept.
    epsilon : float or DecayScheduler, default: 1e-8
        Keeps the root from 0.
    weight_decay : float or DecayScheduler, default: 0
        ``weight_decay * p`` is added to g.

    Raises
    ------
    ArgumentValueError
        If a number is negative or not finite, or if `beta_1` or `beta_2` is 1 or more.
    ArgumentTypeError
        If one is neither a number nor a schedule.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> w = weft.asarray([1.0, -3.0])
    >>> w.requires_grad = True
    >>> opt.Adam(lr=0.5)((w * w).sum())
    >>> w.round(4)
    NDArray([ 0.5, -2.5])
    """

    slots = ("m", "v")
    _widens = True

    def __init__(
        self,
        lr: float | DecayScheduler = 0.001,
        beta_1: float | DecayScheduler = 0.9,
        beta_2: float | DecayScheduler = 0.999,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0,
    ) -> None:
        super().__init__(lr)
        for name, beta in (("beta_1", beta_1), ("beta_2", beta_2)):
            self.schedule(name, beta, below=1.0)
        self.schedule("epsilon", epsilon)
        self.schedule("weight_decay", weight_decay)

    def schedule(
        self, name: str, value: float | DecayScheduler, least: float | None = 0.0, below: float | None = None
    ) -> None:
        """Enter a number, or set it anew, under a name, as `Optimizer.schedule`; the corrections follow theirs."""
        super().schedule(name, value, least, below)
        if name in ("beta_1", "beta_2"):
            super().schedule(f"correction of {name}", _Correction(self._schedules[name]))

    def apply(self, param_name: str, param_value: NDArray, param_grad: NDArray) -> None:
        """Apply a gradient to a parameter, in place."""
        with no_grad():
            g = self._decayed(param_name, param_value, param_grad)
            beta_1, beta_2 = self.value("beta_1", g), self.value("beta_2", g)
            m, v = self.slot("m", param_name, param_value), self.slot("v", param_name, param_value)
            namespace.add(m * beta_1, (1 - beta_1) * g, out=m)
            namespace.add(v * beta_2, (1 - beta_2) * _square(g), out=v)
            root = namespace.sqrt(v / self.value("correction of beta_2", g))
            step = (m / self.value("correction of beta_1", g)) / (root + self.value("epsilon", g))
            if not self._decays_gradients and self.plays("weight_decay"):
                step = step + self.value("weight_decay", g) * param_value
            param_value -= self.value("lr", g) * step


class AdamW(Adam):
    """Adam with a weight decay apart from the gradients: ``p`` becomes ``p - lr * weight_decay * p``, beside Adam's step.

    Of I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization" (2019). Parameters but `weight_decay` are those of `Adam`.

    Parameters
    ----------
    lr : float or DecayScheduler, default: 0.001
        The learning rate.
    beta_1, beta_2 : float or DecayScheduler, default: 0.9, 0.999
        How much of the averages is kept.
    epsilon : float or DecayScheduler, default: 1e-8
        Keeps the root from 0.
    weight_decay : float or DecayScheduler, default: 0.01
        As above.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> w = weft.asarray([1.0, -3.0])
    >>> w.requires_grad = True
    >>> opt.AdamW(lr=0.5, weight_decay=0.1)((w * w).sum())
    >>> w.round(4)
    NDArray([ 0.45, -2.35])
    """

    _decays_gradients = False

    def __init__(
        self,
        lr: float | DecayScheduler = 0.001,
        beta_1: float | DecayScheduler = 0.9,
        beta_2: float | DecayScheduler = 0.999,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0.01,
    ) -> None:
        super().__init__(lr, beta_1, beta_2, epsilon, weight_decay)


def _square(g: NDArray) -> NDArray:
    """Return the squares of numbers; of complex ones, those of their absolute values."""
    return g * g if g.dtype.kind != "c" else g * namespace.conj(g)


class _Correction(DecayScheduler):
    """The weight of all terms in an average that began at 0: 1 - beta ** t."""

    def __init__(self, beta: DecayScheduler) -> None:
        super().__init__(1 - beta.init_value)
        self._beta = beta

    def call(self, step: NDArray) -> NDArray:
        """Return it for the step that comes after so many."""
        return 1 - namespace.power(self._beta(step), step + 1)
