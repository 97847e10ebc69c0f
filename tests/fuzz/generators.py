"""All generators, by name."""

from __future__ import annotations

import sys
from pathlib import Path

# What tests of arrays, programs and files share lies beside them.
_TESTS = Path(__file__).parent.parent
for _folder in ("", "array", "program", "mxnet", "gradient"):
    if str(_TESTS / _folder) not in sys.path:
        sys.path.append(str(_TESTS / _folder))

from . import (  # noqa: E402 - they look for it
    control,
    damage,
    dunders,
    expressions,
    forks,
    gradients,
    interrupts,
    keys,
    programs,
    ranks,
    sizes,
    statements,
    symbols,
)

__all__ = ["GENERATORS"]

_MODULES = (
    *(expressions, keys, statements, programs, symbols, gradients, control),
    *(dunders, sizes, damage, interrupts, forks, ranks),
)
GENERATORS = {module.GENERATOR.name: module.GENERATOR for module in _MODULES}
