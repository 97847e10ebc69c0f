"""The array functions of `weft`: what each module of this package says that it has, and nothing said twice."""

# ruff: noqa: F403 - a name stands in one list, the `__all__` of the module that has it

from weft._array.creation import *
from weft._array.cumulative import *
from weft._array.dtypes import *
from weft._array.einstein import *
from weft._array.elementwise import *
from weft._array.files import *
from weft._array.frequencies import *
from weft._array.indexing import *
from weft._array.joining import *
from weft._array.manipulation import *
from weft._array.matrices import *
from weft._array.moments import *
from weft._array.order_statistics import *
from weft._array.products import *
from weft._array.reductions import *
from weft._array.searching import *
from weft._array.sets import *
from weft._array.sorting import *
