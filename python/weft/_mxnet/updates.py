"""Steps of optimizers: the new weight is the result, and states change in place.

``nd.sgd_update(weight, grad, lr=0.1, out=weight)`` is a step, as in MXNet; without `out` the weight stays.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, flag, integer, number
from weft._numpy import namespace
from weft._tape.modes import no_grad

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._mxnet.partial_shapes import Dtypes

    _Rule = Callable[..., tuple[Any, tuple[Any, ...]]]

_COMMON: dict[str, Any] = {
    "lr": (number, REQUIRED),
    "wd": (number, 0.0),
    "rescale_grad": (number, 1.0),
    "clip_gradient": (number, -1.0),
}
_BY_MOMENTUM: dict[str, Any] = {"momentum": (number, 0.0)}
_LAZY: dict[str, Any] = {"lazy_update": (flag, True)}


def _clipped(x: Any, bound: float) -> Any:
    """Return values up to a bound; a negative one is none."""
    return namespace.clip(x, -bound, bound) if bound >= 0 else x


def _given(s: Any, grad: Any) -> Any:
    return _clipped(grad * s.rescale_grad, s.clip_gradient)


def _decayed(s: Any, weight: Any, grad: Any) -> Any:
    """Return the gradient with the decay of weights, clipped together."""
    return _clipped(grad * s.rescale_grad + weight * s.wd, s.clip_gradient)


def _sgd(s: Any, weight: Any, grad: Any) -> tuple[Any, tuple[Any, ...]]:
    return weight * (1 - s.lr * s.wd) - _given(s, grad) * s.lr, ()


def _sgd_mom(s: Any, weight: Any, grad: Any, mom: Any) -> tuple[Any, tuple[Any, ...]]:
    mom = mom * s.momentum - weight * (s.lr * s.wd) - _given(s, grad) * s.lr
    return weight + mom, (mom,)


def _nag_mom(s: Any, weight: Any, grad: Any, mom: Any) -> tuple[Any, tuple[Any, ...]]:
    slow, step = mom * s.momentum, (_given(s, grad) + weight * s.wd) * s.lr
    return weight - slow + (slow - step) * (s.momentum + 1), (slow - step,)


def _signsgd(s: Any, weight: Any, grad: Any) -> tuple[Any, tuple[Any, ...]]:
    return weight * (1 - s.lr * s.wd) - namespace.sign(grad) * s.lr, ()


def _signum(s: Any, weight: Any, grad: Any, mom: Any) -> tuple[Any, tuple[Any, ...]]:
    mom = mom * s.momentum - (weight * s.wd + _given(s, grad)) * (1 - s.momentum)
    return weight * (1 - s.lr * s.wd_lh) + namespace.sign(mom) * s.lr, (mom,)


def _adam(s: Any, weight: Any, grad: Any, mean: Any, var: Any) -> tuple[Any, tuple[Any, ...]]:
    g = _decayed(s, weight, grad)
    mean = mean * s.beta1 + g * (1 - s.beta1)
    var = var * s.beta2 + g * g * (1 - s.beta2)
    return weight - mean * s.lr / (namespace.sqrt(var) + s.epsilon), (mean, var)


def _rmsprop(s: Any, weight: Any, grad: Any, n: Any) -> tuple[Any, tuple[Any, ...]]:
    g = _decayed(s, weight, grad)
    n = g * g * (1 - s.gamma1) + n * s.gamma1
    return _clipped(weight - g / namespace.sqrt(n + s.epsilon) * s.lr, s.clip_weights), (n,)


def _rmspropalex(s: Any, weight: Any, grad: Any, n: Any, g: Any, delta: Any) -> tuple[Any, tuple[Any, ...]]:
    own = _decayed(s, weight, grad)
    n = own * own * (1 - s.gamma1) + n * s.gamma1
    g = own * (1 - s.gamma1) + g * s.gamma1
    delta = delta * s.gamma2 - own * s.lr / namespace.sqrt(n - g * g + s.epsilon)
    return _clipped(weight + delta, s.clip_weights), (n, g, delta)


def _ftrl(s: Any, weight: Any, grad: Any, z: Any, n: Any) -> tuple[Any, tuple[Any, ...]]:
    g = _given(s, grad)
    root = namespace.sqrt(n + g * g)
    z = z + g - (root - namespace.sqrt(n)) * weight / s.lr
    n = n + g * g
    found = (namespace.sign(z) * s.lamda1 - z) / ((namespace.sqrt(n) + s.beta) / s.lr + s.wd)
    return namespace.where(abs(z) > s.lamda1, found, 0.0), (z, n)


def _ftml(s: Any, weight: Any, grad: Any, d: Any, v: Any, z: Any) -> tuple[Any, tuple[Any, ...]]:
    g = _clipped(grad * s.rescale_grad + weight * s.wd, s.clip_grad)
    v = v * s.beta2 + g * g * (1 - s.beta2)
    new = (namespace.sqrt(v / (1 - s.beta2**s.t)) + s.epsilon) * ((1 - s.beta1**s.t) / s.lr)
    z = z * s.beta1 + g * (1 - s.beta1) - (new - d * s.beta1) * weight
    return -z / new, (new, v, z)


#: The rule of each step, its states, its settings.
_STEPS: dict[str, tuple[_Rule, tuple[str, ...], dict[str, Any]]] = {
    "sgd_update": (_sgd, (), {**_COMMON, **_LAZY}),
    "sgd_mom_update": (_sgd_mom, ("mom",), {"lr": _COMMON["lr"], **_BY_MOMENTUM, **_COMMON, **_LAZY}),
    "nag_mom_update": (_nag_mom, ("mom",), {"lr": _COMMON["lr"], **_BY_MOMENTUM, **_COMMON}),
    "signsgd_update": (_signsgd, (), _COMMON),
    "signum_update": (
        _signum, ("mom",), {"lr": _COMMON["lr"], **_BY_MOMENTUM, **_COMMON, "wd_lh": (number, 0.0)},
    ),
    "adam_update": (
        _adam,
        ("mean", "var"),
        {
            "lr": _COMMON["lr"],
            "beta1": (number, 0.9),
            "beta2": (number, 0.999),
            "epsilon": (number, 1e-8),
            **_COMMON,
            **_LAZY,
        },
    ),
    "rmsprop_update": (
        _rmsprop,
        ("n",),
        {
            "lr": _COMMON["lr"],
            "gamma1": (number, 0.95),
            "epsilon": (number, 1e-8),
            **_COMMON,
            "clip_weights": (number, -1.0),
        },
    ),
    "rmspropalex_update": (
        _rmspropalex,
        ("n", "g", "delta"),
        {
            "lr": _COMMON["lr"],
            "gamma1": (number, 0.95),
            "gamma2": (number, 0.9),
            "epsilon": (number, 1e-8),
            **_COMMON,
            "clip_weights": (number, -1.0),
        },
    ),
    "ftrl_update": (
        _ftrl, ("z", "n"), {"lr": _COMMON["lr"], "lamda1": (number, 0.01), "beta": (number, 1.0), **_COMMON},
    ),
    "ftml_update": (
        _ftml,
        ("d", "v", "z"),
        {
            "lr": _COMMON["lr"],
            "beta1": (number, 0.6),
            "beta2": (number, 0.999),
            "epsilon": (number, 1e-8),
            "t": (integer, REQUIRED),
            "wd": (number, 0.0),
            "rescale_grad": (number, 1.0),
            "clip_grad": (number, -1.0),
        },
    ),
}  # fmt: skip


def _register(name: str, rule: _Rule, states: tuple[str, ...], settings: dict[str, Any]) -> None:
    def apply(s: Any, weight: Any, grad: Any, *kept: Any) -> Any:
        with no_grad():
            found, changed = rule(s, weight, grad, *kept)
            for state, value in zip(kept, changed, strict=True):
                state[...] = value
        return found

    operator(
        name,
        settings=Settings(**settings),
        inputs=("weight", "grad", *states),
        mutates=tuple(range(2, 2 + len(states))),
        gradient=NONE,
        pure=False,
    )(apply)


#: Steps on a single copy of half weights, which is a further state.
_IN_SINGLE = ("sgd_update", "sgd_mom_update", "nag_mom_update")


def _single_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del s
    ins.alike(outs, [0, 1], [0])
    for at in range(2, len(ins)):
        ins.learn(at, "float32")


def _register_in_single(name: str, rule: _Rule, states: tuple[str, ...], settings: dict[str, Any]) -> None:
    def apply(s: Any, weight: Any, grad: Any, *kept: Any) -> Any:
        *states_, copy = kept
        with no_grad():
            found, changed = rule(s, copy, namespace.astype(grad, "float32"), *states_)
            for state, value in zip((*states_, copy), (*changed, found), strict=True):
                state[...] = value
        return namespace.astype(found, weight.dtype)

    operator(
        f"mp_{name}",
        settings=Settings(**settings),
        inputs=("weight", "grad", *states, "weight32"),
        dtypes=_single_dtypes,
        mutates=tuple(range(2, 3 + len(states))),
        gradient=NONE,
        pure=False,
    )(apply)


for _name, _said in _STEPS.items():
    _register(_name, *_said)
for _name in _IN_SINGLE:
    _register_in_single(_name, *_STEPS[_name])
