"""The distribution function of the standard normal variable, which NumPy lacks.

By the rational approximations of W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of
Computation 23 (1969), which are exact to the last digits of float64.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from weft._call.calls import Elements

_NEAR = (
    (3.209377589138469472562e3, 3.774852376853020208137e2, 1.138641541510501556495e2, 3.161123743870565596947e0, 1.857777061846031526730e-1),
    (2.844236833439170622273e3, 1.282616526077372275645e3, 2.440246379344441733056e2, 2.360129095234412093499e1, 1.0),
)  # fmt: skip
_MIDDLE = (
    (1.23033935479799725272e3, 2.05107837782607146532e3, 1.71204761263407058314e3, 8.81952221241769090411e2, 2.98635138197400131132e2,
     6.61191906371416294775e1, 8.88314979438837594118e0, 5.64188496988670089180e-1, 2.15311535474403846343e-8),
    (1.23033935480374942043e3, 3.43936767414372163696e3, 4.36261909014324715820e3, 3.29079923573345962678e3, 1.62138957456669018874e3,
     5.37181101862009857509e2, 1.17693950891312499305e2, 1.57449261107098347253e1, 1.0),
)  # fmt: skip
_FAR = (
    (-6.58749161529837803157e-4, -1.60837851487422766278e-2, -1.25781726111229246204e-1, -3.60344899949804439429e-1,
     -3.05326634961232344035e-1, -1.63153871373020978498e-2),
    (2.33520497626869185443e-3, 6.05183413124413191178e-2, 5.27905102951428412248e-1, 1.87295284992346047209e0,
     2.56852019228982242072e0, 1.0),
)  # fmt: skip


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], z: Elements) -> Elements:
    """Return a quotient of two polynomials, lowest coefficients first."""
    above, below = (_horner(each, z) for each in coefficients)
    return above / below


def _horner(coefficients: tuple[float, ...], z: Elements) -> Elements:
    total = np.full_like(z, coefficients[-1])
    for each in coefficients[-2::-1]:
        total = total * z + each
    return total


def cumulative(x: Elements) -> Elements:
    """Return the probability that a standard normal variable is smaller than each of these numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._nn.gaussian import cumulative
    >>> cumulative(np.array([-1.96, 0.0, 1.96])).round(4)
    array([0.025, 0.5  , 0.975])
    """
    z = np.abs(x.astype(np.float64)) / math.sqrt(2)
    near = np.minimum(z, 0.46875)
    middle = np.clip(z, 0.46875, 4.0)
    far = np.maximum(z, 4.0)
    inverse = 1 / (far * far)
    tail = (1 / math.sqrt(math.pi) + inverse * _ratio(_FAR, inverse)) / far
    beyond = np.where(z <= 4.0, _ratio(_MIDDLE, middle), tail) * np.exp(-z * z)  # the ranges of the paper
    within = near * _ratio(_NEAR, near * near)
    smaller = np.where(z <= 0.46875, 0.5 - 0.5 * within, 0.5 * beyond)
    found = np.where(x > 0, 1 - smaller, smaller)
    return np.where(np.isnan(x), x, found).astype(x.dtype)
