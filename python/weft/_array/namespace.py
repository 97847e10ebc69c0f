"""The array functions of `weft`: what each module of this package says that it has, and nothing said twice.

The functions take their arguments as NumPy's do, too (`lenient`); the element-wise ones do as they are.
"""

# ruff: noqa: F403 - a name stands in one list, the `__all__` of the module that has it

from types import FunctionType as _FunctionType

from weft._array.calculus import *
from weft._array.comparing import *
from weft._array.creation import *
from weft._array.cumulative import *
from weft._array.dtypes import *
from weft._array.editing import *
from weft._array.einstein import *
from weft._array.elementwise import *
from weft._array.facts import *
from weft._array.files import *
from weft._array.frequencies import *
from weft._array.grids import *
from weft._array.indexing import *
from weft._array.joining import *
from weft._array.manipulation import *
from weft._array.matrices import *
from weft._array.moments import *
from weft._array.numpy_arguments import lenient as _lenient
from weft._array.order_statistics import *
from weft._array.positions import *
from weft._array.products import *
from weft._array.reductions import *
from weft._array.searching import *
from weft._array.sets import *
from weft._array.sorting import *
from weft._array.spacing import *
from weft._array.triangles import *

for _name, _value in list(globals().items()):
    if isinstance(_value, _FunctionType) and _name[0] != "_" and _value.__module__ != "weft._array.ufuncs":
        globals()[_name] = _lenient(_name, _value)
