"""The array functions of `weft`: the public lists of the families, each name once.

The functions take their arguments as NumPy's do, too (`lenient`); the element-wise ones do as they are.
"""

# ruff: noqa: F403 - a name stands in one list, the `__all__` of the module that has it

from types import FunctionType as _FunctionType

from weft._core import ArrayFunction as _ArrayFunction
from weft._numpy.arguments import lenient as _lenient
from weft._ops.calculus import *
from weft._ops.comparing import *
from weft._ops.creation import *
from weft._ops.cumulative import *
from weft._ops.dtypes import *
from weft._ops.editing import *
from weft._ops.einstein import *
from weft._ops.elementwise import *
from weft._ops.files import *
from weft._ops.frequencies import *
from weft._ops.grids import *
from weft._ops.index_grids import *
from weft._ops.indexing import *
from weft._ops.joining import *
from weft._ops.manipulation import *
from weft._ops.matrices import *
from weft._ops.moments import *
from weft._ops.order_statistics import *
from weft._ops.parts import *
from weft._ops.products import *
from weft._ops.queries import *
from weft._ops.reductions import *
from weft._ops.rounding import *
from weft._ops.searching import *
from weft._ops.sets import *
from weft._ops.sorting import *
from weft._ops.spacing import *
from weft._ops.triangles import *

for _name, _value in list(globals().items()):
    if (
        isinstance(_value, _FunctionType | _ArrayFunction)
        and _name[0] != "_"
        and _value.__module__ != "weft._ops.ufuncs"
    ):
        globals()[_name] = _lenient(_name, _value)
