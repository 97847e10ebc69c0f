"""Numbers as people read them: times and bytes with three digits and a unit."""

from __future__ import annotations

_THOUSAND = 1000.0


def seconds(nanoseconds: float) -> str:
    """Return a time with its unit.

    Examples
    --------
    >>> from weft._trace.units import seconds
    >>> seconds(0), seconds(950), seconds(12_345), seconds(6.78e9)
    ('0 s', '950 ns', '12.3 us', '6.78 s')
    """
    if not nanoseconds:
        return "0 s"
    for unit in ("ns", "us", "ms"):
        if round(nanoseconds, 2) < _THOUSAND:
            return f"{_digits(nanoseconds)} {unit}"
        nanoseconds /= _THOUSAND
    return f"{_digits(nanoseconds)} s"


def amount(count: float) -> str:
    """Return a number of bytes with its unit.

    Examples
    --------
    >>> from weft._trace.units import amount
    >>> amount(12), amount(4e6)
    ('12 B', '4 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < _THOUSAND:
            return f"{_digits(count)} {unit}"
        count /= _THOUSAND
    return f"{_digits(count)} TB"


def _digits(value: float) -> str:
    """Return three digits of a number, or all before its point."""
    return f"{value:.0f}" if value >= _THOUSAND / 10 else f"{value:.3g}"
